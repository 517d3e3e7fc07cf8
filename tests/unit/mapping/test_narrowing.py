"""A function that fails for some objects: those are found, and named; a function that fails for all is told from them."""

import sys
import warnings
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from sluice.errors import TransformBroken, TransformUnavailable
from sluice.mapping.mapper import Mapper
from tests.unit.mapping.functions import Function, OutOfReach, page_of, spec_with, through, values_after
from tests.unit.mapping.workbench import ARTIFACT, nothing

SPEC = spec_with({"id": "text", "stars": "integer"})


def hotels(*stars: int) -> list[str]:
    """Records with so many stars each, numbered from 0."""
    return [f'{{"id": "{number}", "stars": {count}}}' for number, count in enumerate(stars)]


def failing_for(*poison: int, error: BaseException | None = None) -> Callable[[Any], Any]:
    """A function that no object with such stars comes through."""

    def function(frame: Any) -> Any:
        bad = [stars for stars in frame["stars"].tolist() if stars in poison]
        if bad:
            raise error or ValueError(f"{bad[0]} stars")
        return frame

    return function


def test_each_object_that_a_function_fails_for_is_found() -> None:
    """Seven of eight are named, with what was raised and where, and the eighth is mapped."""
    chunk = through(SPEC, failing_for(*range(10, 17)), *hotels(10, 11, 12, 13, 14, 3, 15, 16))
    assert [row["id"] for row in values_after(SPEC, chunk)] == ["5"]
    assert [(reject.key, reject.error, reject.field) for reject in chunk.rejects] == [
        (key, "function", None) for key in "0123467"
    ]
    assert [reject.message for reject in chunk.rejects] == [
        f"transforms.hotels.enrich failed at hotels.py:3: ValueError: {stars} stars" for stars in range(10, 17)
    ]
    assert [reject.address.index for reject in chunk.rejects] == [0, 1, 2, 3, 4, 6, 7]


def test_few_calls_find_one_object_among_many() -> None:
    """Halving takes twice the binary logarithm, and a few single objects at first."""
    function = Function(failing_for(99))
    stars = [3] * 1_000
    stars[417] = 99
    chunk = Mapper(SPEC, function=function).map_chunk([page_of(*hotels(*stars))], ARTIFACT, nothing)
    assert [reject.key for reject in chunk.rejects] == ["417"]
    assert chunk.objects == 999
    assert function.calls <= 25


def test_a_function_that_no_object_comes_through_is_broken() -> None:
    """It stops the shard after a few calls, naming the place, and makes no dead letters."""
    function = Function(failing_for(3))
    with pytest.raises(TransformBroken, match=r"of 32 that were tried: .*enrich failed at hotels\.py:3: ValueError"):
        Mapper(SPEC, function=function).map_chunk([page_of(*hotels(*[3] * 1_000))], ARTIFACT, nothing)
    assert function.calls <= 40


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda frame: frame.iloc[:0], "has not returned it"),
        (lambda frame: frame.assign(id="x"), 'id: the function may not change it: "\\d+" became "x"'),
        (lambda frame: frame.assign(stars=float("nan")), "stars.*: nan is no"),
    ],
)
def test_a_function_that_spoils_every_object_is_broken(function: Callable[[Any], Any], message: str, when: str) -> None:
    """Frames that can be read are no better, if nothing in them can be used: the objects were as they should be."""
    spec = spec_with({"id": "text", "stars": "integer"}, when=when)
    with pytest.raises(TransformBroken, match=f"no object comes through transforms.hotels.enrich, of 39 .*{message}"):
        through(spec, function, *hotels(*range(2, 41)))
    assert len(through(spec, function, *hotels(*range(2, 12))).rejects) == 10


def test_objects_that_are_bad_in_themselves_break_no_function() -> None:
    """It has returned them as they were: what the fields say of them afterwards is said object by object."""
    for when in ("before", "after"):
        spec = spec_with({"id": "text", "stars": {"type": "integer", "maximum": 5}}, when=when)
        chunk = through(spec, lambda frame: frame, *hotels(*[9] * 50))
        assert [reject.error for reject in chunk.rejects] == ["maximum"] * 50


