"""What the state stores leave in Postgres beyond what their port tells: the journal, versions, checks."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from sluice.adapters.postgres import Database, conninfo
from sluice.adapters.state import PostgresReviewStore, PostgresRunStore, PostgresShardStore
from sluice.errors import Fenced, StateTooNew, StateUnavailable
from sluice.model.base import ReviewId, RunId, ShardKey
from sluice.model.lifecycle import RunEvent, Step
from sluice.model.run import Failure
from sluice.ports import ConnectionInfo
from tests.support.nouns import MINUTE, OVER, POLICY, a_decision, a_pointer, a_review, a_run, plans

RUN, PARIS = RunId("run-1"), ShardKey("paris")


@pytest.fixture
def state(database: ConnectionInfo) -> Iterator[Database]:
    """The state database."""
    opened = Database(database, StateUnavailable)
    yield opened
    opened.close()


@pytest.fixture
def rows(database: ConnectionInfo) -> Iterator[psycopg.Connection[dict[str, Any]]]:
    """A look behind the stores."""
    with psycopg.connect(conninfo(database), autocommit=True, row_factory=dict_row) as connection:
        yield connection


def journal(rows: psycopg.Connection[dict[str, Any]], run: str = RUN) -> list[tuple[Any, ...]]:
    """Return the run's events, without their instants and facts."""
    found = rows.execute("select seq, subject, name, event, status from sluice_state.event where run = %s order by seq", (run,))
    return [tuple(event.values()) for event in found]


def test_every_transition_is_in_the_journal_in_order(state: Database, rows: psycopg.Connection[dict[str, Any]]) -> None:
    """Who reads the events knows what happened to the run, its shards and its reviews, without a gap."""
    runs, shards, reviews = PostgresRunStore(state), PostgresShardStore(state), PostgresReviewStore(state)
    opened = runs.open(a_run(), POLICY)
    shards.plan(opened, plans(PARIS), {})
    shards.fail(shards.claim(RUN, PARIS), Failure(error="CursorStuck", message="twice"))
    claimed = shards.claim(RUN, PARIS)
    done = claimed.model_copy(update={"exhausted": True, "chunks": 1})
    shards.succeed(shards.checkpoint(done, a_pointer(shard=PARIS), MINUTE))
    entered = runs.enter(RUN, Step.REVIEW, MINUTE)
    reviews.save(a_review("r1"), entered)
    reviews.save(a_review("r2"), entered)
    runs.end(entered, RunEvent.PARK)
    reviews.decide(ReviewId("r2"), a_decision())
    assert journal(rows) == [
        (1, "run", "run-1", "open", "pending"),
        (2, "run", "run-1", "plan", "pending"),
        (3, "shard", "paris", "claim", "running"),
        (4, "shard", "paris", "fail", "failed"),
        (5, "shard", "paris", "claim", "running"),
        (6, "shard", "paris", "succeed", "succeeded"),
        (7, "run", "run-1", "enter", "running"),
        (8, "review", "r1", "make", "needs-human"),
        (9, "review", "r2", "make", "needs-human"),
        (10, "review", "r1", "supersede", "superseded"),
        (11, "run", "run-1", "park", "waiting"),
        (12, "review", "r2", "approve", "approved"),
    ]


def test_a_takeover_is_in_both_journals(state: Database, rows: psycopg.Connection[dict[str, Any]]) -> None:
    """The dead run tells who took over, the new one whose checkpoints it has."""
    runs, shards = PostgresRunStore(state), PostgresShardStore(state)
    shards.plan(runs.open(a_run(), POLICY), plans(PARIS), {})
    moved = shards.claim(RUN, PARIS).model_copy(update={"chunks": 1})
    shards.checkpoint(moved, a_pointer(shard=PARIS), OVER)
    runs.open(a_run("run-2"), POLICY)
    assert journal(rows)[-2:] == [(4, "run", "run-1", "fail", "failed"), (5, "shard", "paris", "fail", "failed")]
    assert journal(rows, "run-2")[-1][1:] == ("run", "run-2", "adopt", "pending")
    facts = rows.execute("select facts from sluice_state.event where event = 'adopt'").fetchone()
    assert facts == {"facts": {"donor": "run-1", "shards": 1}}


def test_of_older_runs_the_newest_is_locked_first(
    state: Database, rows: psycopg.Connection[dict[str, Any]], database: ConnectionInfo
) -> None:
    """Two reviews that are saved at once wait for each other in no circle: nobody has a run's lock before a newer one's."""
    runs, reviews = PostgresRunStore(state), PostgresReviewStore(state)
    for name, shards in (("run-1", ()), ("run-2", (PARIS,))):
        reviews.save(a_review(f"of-{name}", run=name), runs.open(a_run(name, request_key=name, shards=shards), POLICY))
    newest = runs.open(a_run("run-3", request_key="run-3"), POLICY)
    blocked = "select from pg_stat_activity where datname = current_database() and cardinality(pg_blocking_pids(pid)) > 0"
    with psycopg.connect(conninfo(database)) as holder, ThreadPoolExecutor(1) as pool:
        holder.execute("select from sluice_state.run where id = 'run-1' for update")
        saving = pool.submit(reviews.save, a_review("of-run-3", run="run-3"), newest)
        while rows.execute(blocked).fetchone() is None:
            assert not saving.done()
        free = rows.execute("select id from sluice_state.run where id = 'run-2' for update skip locked").fetchall()
        holder.rollback()
        saving.result()
    assert free == []
    assert reviews.waiting() == [reviews.get(ReviewId("of-run-3"))]


