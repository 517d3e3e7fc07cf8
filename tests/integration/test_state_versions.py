"""Rows of every release in a real Postgres: the branch each takes, what is counted and logged, and what is written back."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb
from structlog.testing import capture_logs

from sluice import log_events
from sluice.adapters.postgres import Database, conninfo
from sluice.adapters.state import PostgresReviewStore, PostgresRunStore, PostgresShardStore
from sluice.adapters.state.database import StateDatabase
from sluice.errors import Retryable, StateTooNew, StateUnavailable, StateUnreadable
from sluice.model.base import Frozen, ReviewId, RunId, ShardKey
from sluice.model.lifecycle import Step
from sluice.model.state_class import Branch, StateClass
from sluice.ports import ConnectionInfo
from tests.support.nouns import MINUTE
from tests.unit.fakes.metrics import MemoryMetrics

GOLDEN = {path.stem: json.loads(path.read_text()) for path in sorted((Path(__file__).parents[1] / "data/state").glob("*.json"))}

Rows = psycopg.Connection[dict[str, Any]]
Golden = dict[str, Any]


def of(*branches: Branch) -> list[Any]:
    """The golden rows that take one of these branches."""
    return [pytest.param(golden, id=name) for name, golden in GOLDEN.items() if golden["branch"] in branches]


@pytest.fixture
def metrics() -> MemoryMetrics:
    """What is counted."""
    return MemoryMetrics()


@pytest.fixture
def state(database: ConnectionInfo, metrics: MemoryMetrics) -> Iterator[StateDatabase]:
    """The state database as task state sees it."""
    opened = Database(database, StateUnavailable)
    yield StateDatabase(opened, StateClass.TASK, metrics)
    opened.close()


@pytest.fixture
def rows(database: ConnectionInfo) -> Iterator[Rows]:
    """A look behind the stores."""
    with psycopg.connect(conninfo(database), autocommit=True, row_factory=dict_row) as connection:
        yield connection


def insert(rows: Rows, golden: Golden) -> None:
    """Put a row where it belongs, column by column, as the release that wrote it has; what it did not know has its default."""
    if golden["table"] != "run":
        insert(rows, GOLDEN["run-2"])
    place = sql.Identifier("sluice_state", golden["table"])
    for check in golden.get("without", ()):
        rows.execute(sql.SQL("alter table {} drop constraint {}").format(place, sql.Identifier(check)))
    columns = sql.SQL(", ").join(map(sql.Identifier, golden["row"]))
    statement = sql.SQL("insert into {0} ({1}) select {1} from jsonb_populate_record(null::{0}, %s)").format(place, columns)
    rows.execute(statement, (Jsonb(golden["row"]),))


def readers(state: StateDatabase, golden: Golden) -> list[Callable[[], Frozen]]:
    """Every way to read the one row."""
    runs, shards, reviews = PostgresRunStore(state), PostgresShardStore(state), PostgresReviewStore(state)
    row = golden["row"]
    match golden["table"]:
        case "run":
            return [lambda: runs.get(RunId(row["id"]))]
        case "shard":
            return [lambda: shards.of(RunId(row["run"]))[0]]
        case _:
            run, review = RunId(row["run"]), ReviewId(row["id"])
            return [lambda: reviews.get(review), lambda: reviews.latest(run) or Frozen()]


def listed(state: StateDatabase, golden: Golden) -> list[Frozen]:
    """The list for people in which the row would stand."""
    match golden["table"]:
        case "run":
            return [*PostgresRunStore(state).recent(None, [], 9)]
        case _:
            return [*PostgresReviewStore(state).waiting()]


def test_every_branch_of_every_table_has_a_golden_row() -> None:
    """No branch is argued."""
    taken = {(golden["table"], golden["branch"]) for golden in GOLDEN.values()}
    every = {(table, branch.value) for table in ("run", "shard", "review") for branch in Branch}
    assert taken == every


@pytest.mark.parametrize("golden", of(Branch.CONTINUE, Branch.MIGRATE))
def test_rows_of_this_release_and_of_older_ones_are_read(
    state: StateDatabase, rows: Rows, metrics: MemoryMetrics, golden: Golden
) -> None:
    """Each store reads the noun that the row has always stood for, in this release's version; every read is counted."""
    insert(rows, golden)
    for read in readers(state, golden):
        before = metrics.of("state_read", table=golden["table"], branch=golden["branch"])
        assert read().model_dump(mode="json") == golden["noun"]
        assert metrics.of("state_read", table=golden["table"], branch=golden["branch"]) == before + 1