def test_each_attempt_is_progress() -> None:
    """Whoever looks for the bad objects of a chunk for long is not taken for dead."""
    function = Function(failing_for(99))
    moves: list[int] = []
    mapper = Mapper(SPEC, function=function, moved=lambda: moves.append(function.calls))
    mapper.map_chunk([page_of(*hotels(1, 99, 3))], ARTIFACT, nothing)
    assert moves == list(range(1, function.calls + 1))


def test_small_chunks_add_up_to_a_broken_function() -> None:
    """What a shard's chunks have shown so far counts."""
    mapper = Mapper(SPEC, function=Function(failing_for(3)))
    page = page_of(*hotels(3, 3, 3, 3, 3))
    for _ in range(6):
        assert len(mapper.map_chunk([page], ARTIFACT, nothing).rejects) == 5
    with pytest.raises(TransformBroken):
        mapper.map_chunk([page], ARTIFACT, nothing)


def test_many_bad_objects_do_not_break_a_function_that_works() -> None:
    """Forty in a row are bad, and what follows comes through."""
    chunk = through(SPEC, failing_for(99), *hotels(*[99] * 40, *[3] * 24))
    assert (len(chunk.rejects), chunk.objects) == (40, 24)


def test_a_frame_that_was_changed_is_not_handed_out_again() -> None:
    """A function that fails half way through sees what it was to see, at the next call."""

    def function(frame: Any) -> Any:
        frame["stars"] = frame["stars"] + 1
        frame.loc[frame.index[0], "id"] = frame["id"].iloc[0]
        if 100 in frame["stars"].tolist():
            raise ValueError("too many")
        return frame

    chunk = through(SPEC, function, *hotels(1, 2, 99, 3))
    assert [(row["id"], row["stars"]) for row in values_after(SPEC, chunk)] == [("0", 2), ("1", 3), ("3", 4)]


def test_nested_values_that_were_changed_are_not_handed_out_again() -> None:
    """So it is with lists in the records."""
    spec = spec_with({"id": "text", "tags": "json"}, when="before")

    def function(frame: Any) -> Any:
        for tags in frame["tags"]:
            tags.append("seen")
        if len(frame) > 1:
            raise ValueError("one at a time")
        return frame

    chunk = through(spec, function, '{"id": "1", "tags": []}', '{"id": "2", "tags": ["a"]}')
    assert [row["tags"] for row in values_after(spec, chunk)] == ['["seen"]', '["a","seen"]']


@pytest.mark.parametrize("error", [SystemExit(3), ArithmeticError(), RecursionError("deep"), KeyError("x")])
def test_whatever_an_object_makes_a_function_raise_is_its_own(error: BaseException) -> None:
    """An exit, too: it ends no worker."""
    chunk = through(SPEC, failing_for(99, error=error), *hotels(3, 99))
    assert [(reject.key, type(error).__name__ in reject.message) for reject in chunk.rejects] == [("1", True)]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), GeneratorExit()])
def test_what_is_no_objects_fault_goes_on(error: BaseException) -> None:
    """Somebody who stops the process."""
    with pytest.raises(type(error)):
        through(SPEC, failing_for(99, error=error), *hotels(3, 99))


def test_a_lack_of_memory_makes_no_dead_letter() -> None:
    """The machine is short of it, and not the object: the shard is tried again later, and says in whose code it was."""
    with pytest.raises(TransformUnavailable, match=r"enrich failed at hotels\.py:3: MemoryError: no room"):
        through(SPEC, failing_for(99, error=MemoryError("no room")), *hotels(3, 99))


def test_an_outage_makes_no_dead_letter() -> None:
    """What the function asks cannot be reached: the shard is tried again later."""
    with pytest.raises(TransformUnavailable, match=r"enrich failed at hotels\.py:3: OutOfReach: no route"):
        through(SPEC, failing_for(99, error=OutOfReach("no route")), *hotels(3, 99))


