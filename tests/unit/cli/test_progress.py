"""Progress: what log events show, in a terminal and without one."""

import io
import threading

import pytest
from rich.console import Console
from structlog.typing import EventDict

from sluice import log_events
from sluice.cli.progress import RunProgress

RUN: list[EventDict] = [
    {"event": log_events.STEP_STARTED, "step": "shard"},
    {"event": log_events.SHARD_CLAIMED, "shard": "tokyo", "pages": 1, "records": 500},
    {"event": log_events.STEP_STARTED, "step": "fetch", "shard": "tokyo"},
    {"event": log_events.PAGE_FETCHED, "shard": "tokyo", "records": 500},
    {"event": log_events.PAGE_FETCHED, "shard": "tokyo", "records": 206},
    {"event": log_events.SHARD_FETCHED, "shard": "tokyo", "pages": 3, "records": 1206},
    {"event": log_events.SHARD_TRANSFORMED, "shard": "tokyo"},
    {"event": log_events.SHARD_CLAIMED, "shard": "evil\x1b[2J"},
    {"event": log_events.SHARD_FAILED, "shard": "evil\x1b[2J"},
    {"event": log_events.STEP_STARTED, "step": "review"},
    {"event": log_events.REVIEW_MADE, "review": "r"},
]


def test_without_a_terminal_there_are_plain_lines() -> None:
    """Steps and turns of shards make a line each; single pages do not. A resumed shard goes on counting where it stood."""
    stream = io.StringIO()
    with RunProgress(Console(file=stream, width=100)) as progress:
        for event in RUN:
            assert progress(None, "info", event) is event
    assert stream.getvalue().splitlines() == [
        "shard …",
        "tokyo: fetching, 1 pages, 500 records",
        "tokyo: fetched, 3 pages, 1,206 records",
        "tokyo: done, 3 pages, 1,206 records",
        "evil\\x1b[2J: fetching, 0 pages, 0 records",
        "evil\\x1b[2J: failed, 0 pages, 0 records",
        "review …",
    ]


def test_who_waits_for_another_run_says_for_which() -> None:
    """One line, until there is something else to tell."""
    stream = io.StringIO()
    with RunProgress(Console(file=stream, width=100)) as progress:
        progress(None, "warning", {"event": log_events.FLIGHT_AWAITED, "owner": "inline-1"})
    assert stream.getvalue().splitlines() == ["waits for run inline-1, which works on the same request …"]


def test_in_a_terminal_each_shard_has_a_line_that_moves() -> None:
    """The display shows every shard's tally, and a supplier's control characters never reach the terminal."""
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=100)
    with RunProgress(console) as progress:
        for event in RUN:
            progress(None, "info", event)
    shown = stream.getvalue()
    assert "tokyo: done, 3 pages, 1,206 records" in shown
    assert "evil\\x1b[2J: failed" in shown
    assert "\x1b[2J" not in shown


def test_pages_of_several_threads_are_all_counted() -> None:
    """Events may come from the thread that prefetches as well."""
    stream = io.StringIO()
    progress = RunProgress(Console(file=stream, width=100))

    def fetch() -> None:
        for _ in range(500):
            progress(None, "info", {"event": log_events.PAGE_FETCHED, "shard": "a", "records": 2})

    threads = [threading.Thread(target=fetch) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    progress(None, "info", {"event": log_events.SHARD_FETCHED, "shard": "a"})
    assert stream.getvalue().splitlines()[-1] == "a: fetched, 2,000 pages, 4,000 records"


@pytest.mark.parametrize("is_terminal", [False, True])
def test_many_shards_are_told_of_together(*, is_terminal: bool) -> None:
    """One line says what they have come to, not one for each of thousands; the last one through is told of at once."""
    stream = io.StringIO()
    with RunProgress(Console(file=stream, force_terminal=is_terminal, width=100)) as progress:
        progress(None, "info", {"event": log_events.SHARDS_PLANNED, "shards": 2_000})
        for number in range(2_000):
            shard = f"s{number}"
            progress(None, "info", {"event": log_events.SHARD_CLAIMED, "shard": shard, "pages": 0, "records": 0})
            progress(None, "info", {"event": log_events.SHARD_FETCHED, "shard": shard, "pages": 1, "records": 3})
            progress(
                None, "info", {"event": log_events.SHARD_TRANSFORMED if number else log_events.SHARD_FAILED, "shard": shard}
            )
    assert "1,999 of 2,000 shards done, 1 failed, 6,000 records" in stream.getvalue()
    assert "s1999" not in stream.getvalue()
