"""What the services of a stack are about in; one line for each of them, live on a terminal, out."""

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from sluice.cli.output import printable

_NARROWEST: Final = 20


@dataclass
class _Line:
    name: str
    state: str = "waiting"
    detail: str = ""
    began: float = 0.0
    seconds: float = 0.0


class Board:
    """One line for each service. Several threads may write to it; where there is no terminal, each end is one printed line."""

    def __init__(self, console: Console, names: Mapping[str, str]) -> None:
        """Show these lines from the beginning, under the names given; others join when something is said of them."""
        self._console = console
        self._lines = {key: _Line(name) for key, name in names.items()}
        self._spinner = Spinner("dots", style="cyan")
        self._lock = threading.Lock()
        self._live = Live(get_renderable=self._draw, console=console, refresh_per_second=8) if console.is_terminal else None

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._live:
            self._live.stop()

    @contextmanager
    def working(self, key: str, doing: str) -> Iterator[None]:
        """Show that a service is being started; it failed if the block raises."""
        self.begin(key, doing)
        try:
            yield
        except BaseException:
            self.failed(key, doing)
            raise

    def begin(self, key: str, doing: str) -> None:
        """Show what is being done about a service."""
        with self._lock:
            line = self._lines.setdefault(key, _Line(key))
            line.state, line.detail, line.began = "working", doing, line.began or time.monotonic()

    def done(self, key: str, detail: str, seconds: float | None = None) -> None:
        """Show that a service is there; `seconds` are what it took, where that is known better than by watching."""
        self._end(key, "done", detail, seconds)

    def failed(self, key: str, detail: str) -> None:
        """Show that a service could not be started."""
        self._end(key, "failed", detail)

    def passed_over(self, key: str, detail: str) -> None:
        """Show that there was no need."""
        self._end(key, "passed over", detail)

    def _end(self, key: str, state: str, detail: str, seconds: float | None = None) -> None:
        with self._lock:
            line = self._lines.setdefault(key, _Line(key))
            line.state, line.detail = state, detail
            line.seconds = seconds or (time.monotonic() - line.began if line.began else 0.0)
            if self._live is None:
                self._console.print(self._row(line), soft_wrap=True)

    def _draw(self) -> Table:
        drawn = Table.grid(padding=(0, 1))
        drawn.add_column(width=1)
        drawn.add_column(width=self._width())
        drawn.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
        for line in list(self._lines.values()):
            mark = self._spinner if line.state == "working" else _mark(line.state)
            drawn.add_row(mark, Text(line.name, style="" if line.began else "dim"), _detail(line))
        return drawn

    def _row(self, line: _Line) -> Text:
        return Text.assemble(_mark(line.state), " ", line.name.ljust(self._width()), " ", _detail(line))

    def _width(self) -> int:
        return max(_NARROWEST, *(len(line.name) for line in self._lines.values()))


def _mark(state: str) -> Text:
    return {"done": Text("✓", "bold green"), "failed": Text("✗", "bold red")}.get(state, Text("·", "dim"))


def _detail(line: _Line) -> Text:
    text = printable(line.detail)
    if line.state == "working":
        text.stylize("dim")
        text.append(f"  {time.monotonic() - line.began:.0f} s", "dim")
    elif line.seconds:
        text.append(f"  {line.seconds:.1f} s", "dim")
    return text
