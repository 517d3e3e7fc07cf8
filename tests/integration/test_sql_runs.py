"""Whole runs whose supplier is a Postgres: its rows in; what becomes of the target's rows out, also of killed runs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from sluice import log_events
from sluice.flow.inline import run_inline
from sluice.model.lifecycle import RunStatus
from sluice.model.run import Mode, Origin, Run, RunRequest
from sluice.ports import ConnectionInfo
from tests.chaos.worker import Errand, Mark
from tests.chaos.workers import Nursery, open_nursery
from tests.support.stall import EPOCH, Stall, hours, open_stall

SOURCE = {"kind": "sql", "connection": "warehouse", "table": "shop.things", "key": ["id"], "size": 3}
GENEROUS = {"created": 99, "changed": 99, "deleted": 99, "seen_at_least": "1%", "drift": 1e9}
REVIEW = {"first_load": "auto-approve", "auto_approve": GENEROUS, "block": {"deleted": "100%"}}
TABLE = """
create schema if not exists shop;
drop table if exists shop.things;
create table shop.things (id text primary key, price numeric, version bigint, more jsonb, updated_at timestamptz);
"""


def insert(stall: Stall, *things: tuple[str, float, str]) -> None:
    """Have the supplier hold these things as well, or instead: id, price, and the time of the day."""
    for key, price, time in things:
        stall.sql(
            f"insert into shop.things values ('{key}', {price}, 1, null, '{EPOCH.date()} {time}Z') "
            "on conflict (id) do update set price = excluded.price, updated_at = excluded.updated_at"
        )


def bring(stall: Stall, mode: Mode = Mode.FULL, **more: Any) -> Run:
    """Run the sync once."""
    run = run_inline(stall.services, RunRequest(sync="prices", mode=mode, origin=Origin(), **more))
    assert run.status is RunStatus.SUCCEEDED, run.failure
    return run


@pytest.fixture
def stall(tmp_path: Path, database: ConnectionInfo, artifacts: ConnectionInfo) -> Iterator[Stall]:
    """A sync of a table."""
    source = SOURCE | {"watermark": {"fields": ["updated_at"], "lookback": "10m"}}
    with open_stall(tmp_path, database, artifacts, {"source": source, "review": REVIEW, "object": {"key": ["id"]}}) as stall:
        stall.sql(TABLE)
        yield stall


def test_a_table_is_kept_in_step(stall: Stall) -> None:
    """A full run brings all; one that is incremental what has changed, and what came late within the lookback."""
    insert(stall, ("a", 1, "08:00"), ("b", 2, "09:00"), ("c", 3, "10:00"), ("d", 4, "10:00"))
    bring(stall)
    assert stall.prices() == {"a": 1, "b": 2, "c": 3, "d": 4}
    insert(stall, ("a", 99, "09:49"), ("b", 20, "09:55"), ("e", 5, "10:00"))
    run = bring(stall, Mode.INCREMENTAL)
    assert sum(shard.records for shard in stall.services.shards.of(run.id)) == 4
    assert stall.prices() == {"a": 1, "b": 20, "c": 3, "d": 4, "e": 5}
    stall.sql("delete from shop.things where id = 'c'")
    bring(stall)
    assert stall.prices() == {"a": 99, "b": 20, "d": 4, "e": 5}


def test_a_row_dated_far_ahead_holds_nothing_up(stall: Stall) -> None:
    """It is taken in, and what is dated today still comes with the next run."""
    insert(stall, ("far", 1, "08:00"), ("a", 1, "08:00"))
    stall.sql("update shop.things set updated_at = '2099-01-01Z' where id = 'far'")
    bring(stall)
    insert(stall, ("b", 2, "09:00"))
    bring(stall, Mode.INCREMENTAL)
    assert stall.prices() == {"a": 1, "b": 2, "far": 1}


def test_a_window_brings_what_is_in_it(stall: Stall) -> None:
    """And deletes nothing; a window that lies below the watermark is asked for as well."""
    insert(stall, ("a", 1, "08:00"), ("b", 2, "09:00"), ("c", 3, "10:00"))
    bring(stall, window=hours(9, 10))
    assert stall.prices() == {"b": 2}
    bring(stall)
    stall.sql("update shop.things set price = 9")
    bring(stall, Mode.INCREMENTAL, window=hours(8, 9))
    assert stall.prices() == {"a": 9, "b": 2, "c": 3}


def test_the_hour_that_comes_twice_loses_nothing(tmp_path: Path, database: ConnectionInfo, artifacts: ConnectionInfo) -> None:
    """Times without a zone go back when clocks do; what was written then still comes, though it reads as older."""
    changes = {
        "source": SOURCE | {"watermark": {"fields": ["updated_at"], "type": "instant", "zone": "Europe/London"}},
        "review": REVIEW,
        "object": {"key": ["id"]},
        "fields": [
            {"name": "id", "type": "text"},
            {"name": "price", "type": "numeric"},
            {"name": "updated_at", "type": "text"},
        ],
    }
    with open_stall(tmp_path, database, artifacts, changes) as stall:
        stall.sql(TABLE.replace("timestamptz", "timestamp"))
        stall.sql("insert into shop.things values ('a', 1, 1, null, '2024-10-26 12:00'), ('b', 2, 1, null, '2024-10-27 01:30')")
        bring(stall)
        stall.sql("insert into shop.things values ('c', 3, 1, null, '2024-10-27 01:10')")
        run = bring(stall, Mode.INCREMENTAL)
        assert sum(shard.records for shard in stall.services.shards.of(run.id)) == 2
        assert stall.prices() == {"a": 1, "b": 2, "c": 3}


def test_shards_of_a_listing_each_read_their_part(tmp_path: Path, database: ConnectionInfo, artifacts: ConnectionInfo) -> None:
    """One query lists the shards, another reads each of them; values that look like SQL are values."""
    lister = {"kind": "sql", "connection": "warehouse", "query": "select distinct left(id, 4) as part from shop.things"}
    query = "select * from shop.things where left(id, 4) = {{ shard.part }}"
    changes = {
        "source": {"kind": "sql", "connection": "warehouse", "query": query, "key": ["id"]},
        "shards": {"kind": "listed", "name": "part", "value": "part", "source": lister | {"key": ["part"]}},
        "review": REVIEW,
        "object": {"key": ["id"]},
    }
    with open_stall(tmp_path, database, artifacts, changes) as stall:
        stall.sql(TABLE)
        insert(stall, ("p1-a", 1, "08:00"), ("p1-b", 2, "08:00"), ("%s''", 3, "08:00"))
        run = bring(stall)
        assert {str(shard.key): shard.records for shard in stall.services.shards.of(run.id)} == {"%s'": 1, "p1-a": 1, "p1-b": 1}
        assert stall.prices() == {"%s'": 3, "p1-a": 1, "p1-b": 2}


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    """What makes workers."""
    with open_nursery() as nursery:
        yield nursery


def test_a_killed_run_goes_on_behind_its_last_checkpoint(
    tmp_path: Path, nursery: Nursery, database: ConnectionInfo, artifacts: ConnectionInfo
) -> None:
    """What was fetched is not asked for again; what follows comes out of a new snapshot; nothing is lost or doubled."""
    policy = {"lease_ttl": "2s", "heartbeat": "0.5s"}
    changes = {"source": SOURCE, "review": REVIEW, "object": {"key": ["id"]}}
    known = dict.fromkeys(["sluice_state", "sluice_target", "warehouse"], database) | {"sluice_artifacts": artifacts}
    with open_stall(tmp_path, database, artifacts, changes, **policy) as stall:
        stall.sql(TABLE)
        insert(stall, *((f"k{number}", number, "08:00") for number in range(10)))
        request = RunRequest(sync="prices", mode=Mode.FULL, origin=Origin())
        marks = frozenset({Mark(2, log_events.CHUNK_CHECKPOINTED)})
        worker = nursery.start(Errand(tmp_path / "include", tmp_path / "worker", known, request, marks=marks))
        worker.held()
        worker.kill()
        insert(stall, ("k1", 100, "09:00"), ("k8", 800, "09:00"), ("k99", 99, "09:00"), ("k0a", 1, "09:00"))
        run = bring(stall)
        (shard,) = stall.services.shards.of(run.id)
        assert (shard.pages, shard.records) == (4, 11)
        assert stall.prices() == {f"k{number}": number for number in range(10)} | {"k8": 800, "k99": 99}


ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "price": st.decimals(-(10**25), 10**25, allow_nan=False) | st.none(),
            "version": st.integers(-(2**63), 2**63 - 1) | st.none(),
            "more": st.sampled_from(['{"a": [1.10, 12345678901234567890.5, "é", null]}', "[]", "1e400", '"x"']),
            "at": st.datetimes() | st.none(),
        }
    ),
    min_size=10,
    max_size=30,
)


def test_rows_arrive_exactly(tmp_path: Path, database: ConnectionInfo, artifacts: ConnectionInfo) -> None:
    """Whatever stands in the supplier's table stands in the target's, digit for digit."""
    fields = [("id", "text"), ("price", "numeric"), ("version", "bigint"), ("more", "json"), ("updated_at", "timestamptz")]
    names = "id, price::text, version, more::text, updated_at"
    changes = {
        "source": SOURCE,
        "review": REVIEW,
        "object": {"key": ["id"]},
        "fields": [{"name": name, "type": kind} for name, kind in fields],
    }
    with open_stall(tmp_path, database, artifacts, changes) as stall:

        @given(rows=ROWS)
        @settings(max_examples=2, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
        def arrive(rows: list[dict[str, Any]]) -> None:
            stall.sql(TABLE)
            stall.sql("insert into shop.things values ('always', 1, 1, '{}', now())")
            for number, row in enumerate(rows):
                spelled = [f"'{row[name]}'" if row[name] is not None else "null" for name in ("price", "version", "more", "at")]
                stall.sql(f"insert into shop.things values ('{number}', {', '.join(spelled)}::timestamp at time zone 'UTC')")
            bring(stall)
            kept = sorted(map(str, stall.sql(f"select {names} from prices where _sluice_deleted_at is null")))
            assert kept == sorted(map(str, stall.sql(f"select {names} from shop.things")))

        arrive()
