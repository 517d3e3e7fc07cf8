"""A function of a team's own: loaded as its source is now, and refused by name if it cannot be what a spec needs."""

import decimal
import os
import socket
import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest

from sluice.adapters.transforms import loaded, team_function
from sluice.errors import SpecInvalid
from sluice.model.base import ShardKey
from sluice.model.transform import TransformContext, TransformSpec
from tests.unit.mapping.workbench import sync_spec

SOURCE = """
def enrich(frame, context):
    return frame, context, {number}


class Called:
    def __call__(self, frame, context):
        return frame


called = Called()
number = 7


def lonely(frame):
    return frame


def greedy(frame, context, more):
    return frame


async def later(frame, context):
    return frame


def bit_by_bit(frame, context):
    yield frame


class Kind:
    def __init__(self, frame, context): ...


def fails(frame, context):
    raise ValueError("no")
"""


COARSE = """
from decimal import Decimal, getcontext

getcontext().prec = 3


def enrich(frame, context):
    getcontext().prec = 4
    return Decimal(1) / 3
"""


@pytest.fixture
def include(tmp_path: Path) -> Path:
    """A folder of a team, with a package."""
    (tmp_path / "steps_93ab").mkdir()
    write(tmp_path, 1)
    return tmp_path


def write(include: Path, number: int) -> None:
    """Let the function return that number, within the same second and at the same length as before."""
    file = include / "steps_93ab" / f"hotels_{include.name.replace('-', '_')}.py"
    file.write_text(SOURCE.format(number=number))
    os.utime(file, (1_700_000_000, 1_700_000_000))


def named(include: Path, name: str = "enrich") -> TransformSpec:
    """How a spec names it."""
    return TransformSpec(function=f"steps_93ab.hotels_{include.name.replace('-', '_')}.{name}")


def function_of(include: Path, name: str = "enrich") -> Any:
    """The function for the objects of a shard."""
    spec = sync_spec({"id": "text"}, tenant="north", version=3, transform=named(include, name).model_dump())
    return team_function(spec, ShardKey("DE"), include)


def test_a_function_is_told_whose_objects_it_gets(include: Path) -> None:
    """What would be the same in another run, and no more."""
    told = TransformContext(sync="hotels", tenant="north", shard=ShardKey("DE"), version=3)
    assert function_of(include)("frame") == ("frame", told, 1)


def test_a_spec_without_a_function_has_none(include: Path) -> None:
    """Nothing is loaded."""
    assert team_function(sync_spec({"id": "text"}), ShardKey("DE"), include) is None


def test_edited_code_is_run_anew_under_another_digest(include: Path) -> None:
    """However long the process lives, and however quickly it was edited; what is as it was is not run again."""
    first, again = function_of(include), function_of(include)
    assert (first.digest, first._function) == (again.digest, again._function)
    write(include, 2)
    edited = function_of(include)
    assert edited.digest != first.digest
    assert edited("frame")[2] == 2
    assert first("frame")[2] == 1
    write(include, 1)
    assert function_of(include).digest == first.digest


def test_code_that_cannot_be_run_leaves_what_was_there(include: Path) -> None:
    """A mistake in an edited file is told with its line."""
    assert function_of(include)("frame")[2] == 1
    (include / "steps_93ab" / f"hotels_{include.name.replace('-', '_')}.py").write_text("x = 1\ny = x / 0\n")
    with pytest.raises(SpecInvalid, match=r"transform\.function: .* cannot be imported \(.*\.py:2\): ZeroDivisionError"):
        function_of(include)
    assert sys.modules[named(include).function.rpartition(".")[0]].enrich("frame", None)[2] == 1


def test_what_is_installed_is_not_run_again() -> None:
    """Others use it."""
    import json

    function, digest = loaded(TransformSpec(function="json.dump"), Path("/nowhere"))
    assert function is json.dump
    assert digest
    assert loaded(TransformSpec(function="operator.add"), Path("/nowhere"))[0](1, 2) == 3


@pytest.mark.parametrize("name", ["enrich", "called", "fails"])
def test_whatever_takes_a_frame_and_a_context_will_do(include: Path, name: str) -> None:
    """A function, or an object that can be called like one."""
    assert callable(loaded(named(include, name), include)[0])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("absent", r"has no absent$"),
        ("number", r"number is no function$"),
        ("Kind", r"Kind is no function$"),
        ("lonely", r"lonely has to take two arguments: the frame and its context$"),
        ("greedy", r"greedy has to take two arguments: the frame and its context$"),
        ("later", r"later has to return its frame: it may not await or yield$"),
        ("bit_by_bit", r"bit_by_bit has to return its frame: it may not await or yield$"),
    ],
)
def test_what_cannot_be_called_is_told_before_it_is(include: Path, name: str, message: str) -> None:
    """With its place in the spec."""
    with pytest.raises(SpecInvalid, match=rf"^transform\.function: .*{message}"):
        loaded(named(include, name), include)


def test_an_error_is_told_with_the_teams_own_line(include: Path) -> None:
    """Not with that of the library below it."""
    function = function_of(include, "fails")
    with pytest.raises(ValueError, match="no") as caught:
        function("frame")
    line = 1 + SOURCE.splitlines().index('    raise ValueError("no")')
    assert function.where_raised(caught.value).endswith(f"{include.name.replace('-', '_')}.py:{line}")


@pytest.mark.parametrize(
    ("error", "is_outage"),
    [
        (ConnectionResetError(), True),
        (TimeoutError(), True),
        (socket.gaierror(), True),
        (psycopg.OperationalError(), True),
        (FileNotFoundError(), False),
        (psycopg.errors.UniqueViolation(), False),
        (ValueError(), False),
    ],
)
def test_an_outage_is_told_from_an_error(include: Path, error: Exception, is_outage: bool) -> None:
    """Also behind another one."""
    function = function_of(include)
    behind = RuntimeError("asking failed")
    behind.__cause__ = error
    assert (function.is_outage(error), function.is_outage(behind)) == (is_outage, is_outage)


def test_how_a_function_rounds_is_its_own_affair(include: Path) -> None:
    """Neither its module nor its calls leave another precision behind, by which values of ours would be rounded."""
    (include / f"coarse_{include.name.replace('-', '_')}.py").write_text(COARSE)
    before = decimal.getcontext().prec
    transform = {"function": f"coarse_{include.name.replace('-', '_')}.enrich"}
    function = team_function(sync_spec({"id": "text"}, transform=transform), ShardKey("all"), include)
    assert function is not None
    assert function(None) == decimal.Decimal("0.3333")
    assert decimal.getcontext().prec == before