def test_a_refused_write_leaves_no_event(state: Database, rows: psycopg.Connection[dict[str, Any]]) -> None:
    """Row and event are written together or not at all."""
    runs = PostgresRunStore(state)
    opened = runs.open(a_run(), POLICY)
    runs.enter(RUN, Step.SHARD, MINUTE)
    before = journal(rows)
    with pytest.raises(Fenced):
        runs.end(opened, RunEvent.FAIL)
    assert journal(rows) == before


def test_a_takeover_leaves_old_checkpoints_behind(state: Database, rows: psycopg.Connection[dict[str, Any]]) -> None:
    """What was fetched more than a day ago is better fetched again, however the run died."""
    runs, shards = PostgresRunStore(state), PostgresShardStore(state)
    shards.plan(runs.open(a_run(), POLICY), plans(PARIS, "rome"), {})
    for key in (PARIS, ShardKey("rome")):
        moved = shards.claim(RUN, key).model_copy(update={"chunks": 1})
        shards.checkpoint(moved, a_pointer(shard=key), OVER)
    rows.execute("update sluice_state.shard set progress_at = now() - interval '25 hours' where key = 'paris'")
    runs.open(a_run("run-2"), POLICY)
    assert [(shard.key, shard.chunks) for shard in shards.of(RunId("run-2"))] == [("paris", 0), ("rome", 1)]
    copied = rows.execute("select shard from sluice_state.artifact where run = 'run-2'").fetchall()
    assert copied == [{"shard": "rome"}]


def test_rows_of_a_newer_release_are_refused_and_left_alone(state: Database, rows: psycopg.Connection[dict[str, Any]]) -> None:
    """An older worker reads none of them, and what it tried to write is rolled back."""
    runs, shards, reviews = PostgresRunStore(state), PostgresShardStore(state), PostgresReviewStore(state)
    opened = runs.open(a_run(), POLICY)
    shards.plan(opened, plans(PARIS), {})
    reviews.save(a_review("r1"), opened)
    for table in ("run", "shard", "review"):
        rows.execute(psycopg.sql.SQL("update {} set state_version = 99").format(psycopg.sql.Identifier("sluice_state", table)))
    for attempt in (
        lambda: runs.get(RUN),
        lambda: runs.enter(RUN, Step.FETCH, MINUTE),
        lambda: runs.end(opened, RunEvent.FAIL),
        lambda: shards.of(RUN),
        lambda: shards.claim(RUN, PARIS),
        lambda: shards.claim_next(RUN),
        lambda: reviews.latest(RUN),
        lambda: reviews.decide(ReviewId("r1"), a_decision()),
    ):
        with pytest.raises(StateTooNew, match="99"):
            attempt()
    run = rows.execute("select status, token from sluice_state.run").fetchone()
    assert run == {"status": "pending", "token": opened.token}
    assert rows.execute("select status, attempt from sluice_state.shard").fetchall() == [{"status": "pending", "attempt": 0}]
    assert rows.execute("select count(*) as count from sluice_state.decision").fetchone() == {"count": 0}


def test_claim_next_passes_over_a_shard_somebody_holds(state: Database, rows: psycopg.Connection[dict[str, Any]]) -> None:
    """A row that is locked elsewhere is not waited for."""
    runs, shards = PostgresRunStore(state), PostgresShardStore(state)
    shards.plan(runs.open(a_run(), POLICY), plans(PARIS, "rome"), {})
    with rows.transaction():
        rows.execute("select from sluice_state.shard where key = 'paris' for update")
        claimed = shards.claim_next(RUN)
        assert claimed is not None
        assert claimed.key == "rome"
        assert shards.claim_next(RUN) is None


@pytest.mark.parametrize(
    "impossible",
    [
        "update sluice_state.run set status = 'done'",
        "update sluice_state.run set status = 'failed'",
        "update sluice_state.run set finished_at = now()",
        "update sluice_state.run set failure_error = 'x'",
        "update sluice_state.run set window_start = now()",
        "update sluice_state.shard set status = 'succeeded'",
        "update sluice_state.shard set status = 'failed'",
        "update sluice_state.shard set chunks = -1",
        "update sluice_state.artifact set sha256 = 'x'",
    ],
)
def test_what_no_history_could_lead_to_is_refused(
    state: Database, rows: psycopg.Connection[dict[str, Any]], impossible: Any
) -> None:
    """Even by hand, with psql, a row cannot contradict itself."""
    runs, shards = PostgresRunStore(state), PostgresShardStore(state)
    shards.plan(runs.open(a_run(), POLICY), plans(PARIS), {})
    shards.checkpoint(shards.claim(RUN, PARIS), a_pointer(shard=PARIS), MINUTE)
    with pytest.raises(psycopg.errors.CheckViolation):
        rows.execute(impossible)
