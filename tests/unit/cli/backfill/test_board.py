"""The table of a backfill: rows with progress, rate and time left; lines for changes where there is no terminal."""

import io
from datetime import timedelta

from rich.console import Console

from sluice.cli.backfill.board import Board, Row, Rows, spell_left, summary_of
from sluice.model.backfill import Span
from sluice.model.base import RunId, ShardKey
from sluice.model.lifecycle import RunStatus, Step
from sluice.model.run import Failure, Run, Window
from tests.support.nouns import MINUTE, NOW, POLICY, a_pointer, a_run, plans
from tests.unit.flow.workshop import Workshop

DAY = timedelta(days=1)


def span(number: int, run: Run | None = None) -> Span:
    """Return the span of a day with a run."""
    return Span(window=Window(start=NOW + number * DAY, end=NOW + (number + 1) * DAY), run=run)


def console(*, is_terminal: bool) -> tuple[io.StringIO, Console]:
    """Return a console, and what is written to it."""
    written = io.StringIO()
    return written, Console(file=written, force_terminal=is_terminal, width=100, height=12, color_system=None)


def test_a_row_tells_shards_records_rate_and_time_left() -> None:
    """Going by the shards that have come in, while the run is at work."""
    shop = Workshop()
    services = shop.services
    run = services.runs.open(a_run(), POLICY)
    services.shards.plan(run, plans("a", "b", "c", "d"), {})
    run = services.runs.enter(RunId(run.id), Step.FETCH, MINUTE)
    claimed = services.shards.claim(run.id, ShardKey("a"))
    last = claimed.model_copy(update={"exhausted": True, "chunks": 1, "records": 60})
    services.shards.succeed(services.shards.checkpoint(last, a_pointer(shard="a"), MINUTE))
    shop.memory.clock.move(MINUTE)
    (row,) = Rows(services).of([span(0, run)])
    assert (row.done, row.shards, row.records, row.rate, row.left) == (1, 4, 60, 1.0, 3 * MINUTE)
    ended = Rows(services).of([span(0, run.model_copy(update={"status": RunStatus.PARTIAL})), span(1)])
    assert [(row.done, row.left) for row in ended] == [(1, None), (0, None)]


def test_lines_tell_what_has_changed() -> None:
    """A line for each span that stands otherwise than before, and why if it failed; nothing of what stands as it stood."""
    written, quiet = console(is_terminal=False)
    failed = a_run(status=RunStatus.FAILED, failure=Failure(error="X", message="503 \x1b[31mfor ever"))
    with Board(quiet) as board:
        board.show([Row(span(0)), Row(span(1))], NOW)
        board.show([Row(span(0), is_at_work=True), Row(span(1))], NOW)
        board.show([Row(span(0, failed), done=1, shards=2, records=3), Row(span(1))], NOW)
    lines = written.getvalue().splitlines()
    assert len(lines) == 2
    assert lines[0].endswith(": running")
    assert lines[1].endswith(": failed, 1 of 2 shards, 3 records, 503 \\x1b[31mfor ever")


def test_a_live_table_has_what_is_at_work_and_the_total() -> None:
    """Where there is no room for all rows, those at work come before those that are over; the time left goes by spans."""
    written, live = console(is_terminal=True)
    done = [Row(span(number, a_run(status=RunStatus.SUCCEEDED))) for number in range(20)]
    at_work = Row(span(20, a_run(status=RunStatus.RUNNING)), done=1, shards=2, records=1200, rate=20.0, left=MINUTE)
    with Board(live) as board:
        board.show([*done[:19], at_work, Row(span(21))], NOW)
        board.show([*done, at_work], NOW + MINUTE)
    shown = written.getvalue()
    assert "1 of 2" in shown
    assert "20/s" in shown
    assert "21 runs: 1 running, 20 succeeded; 1,200 records, 20 records/s, about 1m 00s left" in shown
    assert summary_of([at_work]) == "1 run: 1 running; 1,200 records"


def test_time_left_is_told_roughly() -> None:
    """In its two largest units."""
    spelled = [spell_left(timedelta(seconds=seconds)) for seconds in (7.4, 70, 3_600, 90_061)]
    assert spelled == ["7s", "1m 10s", "1h 00m", "25h 01m"]