def test_what_an_error_says_is_bounded_and_can_be_stored() -> None:
    """A message may be long, and hold what Postgres takes for no text."""
    chunk = through(SPEC, failing_for(99, error=ValueError("a\0b\n\ud800" + "x" * 5_000)), *hotels(3, 99))
    (reject,) = chunk.rejects
    assert r"ValueError: a\u0000b\n\ud800xxx" in reject.message
    assert len(reject.message) < 500


class Mute(Exception):
    """An error that cannot even be told."""

    def __str__(self) -> str:
        """Fail."""
        raise RuntimeError("no words")


def test_an_error_that_cannot_be_told_is_named() -> None:
    """Its class is known."""
    chunk = through(SPEC, failing_for(99, error=Mute()), *hotels(3, 99))
    assert chunk.rejects[0].message == "transforms.hotels.enrich failed at hotels.py:3: Mute"


def _prints(frame: Any) -> Any:
    print("hello")  # noqa: T201
    sys.stderr.write("hello\n")
    return frame


def _warns(frame: Any) -> Any:
    warnings.warn("careful", stacklevel=1)
    return frame


@pytest.mark.filterwarnings("ignore:careful")
@pytest.mark.parametrize(
    "function",
    [
        _prints,
        _warns,
        lambda frame: frame.iloc[::-1],
        lambda frame: frame.sort_values("stars", ascending=False),
        lambda frame: frame.assign(scratch=1),
        lambda frame: frame[["stars", "id"]],
        lambda frame: pd.concat([frame.iloc[1:], frame.iloc[:1]]),
    ],
)
def test_what_does_not_change_a_value_changes_nothing(function: Callable[[Any], Any]) -> None:
    """The order of rows and columns, columns beside the declared ones, what is printed."""
    chunk = through(SPEC, function, *hotels(1, 2, 3))
    assert [(row["id"], row["stars"]) for row in values_after(SPEC, chunk)] == [("0", 1), ("1", 2), ("2", 3)]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda _: None, "transforms.hotels.enrich has returned NoneType, and no DataFrame"),
        (lambda frame: frame["stars"], "has returned Series, and no DataFrame"),
        (lambda frame: frame.drop(columns="stars"), "has returned a frame that lacks stars"),
        (lambda frame: frame.reset_index(drop=True), 'labels that it was not given, such as "0"'),
        (lambda frame: frame.reset_index(), 'labels that it was not given, such as "0"'),
        (lambda frame: pd.concat([frame, frame]), "the same label twice"),
        (lambda frame: pd.concat([frame, frame[["id"]]], axis=1), "with the column id twice"),
        (lambda frame: pd.concat({"a": frame}, axis=1), "columns on several levels"),
    ],
)
def test_a_frame_that_leads_nowhere_is_told(function: Callable[[Any], Any], message: str) -> None:
    """It is unusable for each single object as well."""
    chunk = through(SPEC, function, *hotels(1, 2))
    assert [reject.key for reject in chunk.rejects] == ["0", "1"]
    assert all(message in reject.message for reject in chunk.rejects)
    assert all(reject.error == "function" for reject in chunk.rejects)


def test_an_object_that_does_not_come_back_is_named() -> None:
    """It is rejected, and not lost."""
    chunk = through(SPEC, lambda frame: frame[frame["stars"] > 2], *hotels(3, 2, 4, 1))
    assert [row["id"] for row in values_after(SPEC, chunk)] == ["0", "2"]
    assert [(reject.key, reject.error) for reject in chunk.rejects] == [("1", "not-returned"), ("3", "not-returned")]


def test_an_object_that_comes_twice_in_a_chunk_has_two_rows() -> None:
    """The label is of the record: which of its versions counts is decided later."""
    chunk = through(SPEC, lambda frame: frame, '{"id": "1", "stars": 1}', '{"id": "1", "stars": 2}')
    assert [row["stars"] for row in values_after(SPEC, chunk)] == [1, 2]
