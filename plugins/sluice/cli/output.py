"""Results in; tables for people, or one JSON document for programs, out. Results go to stdout, everything else to stderr."""

import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from pydantic import BaseModel
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sluice.model.scalars import spell_duration, spell_instant

_PIPE_WIDTH: Final = 240
"""Columns where there is no terminal: nothing should be cut short for a file."""


def console(*, stderr: bool) -> Console:
    """Return a console that takes no text for markup and no number for something to paint."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else _PIPE_WIDTH
    return Console(stderr=stderr, markup=False, highlight=False, emoji=False, width=width)


class Output:
    """The two streams of one command."""

    def __init__(self, *, as_json: bool = False) -> None:
        self.as_json = as_json
        self.out = console(stderr=False)
        self.err = console(stderr=True)

    def result(self, document: Mapping[str, Any], draw: Callable[[Console], None]) -> None:
        """Print the result: `document` as JSON if that was asked for, else what `draw` draws."""
        if self.as_json:
            write(as_json(document) + "\n")
            return
        with self.out.capture() as drawn:
            draw(self.out)
        write(drawn.get())

    def note(self, text: str) -> None:
        """Say something that is no result."""
        self.err.print(printable(text), soft_wrap=True)

    def fail(self, text: str, mend: str | None = None) -> None:
        """Say in red what went wrong, and what to do next."""
        self.err.print(printable(text, "bold red"), soft_wrap=True)
        if mend:
            self.err.print(printable(mend), soft_wrap=True)


def write(text: str) -> None:
    """Write to stdout; a reader that has seen enough, such as `head`, changes nothing about how the command ends."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def write_exactly(data: bytes) -> None:
    """Write bytes to stdout as they are, whatever a terminal would make of them."""
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def printable(text: str, style: str = "") -> Text:
    """Return text that cannot steer the terminal: a supplier may have written part of it."""
    return Text("".join(char if char.isprintable() or char == "\n" else ascii(char)[1:-1] for char in text), style=style)


def table(columns: Iterable[str], rows: Iterable[Iterable[Any]], title: str | None = None) -> Table:
    """Return a table; numbers stand at the right."""
    drawn = Table(box=SIMPLE_HEAD, title=title, title_justify="left", title_style="bold", pad_edge=False)
    listed = [list(row) for row in rows]
    for index, name in enumerate(columns):
        numeric = bool(listed) and all(isinstance(row[index], int) for row in listed)
        drawn.add_column(name, justify="right" if numeric else "left", overflow="fold")
    for row in listed:
        drawn.add_row(*(printable(spell(value)) for value in row))
    return drawn


def pairs(rows: Iterable[tuple[str, Any]]) -> Table:
    """Return names beside their values, without those that have none."""
    drawn = Table.grid(padding=(0, 2))
    for name, value in rows:
        if value not in (None, ""):
            drawn.add_row(Text(name, style="dim"), printable(spell(value)))
    return drawn


def numeral(number: int | None) -> str:
    """Return a number that is a name, such as a publication's: without separators, as people have to type it."""
    return "" if number is None else str(number)


def spell(value: Any) -> str:
    """Return a value as people read it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, datetime):
        return f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%SZ}"
    if isinstance(value, timedelta):
        return spell_duration(value)
    return value.hex() if isinstance(value, bytes) else str(value)


def as_json(document: Any) -> str:
    """Return JSON; times are ISO 8601 in UTC, hashes hexadecimal."""
    return json.dumps(_plain(document), ensure_ascii=False, indent=2, default=_scalar)


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return _plain(value.model_dump())
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in value]
    return value


def _scalar(value: Any) -> Any:
    if isinstance(value, datetime):
        return spell_instant(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, timedelta):
        return spell_duration(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Decimal):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON")
