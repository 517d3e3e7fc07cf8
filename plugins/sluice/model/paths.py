"""Where a value stands, as people write it, comes in; its steps from the record's root, and the same for messages, go out."""

import re
from typing import Annotated, Any, Final, TypeAlias

from pydantic import BeforeValidator

from sluice.model.scalars import as_written

EACH: Final = "[*]"
"""The step to all items of an array."""

_HIGHEST: Final = 999_999
"""The last item a path can name."""
_LONGEST: Final = 100
"""Steps of a path; no record is nested deeper."""
_PART: Final = re.compile(r"([^\[\]]*)((?:\[(?:[0-9]{1,6}|\*)\])*)").fullmatch
_BRACKETS: Final = re.compile(r"\[([0-9]+|\*)\]").findall
_PLAIN: Final = re.compile(r"[^.\[\]\"]+").fullmatch


def _parse_step(value: Any) -> Any:
    if value == "":
        raise ValueError("may not be empty")
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError(  # noqa: TRY004 - pydantic takes no other for a mistake in a spec
            f"{as_written(value)} is no step: a key, the number of an array's item, or '{EACH}' for all its items"
        )
    if isinstance(value, int) and not 0 <= value <= _HIGHEST:
        raise ValueError(f"is {value}, but has to be a number from 0 to {_HIGHEST}")
    return value


def _parse_path(value: Any) -> Any:
    steps = _split(value) if isinstance(value, str) else value
    if not isinstance(steps, list | tuple):
        raise ValueError(  # noqa: TRY004 - as above
            f"{as_written(value)} is no path: keys joined by dots, or a list where a key has a dot or a bracket"
        )
    if steps and (isinstance(steps[0], int) or steps[0] == EACH):
        raise ValueError("has to begin with a key: a record is an object")
    if len(steps) > _LONGEST:
        raise ValueError(f"has {len(steps)} steps, but may have at most {_LONGEST}")
    return steps


def parse_path(value: Any) -> "Path":
    """Return a path as written in YAML; raise `ValueError` if it is none, or leads to the record itself."""
    path = tuple(_parse_step(step) for step in _parse_path(value))
    if not path:
        raise ValueError("may not be empty")
    return path


def _split(text: str) -> list[str | int]:
    steps: list[str | int] = []
    for part in text.split("."):
        match = _PART(part)
        if match is None:
            raise ValueError(
                f"{part!r} has a bracket that is neither [number] nor {EACH}: write a list of steps, each in quotes"
            )
        if match[1] or not match[2]:
            steps.append(match[1])
        steps += [EACH if inner == "*" else int(inner) for inner in _BRACKETS(match[2])]
    return steps


Path: TypeAlias = tuple[str | int, ...]
"""Keys of objects, numbers of items, and `EACH`."""

FieldPath = Annotated[tuple[Annotated[str | int, BeforeValidator(_parse_step)], ...], BeforeValidator(_parse_path)]
"""A `Path` as written in YAML: `rooms[0].code`, `rooms[*].code`, or a list where a key has a dot or a bracket."""


def spell_path(path: Path) -> str:
    """Return a path as people write it."""
    parts = []
    for step in path:
        if step == EACH or isinstance(step, int):
            parts.append(EACH if step == EACH else f"[{step}]")
        else:
            parts.append(f".{step}" if _PLAIN(step) else f'["{step}"]')
    return "".join(parts).removeprefix(".")
