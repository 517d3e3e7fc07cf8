"""Rows of state that make no sense any more, met in the middle of a run: rebuilt from artifacts, and the target is right."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
import urllib3
from structlog.testing import capture_logs

from sluice import log_events
from sluice.adapters.postgres import conninfo
from sluice.errors import FlightTaken, RedoNeeded, StateUnreadable
from sluice.flow.admission import admit
from sluice.flow.gate import decide
from sluice.flow.inline import resume_inline, run_inline
from sluice.flow.rebuilding import rebuilding
from sluice.flow.sharder import plan_shards
from sluice.model.artifact import ArtifactKind
from sluice.model.base import RunId, ShardKey
from sluice.model.lifecycle import RunEvent, RunStatus, ShardStatus, Step, Verdict
from sluice.model.run import Origin, ReviewMode, RunRequest
from sluice.ports import ConnectionInfo, Page, PageRequest, Services, Source
from tests.support.nouns import MINUTE, a_decision
from tests.support.servers import Supplier
from tests.support.small_project import small_project
from tests.unit.fakes.metrics import MemoryMetrics

RUN, TOKYO = RunId("run-1"), ShardKey("tokyo")

DAMAGE: dict[str, Any] = {
    "run": "update sluice_state.run set window_start = created_at, window_end = created_at",
    "shard": """update sluice_state.shard set params = '{"region": 7}' where key = 'tokyo'""",
    "review": "update sluice_state.review set figures = '{}'",
}


@pytest.fixture
def metrics() -> MemoryMetrics:
    """What is counted."""
    return MemoryMetrics()


@pytest.fixture
def services(
    tmp_path: Path, database: ConnectionInfo, artifacts: ConnectionInfo, supplier: Supplier, metrics: MemoryMetrics
) -> Iterator[Services]:
    """All that a run needs, with small pages and a page to a chunk."""
    with small_project(tmp_path, database, artifacts, supplier, metrics) as opened:
        yield opened


@pytest.fixture
def rows(database: ConnectionInfo) -> Iterator[psycopg.Connection]:
    """A look behind the stores."""
    with psycopg.connect(conninfo(database), autocommit=True) as connection:
        yield connection


class DamagingSource:
    """Damages a row once, behind the third page it yields."""

    def __init__(self, source: Source, rows: psycopg.Connection, table: str, done: list[str]) -> None:
        self._source, self._rows, self._table, self._done = source, rows, table, done

    def pages(self, request: PageRequest) -> Iterator[Page]:
        """Yield the pages of the source."""
        for number, page in enumerate(self._source.pages(request), start=1):
            if number == 3 and request.shard["region"] == TOKYO and not self._done:
                self._rows.execute(DAMAGE[self._table])
                self._done.append(self._table)
            yield page


class DamagingReviews:
    """Damages the first review as soon as it is kept."""

    def __init__(self, reviews: Any, rows: psycopg.Connection) -> None:
        self._reviews, self._rows, self._done = reviews, rows, False

    def save(self, *arguments: Any) -> Any:
        """Keep a review."""
        kept = self._reviews.save(*arguments)
        if not self._done:
            self._rows.execute(DAMAGE["review"])
            self._done = True
        return kept

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reviews, name)


def request(**changes: Any) -> RunRequest:
    """Ask for the hotels."""
    return RunRequest(sync="hotels", origin=Origin(), **changes)


def undisturbed(supplier: Supplier) -> list[str]:
    """The keys that a run which nothing happens to would publish."""
    feeds = [
        urllib3.request("GET", f"{supplier.url}/hotels?region={region}&limit=10000&quiet=1", retries=False)
        for region in ("tokyo", "brittany")
    ]
    return sorted(hotel["id"] for feed in feeds for hotel in json.loads(feed.data)["hotels"])


def assert_right(rows: psycopg.Connection, supplier: Supplier) -> None:
    """Every object is there, became so by one event, and every pointer that counts is of the present epoch."""
    expected = undisturbed(supplier)
    assert [key for (key,) in rows.execute('select id from public.hotels order by id collate "C"')] == expected
    events = rows.execute("select key from sluice_ledger.object_event where outcome = 'created' order by key").fetchall()
    assert [key for (key,) in events] == expected
    chunks = rows.execute(
        """
        select shard.chunks, count(*) from sluice_state.shard as shard join sluice_state.artifact as raw
            on raw.run = shard.run and raw.shard = shard.key and raw.kind = 'raw' and raw.superseded_at is null
        group by shard.run, shard.key
        """
    ).fetchall()
    assert all(counted == stored for counted, stored in chunks)


@pytest.mark.parametrize("table", ["run", "shard"])
def test_a_row_damaged_in_mid_fetch_is_rebuilt(
    services: Services, rows: psycopg.Connection, supplier: Supplier, metrics: MemoryMetrics, table: str
) -> None:
    """The run goes on by itself to its end; a shard begins again, in a second epoch, and a run loses nothing."""
    done: list[str] = []

    def source(*arguments: Any) -> Source:
        return DamagingSource(services.source(*arguments), rows, table, done)

    with capture_logs() as logs:
        run = run_inline(replace(services, source=source), request())
    assert (done, run.status) == ([table], RunStatus.SUCCEEDED)
    assert_right(rows, supplier)
    rebuilt = [log for log in logs if log["event"] == log_events.STATE_ROW_REBUILT]
    assert [log["table"] for log in rebuilt] == [table]
    assert metrics.of("state_rebuilt", table=table) == 1
    epochs = {shard.key: shard.epoch for shard in services.shards.of(run.id)}
    assert epochs == {"brittany": 0, "tokyo": 1 if table == "shard" else 0}


def test_a_review_damaged_before_its_publication_is_made_again(
    services: Services, rows: psycopg.Connection, supplier: Supplier
) -> None:
    """What policy had approved it approves again, and it is published once."""
    damaging: Any = DamagingReviews(services.reviews, rows)
    run = run_inline(replace(services, reviews=damaging), request())
    assert run.status is RunStatus.SUCCEEDED
    assert_right(rows, supplier)
    assert rows.execute("select count(*) from sluice_ledger.publication").fetchone() == (1,)


def test_a_review_damaged_while_it_waits_has_to_be_approved_again(
    services: Services, rows: psycopg.Connection, supplier: Supplier
) -> None:
    """A decision about what cannot be read counts for nothing: the person is asked again."""
    run = run_inline(services, request(review=ReviewMode.ALWAYS))
    waiting = services.reviews.latest(run.id)
    assert waiting is not None
    decide(services, waiting.id, a_decision())
    rows.execute(DAMAGE["review"])
    assert resume_inline(services, run.id).status is RunStatus.WAITING
    again = services.reviews.latest(run.id)
    assert again is not None
    assert (again.verdict, again.decision, again.digest) == (Verdict.NEEDS_HUMAN, None, waiting.digest)
    decide(services, again.id, a_decision())
    assert resume_inline(services, run.id).status is RunStatus.SUCCEEDED
    assert_right(rows, supplier)


def test_a_run_damaged_while_it_waits_goes_on_waiting(services: Services, rows: psycopg.Connection, supplier: Supplier) -> None:
    """Its status is kept, and the approval counts: nothing but the row was lost."""
    run = run_inline(services, request(review=ReviewMode.ALWAYS))
    rows.execute(DAMAGE["run"])
    with pytest.raises(RedoNeeded), rebuilding(services):
        services.runs.get(run.id)
    rebuilt = services.runs.get(run.id)
    assert rebuilt == run.model_copy(update={"token": rebuilt.token})
    assert rebuilt.token > run.token
    waiting = services.reviews.latest(run.id)
    assert waiting is not None
    decide(services, waiting.id, a_decision())
    assert resume_inline(services, run.id).status is RunStatus.SUCCEEDED
    assert_right(rows, supplier)


def test_a_run_whose_status_makes_no_sense_has_failed(services: Services, rows: psycopg.Connection) -> None:
    """Nobody knows how it stood, so it may be gone on with as any run that failed."""
    admit(services, request(), RUN)
    rows.execute("alter table sluice_state.run drop constraint run_status_check")
    rows.execute("update sluice_state.run set status = 'dreaming'")
    with pytest.raises(RedoNeeded), rebuilding(services):
        services.runs.get(RUN)
    run = services.runs.get(RUN)
    assert (run.status, run.step, run.finished_at is not None) == (RunStatus.FAILED, Step.ADMIT, True)
    assert run.failure is not None
    assert run.failure.error == "StateUnreadable"
    assert services.runs.enter(RUN, Step.SHARD, MINUTE).status is RunStatus.RUNNING


def test_an_earlier_run_that_cannot_be_read_holds_up_nobody(
    services: Services, rows: psycopg.Connection, supplier: Supplier
) -> None:
    """Who asks for the same again rebuilds the row of the run before, and then works as ever."""
    services.runs.end(admit(services, request(), RUN), RunEvent.FAIL)
    rows.execute(DAMAGE["run"])
    assert run_inline(services, request()).status is RunStatus.SUCCEEDED
    assert services.runs.get(RUN).status is RunStatus.FAILED
    assert_right(rows, supplier)


def test_what_cannot_be_rebuilt_says_why(services: Services, rows: psycopg.Connection) -> None:
    """A run admitted before copies were stored stays unreadable, by name, and is left as it is."""
    admit(services, request(), RUN)
    rows.execute("delete from sluice_state.artifact where kind = 'run'")
    rows.execute(DAMAGE["run"])
    with pytest.raises(StateUnreadable, match=r"run run-1 .* no copy of it was stored"), rebuilding(services):
        services.runs.get(RUN)


def test_of_two_that_rebuild_at_once_one_does(services: Services, rows: psycopg.Connection) -> None:
    """A row that somebody has rebuilt meanwhile is not rebuilt again, or work would be lost twice."""
    admit(services, request(), RUN)
    plan_shards(services, RUN)
    rows.execute(DAMAGE["shard"])
    for _ in range(2):
        with pytest.raises(RedoNeeded), rebuilding(services):
            raise StateUnreadable("shard tokyo", table="shard", run=RUN, shard=TOKYO)
    tokyo = next(shard for shard in services.shards.of(RUN) if shard.key == TOKYO)
    assert (tokyo.epoch, tokyo.status, tokyo.params) == (1, ShardStatus.PENDING, {"region": "tokyo"})
    journal = rows.execute("select event, status, facts from sluice_state.event where event = 'restart'").fetchall()
    assert journal == [("restart", "pending", {"epoch": 1})]


def test_a_shard_is_not_rebuilt_while_another_run_of_the_request_is_alive(services: Services, rows: psycopg.Connection) -> None:
    """Only who has the flight may begin a shard again."""
    admit(services, request(), RUN)
    plan_shards(services, RUN)
    services.runs.end(services.runs.get(RUN), RunEvent.FAIL)
    admit(services, request(), RunId("run-2"))
    rows.execute(DAMAGE["shard"])
    with pytest.raises(FlightTaken), rebuilding(services):
        services.shards.of(RUN)


def test_the_copy_of_a_run_is_what_was_admitted(services: Services) -> None:
    """It is stored beside the pinned spec, as a small artifact of its own."""
    run = admit(services, request(shards=(TOKYO,)), RUN)
    (pointer,) = services.pointers.of(RUN, ArtifactKind.RUN)
    assert json.loads(services.artifacts.get(pointer)) == run.model_dump(mode="json")
