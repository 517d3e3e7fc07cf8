"""`sluice up` and `sluice demo`: a project folder in; a running stack, or a sync run from end to end, out."""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Final

from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from sluice.cli.local.airflow import USER
from sluice.cli.local.board import Board
from sluice.cli.local.layout import Layout
from sluice.cli.local.services import LINES, Stack
from sluice.cli.local.settings_file import read_settings
from sluice.cli.output import console, pairs, printable
from sluice.errors import StackRunning

_SECONDS_BETWEEN_LOOKS: Final = 2.0


def up(project: Path) -> int:
    """Run the local stack until Ctrl-C or SIGTERM; raise `StackRunning` if one runs for this folder already."""
    layout, out = Layout(project), console(stderr=False)
    with layout.held():
        try:
            with running(layout, out, migrate_given=False) as stack:
                out.print(
                    Panel(pairs(_how_to_use(stack, layout.command)), title="The stack is up", title_align="left", expand=False)
                )
                while True:
                    time.sleep(_SECONDS_BETWEEN_LOOKS)
                    stack.raise_if_ended()
        except KeyboardInterrupt:
            return 0


def demo(project: Path) -> int:
    """Let Airflow run the sync `hotels`, in the stack that runs here or in one of its own; 0: the table holds the rows."""
    from sluice.cli.local.showcase import opened, show

    layout, out = Layout(project), console(stderr=False)
    try:
        with layout.held(), running(layout, out, migrate_given=True), opened(layout) as stack:
            return show(stack, layout.command, out)
    except StackRunning:
        out.print(printable("A local stack runs for this folder already: the demo uses it.", "dim"))
        with opened(layout) as stack:
            return show(stack, layout.command, out)


def clear(project: Path) -> None:
    """Remove all that the stack of a folder has made; raise `StackRunning` while one runs."""
    layout = Layout(project)
    with layout.held():
        Stack(layout, read_settings(project)).remove()


@contextmanager
def running(layout: Layout, out: Console, *, migrate_given: bool) -> Iterator[Stack]:
    """Start the stack of a folder that is held, and stop it in the end; SIGTERM and a closed terminal interrupt the block."""
    stack = Stack(layout, read_settings(layout.project))
    out.print(Text.assemble(("Sluice", "bold"), "  ", (str(layout.project), "dim")))
    with interruptible():
        try:
            with Board(out, LINES) as board:
                stack.start(board, migrate_given=migrate_given)
            yield stack
        finally:
            with uninterrupted():
                out.print(printable("stopping …", "dim"))
                stack.stop()
                out.print(printable(f"stopped; the data stays in {layout.root}", "dim"))


@contextmanager
def interruptible() -> Iterator[None]:
    """Let SIGTERM and SIGHUP raise `KeyboardInterrupt`, as Ctrl-C does."""

    def interrupt(_: int, __: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {kind: signal.signal(kind, interrupt) for kind in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Let nothing break off an orderly stop, whose every wait is bounded."""
    before = {kind: signal.signal(kind, signal.SIG_IGN) for kind in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)


def _how_to_use(stack: Stack, command: str) -> list[tuple[str, str]]:
    return [
        ("Airflow", stack.airflow.url),
        ("user", USER),
        ("password", stack.airflow.password),
        ("try", f"{command} run hotels --inline    (in a second terminal, in this folder)"),
        ("look", f"{command} runs"),
        ("stop", "Ctrl-C"),
    ]
