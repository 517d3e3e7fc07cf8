"""`sluice validate` looks into the functions that specs name."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml


@pytest.fixture
def module(project: Path) -> Iterator[Path]:
    """The team's module, with one function that will do and one that will not."""
    file = project / "include/cleaning_5e1d.py"
    file.write_text("def tidy(frame, context):\n    return frame\n\n\ndef lonely(frame):\n    return frame\n")
    yield file
    sys.modules.pop("cleaning_5e1d", None)


def declare(project: Path, **changes: Any) -> None:
    """Let the demo's spec have these keys as well."""
    file = project / "include/syncs/hotels.yaml"
    file.write_text(file.read_text() + yaml.safe_dump(changes))


def test_a_function_that_fits_is_all_right(invoke: Any, project: Path, module: Path) -> None:
    """It is imported from include/, and nothing is written there."""
    declare(project, transform={"function": "cleaning_5e1d.tidy"})
    assert invoke("validate", "hotels").stdout == "hotels: all right\n"
    assert not list((project / "include").rglob("*.pyc"))


@pytest.mark.parametrize(
    ("transform", "message"),
    [
        ({"function": "cleaning_5e1d.absent"}, r"transform\.function: cleaning_5e1d \(.*\) has no absent"),
        ({"function": "cleaning_5e1d.lonely"}, r"transform\.function: cleaning_5e1d\.lonely has to take two arguments"),
        ({"function": "nowhere_5e1d.tidy"}, r"transform\.function: nowhere_5e1d cannot be imported"),
        ({"function": "tidy"}, r"transform\.function: 'tidy' has to be a dotted path"),
        (
            {"function": "cleaning_5e1d.tidy", "when": "during"},
            r"transform\.when: unknown value 'during'.* allowed: before, after",
        ),
    ],
)
def test_a_function_that_does_not_fit_is_told_with_its_line(
    invoke: Any, project: Path, module: Path, transform: dict[str, str], message: str
) -> None:
    """Of one sync, and of all."""
    declare(project, transform=transform)
    answer = invoke("validate", "hotels")
    assert answer.exit_code == 2
    assert re.match(rf"include/syncs/hotels\.yaml:\d+: {message}", answer.stdout)
    assert json.loads(invoke("validate", "--json").stdout)["problems"] == answer.stdout.splitlines()


def test_a_canarys_function_is_looked_at_too(invoke: Any, project: Path, module: Path) -> None:
    """It has a line of its own."""
    declare(project, canary={"version": 2, "share": "10%", "transform": {"function": "cleaning_5e1d.absent"}})
    assert re.search(r"hotels\.yaml:\d+: canary\.transform\.function: .* has no absent", invoke("validate", "hotels").stdout)