@pytest.mark.parametrize("golden", of(Branch.REFUSE, Branch.REBUILD))
def test_rows_that_cannot_be_understood_are_named_and_counted(
    state: StateDatabase, rows: Rows, metrics: MemoryMetrics, golden: Golden
) -> None:
    """A newer row is refused and an unreadable one given up, by name; neither is changed or looks like an absent one."""
    insert(rows, golden)
    table, branch = golden["table"], golden["branch"]
    place = sql.Identifier("sluice_state", table)
    before = rows.execute(sql.SQL("select * from {}").format(place)).fetchall()
    error, event = {
        "refuse": (StateTooNew, log_events.STATE_ROW_REFUSED),
        "rebuild": (StateUnreadable, log_events.STATE_ROW_UNREADABLE),
    }[branch]
    for number, read in enumerate(readers(state, golden), start=1):
        with capture_logs() as logs, pytest.raises(error) as refused:
            read()
        assert golden.get("reason", "99") in refused.value.message
        assert refused.value.facts["table"] == table
        assert [log["event"] for log in logs if log["log_level"] == "warning"] == [event]
        assert metrics.of("state_read", table=table, branch=branch) == number
    assert rows.execute(sql.SQL("select * from {}").format(place)).fetchall() == before
    assert metrics.of("state_missing", state_class="task") == 0


@pytest.mark.parametrize("golden", of(Branch.REFUSE, Branch.REBUILD))
def test_a_list_for_people_tells_of_the_others(
    state: StateDatabase, rows: Rows, metrics: MemoryMetrics, golden: Golden
) -> None:
    """One row that cannot be understood hides no other; the log names it, and it is counted."""
    if golden["table"] == "shard":
        return
    insert(rows, golden)
    with capture_logs() as logs:
        assert [noun.model_dump()["id"] for noun in listed(state, golden)] == []
    assert [log["event"] for log in logs if log["log_level"] == "warning"] != []
    assert metrics.of("state_read", table=golden["table"], branch=golden["branch"]) == 1


def test_a_newer_row_is_left_to_a_newer_worker() -> None:
    """Airflow tries again, maybe elsewhere; nothing is ended because this worker is too old to understand it."""
    assert issubclass(StateTooNew, Retryable)


@pytest.mark.parametrize("name", ["run-1", "shard-1"])
def test_who_takes_an_older_row_stores_it_anew(state: StateDatabase, rows: Rows, name: str) -> None:
    """What is written under this release's token is of this release's version, so that an older worker refuses it."""
    golden = GOLDEN[name]
    insert(rows, golden)
    if golden["table"] == "run":
        PostgresRunStore(state).enter(RunId("inline-1"), Step.FETCH, MINUTE)
    else:
        PostgresShardStore(state).claim(RunId("inline-2"), ShardKey("paris"))
    place = sql.Identifier("sluice_state", golden["table"])
    assert rows.execute(sql.SQL("select state_version from {}").format(place)).fetchall() == [
        {"state_version": golden["noun"]["state_version"]}
    ]


def test_a_shard_of_a_newer_release_is_not_handed_out(state: StateDatabase, rows: Rows) -> None:
    """Not even by its turn: the claim is rolled back, version and all."""
    insert(rows, {**GOLDEN["shard-99"], "row": {**GOLDEN["shard-99"]["row"], "status": "pending"}})
    with pytest.raises(StateTooNew):
        PostgresShardStore(state).claim_next(RunId("inline-2"))
    left = rows.execute("select status, state_version, token from sluice_state.shard").fetchall()
    assert left == [{"status": "pending", "state_version": 99, "token": 18}]
