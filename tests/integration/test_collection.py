"""Garbage in a real Postgres and a real S3 API: what goes, what stays, and what a kill leaves."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from sluice.adapters.artifacts.s3 import S3ArtifactStore
from sluice.adapters.postgres import conninfo
from sluice.flow.inline import run_inline
from sluice.model.artifact import ArtifactKind, ArtifactRef, Pointer
from sluice.model.base import ObjectKey, RunId, ShardKey
from sluice.model.lifecycle import RunEvent, RunStatus, Step
from sluice.model.run import Mode, Origin, Redrive, Run, RunRequest
from sluice.model.stage import StagePolicy
from sluice.ports import ConnectionInfo, Services
from sluice.upkeep.collection import collect
from tests.support.nouns import MINUTE, POLICY, a_pointer, a_reject, a_run, an_actor, plans
from tests.support.servers import Supplier
from tests.support.small_project import small_project
from tests.unit.fakes.metrics import MemoryMetrics

PAST = datetime(2020, 1, 1, tzinfo=UTC)
OLD, NEW = RunId("old"), RunId("new")
PARIS = ShardKey("paris")
HOTELS = 488


@pytest.fixture
def services(tmp_path: Path, database: ConnectionInfo, artifacts: ConnectionInfo, supplier: Supplier) -> Iterator[Services]:
    """All that a run needs."""
    with small_project(tmp_path, database, artifacts, supplier, MemoryMetrics()) as opened:
        yield opened


@pytest.fixture
def rows(database: ConnectionInfo) -> Iterator[psycopg.Connection]:
    """A look behind the stores."""
    with psycopg.connect(conninfo(database), autocommit=True) as connection:
        yield connection


@pytest.fixture
def bucket(artifacts: ConnectionInfo) -> Any:
    """Lists what is in the bucket."""
    client = S3ArtifactStore(artifacts)._client

    def keys() -> set[str]:
        pages = client.get_paginator("list_objects_v2").paginate(Bucket=artifacts.extra["bucket"])
        return {found["Key"] for page in pages for found in page.get("Contents", [])}

    return keys


def count(rows: psycopg.Connection, table: str, condition: str = "true") -> int:
    """Return how many rows there are."""
    row = rows.execute(f"select count(*) from sluice_state.{table} where {condition}").fetchone()
    assert row is not None
    return int(row[0])


def ended(services: Services, name: RunId = OLD, policy: StagePolicy = POLICY, **changes: Any) -> Run:
    """Return a run of one shard that has failed."""
    run = services.runs.open(a_run(name, request_key=name, **changes), policy)
    services.shards.plan(run, plans(PARIS), {})
    entered = services.runs.enter(run.id, Step.SETTLE, MINUTE)
    return services.runs.end(entered, RunEvent.FAIL)


def stored(services: Services, run: RunId, seq: int = 0, **changes: Any) -> Pointer:
    """Return a pointer to bytes that are there, and expired."""
    ref = ArtifactRef(**{"sync": "hotels", "run": run, "kind": ArtifactKind.RAW, "shard": PARIS, "seq": seq, **changes})
    pointer = services.artifacts.put(ref, b"some bytes", 1, PAST)
    services.pointers.add(pointer)
    return pointer


def let_pass(rows: psycopg.Connection, span: str) -> None:
    """Make all that has happened so much longer ago."""
    rows.execute("update sluice_state.run set created_at = created_at - %(span)s::interval", {"span": span})
    rows.execute("update sluice_state.run set finished_at = finished_at - %(span)s::interval", {"span": span})
    for table in ("artifact", "lease", "call"):
        rows.execute(f"update sluice_state.{table} set expires_at = expires_at - %s::interval", (span,))


def test_bytes_that_have_outlived_their_time_go(services: Services, rows: psycopg.Connection, bucket: Any) -> None:
    """The object goes and so does what points to it; a run whose own time is not over stays, and so do younger bytes."""
    ended(services)
    old = stored(services, OLD)
    young = services.artifacts.put(old.ref.model_copy(update={"seq": 1}), b"young", 1, datetime.now(UTC) + MINUTE)
    services.pointers.add(young)
    garbage = collect(services, dry_run=False)
    assert (garbage.artifacts, garbage.bytes, garbage.runs) == (1, len(b"some bytes"), 0)
    assert bucket() == {young.key}
    assert services.pointers.of(OLD, ArtifactKind.RAW) == [young]
    assert services.runs.get(OLD).status is RunStatus.FAILED


@pytest.mark.parametrize("wanted", ["pinned", "alive", "named", "dead letter", "unfinished"])
def test_bytes_that_somebody_wants_stay(services: Services, rows: psycopg.Connection, bucket: Any, wanted: str) -> None:
    """Expired is not unwanted: a person, another run, an open dead letter or a run at work may need them."""
    run = ended(services)
    pointer = stored(services, OLD)
    match wanted:
        case "pinned":
            rows.execute("update sluice_state.artifact set pinned = true")
        case "alive":
            rows.execute("update sluice_state.artifact set expires_at = now() + interval '1 minute'")
        case "named":
            ended(services, NEW)
            ref = pointer.ref.model_copy(update={"run": NEW})
            services.pointers.add(pointer.model_copy(update={"ref": ref, "expires_at": None}))
        case "dead letter":
            services.dead_letters.record(run, services.shards.of(OLD)[0], [a_reject("h1", artifact=pointer.key)], "rejects-0")
        case "unfinished":
            services.runs.enter(OLD, Step.FETCH, MINUTE)
    assert collect(services, dry_run=True).artifacts == 0
    assert collect(services, dry_run=False).artifacts == 0
    assert bucket() == {pointer.key}
    assert [kept.key for kept in services.pointers.of(OLD, ArtifactKind.RAW)] == [pointer.key]


def test_bytes_of_two_pointers_go_once_both_are_expired(services: Services, bucket: Any) -> None:
    """A run that took over another's chunks names the same bytes; they are one object."""
    ended(services)
    ended(services, NEW)
    pointer = stored(services, OLD)
    services.pointers.add(pointer.model_copy(update={"ref": pointer.ref.model_copy(update={"run": NEW})}))
    assert collect(services, dry_run=True).artifacts == 1
    assert collect(services, dry_run=False).artifacts == 1
    assert bucket() == set()
    assert [services.pointers.of(run, ArtifactKind.RAW) for run in (OLD, NEW)] == [[], []]


def test_a_run_goes_with_all_that_belongs_to_it(services: Services, rows: psycopg.Connection) -> None:
    """Once its time is over and its artifacts are gone, in the same collection; a dry run says so before."""
    ended(services)
    stored(services, OLD)
    let_pass(rows, "366 days")
    assert collect(services, dry_run=True).runs == 1
    assert count(rows, "run") == 1
    assert collect(services, dry_run=False).runs == 1
    assert [count(rows, table) for table in ("run", "shard", "artifact", "event", "lease")] == [0] * 5


def test_letters_go_with_the_run_that_has_closed_them(services: Services, rows: psycopg.Connection) -> None:
    """Those that are open stay, and so do those that a person has discarded: the same bytes are to stay given up."""
    run = ended(services)
    met = [a_reject(key, place, "elsewhere") for place, key in enumerate(("right", "given up", "open"))]
    services.dead_letters.record(run, services.shards.of(OLD)[0], met, "rejects-0")
    rows.execute("update sluice_state.dead_letter set run = 'longer ago'")
    services.dead_letters.close(services.runs.enter(OLD, Step.PUBLISH, MINUTE), [ObjectKey("right")])
    given_up = services.letter_desk.of_object("hotels", ObjectKey("given up"), 1)[0]
    services.letter_desk.discard("hotels", Redrive(letters=(given_up.id,)), an_actor("closed for good"))
    services.runs.end(services.runs.get(OLD), RunEvent.FAIL)
    assert (collect(services, dry_run=False).runs, count(rows, "dead_letter")) == (0, 3)
    let_pass(rows, "366 days")
    assert collect(services, dry_run=False).runs == 1
    assert sorted(rows.execute("select object_key from sluice_state.dead_letter").fetchall()) == [("given up",), ("open",)]


@pytest.mark.parametrize("needed", ["watermark", "dead letter", "artifact", "follower"])
def test_a_run_that_somebody_needs_stays(services: Services, rows: psycopg.Connection, needed: str) -> None:
    """A watermark, an open dead letter or a follower names it, or it still has artifacts."""
    run = ended(services)
    match needed:
        case "watermark":
            services.watermarks.advance("hotels", {PARIS: "1"}, services.runs.enter(OLD, Step.PUBLISH, MINUTE))
            services.runs.end(services.runs.get(OLD), RunEvent.FAIL)
        case "dead letter":
            services.dead_letters.record(run, services.shards.of(OLD)[0], [a_reject("h1", artifact="elsewhere")], "rejects-0")
        case "follower":
            services.runs.open(a_run("follower"), StagePolicy(state_ttl=timedelta(days=3650)))
            rows.execute("update sluice_state.run set follows = %s where id = 'follower'", (OLD,))
        case "artifact":
            services.pointers.add(a_pointer(OLD, shard=PARIS).model_copy(update={"expires_at": None}))
    let_pass(rows, "366 days")
    assert collect(services, dry_run=False).runs == 0
    assert count(rows, "run") == 1 + (needed == "follower")


def test_what_a_run_published_last_can_still_be_undone(services: Services, rows: psycopg.Connection, bucket: Any) -> None:
    """Of the newest publication all that explains and undoes it stays, whatever its age; what was fetched for it goes."""
    run = run_inline(services, RunRequest(sync="hotels", origin=Origin()))
    let_pass(rows, "800 days")
    estimated = collect(services, dry_run=True)
    raw = {key for key in bucket() if key.split("/")[2] in ("raw", "rows", "rejects")}
    garbage = collect(services, dry_run=False)
    assert garbage == estimated
    assert (garbage.artifacts, garbage.runs) == (len(raw), 0)
    assert {key.split("/")[2] for key in bucket()} == {"spec", "run", "diff", "evidence", "report", "undo"}
    assert count(rows, "artifact", "superseded_at is not null") == 0
    assert services.runs.get(run.id).status is RunStatus.SUCCEEDED


class Killed(Exception):
    """The collector was killed."""


class DyingStore:
    """An object store whose user is killed once so many objects were removed."""

    def __init__(self, store: Any, left: int) -> None:
        self._store, self._left = store, left

    def remove(self, pointer: Pointer) -> None:
        """Remove, and die behind the last."""
        if self._left == 0:
            raise Killed
        self._left -= 1
        self._store.remove(pointer)

    def listed(self, after: str) -> Any:
        """List as it does."""
        return self._store.listed(after)


@pytest.mark.parametrize("survived", [0, 1, 2])
def test_a_collector_that_is_killed_leaves_nothing_dangling(
    services: Services, rows: psycopg.Connection, bucket: Any, survived: int
) -> None:
    """No pointer that counts names bytes that are gone, nobody can go on from what is half removed, and the rest goes next."""
    ended(services)
    for seq in range(3):
        stored(services, OLD, seq)
    dying: Any = DyingStore(services.artifacts, survived)
    with pytest.raises(Killed):
        collect(replace(services, artifacts=dying), dry_run=False)
    assert services.pointers.of(OLD, ArtifactKind.RAW) == []
    assert count(rows, "artifact") == 3
    assert len(bucket()) == 3 - survived
    assert collect(services, dry_run=False).artifacts == 3
    assert (bucket(), count(rows, "artifact")) == (set(), 0)


def test_a_run_is_not_gone_on_with_while_its_bytes_are_removed(
    services: Services, database: ConnectionInfo, rows: psycopg.Connection
) -> None:
    """Who clears a task in that moment waits for it."""
    ended(services)
    stored(services, OLD)
    refused: list[bool] = []

    class Watching:
        def remove(self, pointer: Pointer) -> None:
            with psycopg.connect(conninfo(database), options="-c lock_timeout=100ms") as other:
                with suppress(psycopg.errors.LockNotAvailable):
                    other.execute("update sluice_state.run set status = 'running', finished_at = null")
                    refused.append(False)
                    return
                refused.append(True)
            services.artifacts.remove(pointer)

        def listed(self, after: str) -> Any:
            return services.artifacts.listed(after)

    watching: Any = Watching()
    collect(replace(services, artifacts=watching), dry_run=False)
    assert refused == [True]


def test_a_run_that_is_gone_on_with_afterwards_fetches_again(
    services: Services, rows: psycopg.Connection, supplier: Supplier
) -> None:
    """What was fetched so long ago is gone; it is never taken for all that there is, or objects would be deleted."""
    request = RunRequest(sync="hotels", mode=Mode.FULL, origin=Origin())
    supplier.control(fail={"status": 500, "region": "tokyo", "after": 3})
    partial = run_inline(services, request)
    assert partial.status is RunStatus.PARTIAL
    rows.execute("update sluice_state.artifact set expires_at = now() where kind in ('raw', 'rows', 'rejects')")
    assert collect(services, dry_run=False).artifacts > 0
    supplier.control(fail=None)
    done = run_inline(services, request)
    assert done.status is RunStatus.SUCCEEDED
    assert {shard.epoch for shard in services.shards.of(done.id)} == {1}
    states = rows.execute("select state, count(*) from sluice_ledger.object group by state").fetchall()
    assert states == [("live", HOTELS)]


def test_control_state_goes_when_its_time_is_over(services: Services, rows: psycopg.Connection) -> None:
    """Results of calls, leases of runs that are over, and what is known of suppliers nobody has asked for a month."""
    ended(services)
    owner = services.runs.open(a_run(NEW, request_key="new"), POLICY)
    call = (
        "insert into sluice_state.call (key, sync, run, subject, name, expires_at) values (%s, 's', 'r', 'x', 'n', now() + %s)"
    )
    lease = "insert into sluice_state.lease values (%s, %s, 1, now() + %s, now())"
    breaker = (
        "insert into sluice_state.breaker (host, stage, ticks, tries, failures) "
        "values (%s, 's', array[now() + %s], '{1}', '{1}')"
    )
    rate = "insert into sluice_state.rate values (%s, 's', now() + %s)"
    token = "insert into sluice_state.access_token (client, expires_at) values (%s, now() + %s)"
    hour, day, months = timedelta(hours=1), timedelta(days=1), timedelta(days=60)
    for statement, facts in (
        (call, ("over", -hour)),
        (call, ("valid", hour)),
        (lease, ("over", OLD, -hour)),
        (lease, ("held", OLD, hour)),
        (token, ("over", -months)),
        (token, ("valid", hour)),
        (lease, ("dead", owner.id, -hour)),
        (breaker, ("quiet", -months)),
        (breaker, ("busy", -day)),
        (rate, ("quiet", -months)),
        (rate, ("busy", -day)),
    ):
        rows.execute(statement, facts)
    expected = {"call": 1, "lease": 1, "breaker": 1, "rate": 1, "access_token": 1}
    assert collect(services, dry_run=True).control == expected
    assert collect(services, dry_run=False).control == expected
    assert collect(services, dry_run=False).control == dict.fromkeys(expected, 0)
    left = rows.execute("select key from sluice_state.lease order by key").fetchall()
    assert [key for (key,) in left] == ["dead", "held", "new"]
    assert [count(rows, table) for table in ("call", "breaker", "rate")] == [1, 1, 1]


def test_stages_differ_in_how_long_they_keep_what_was_told(services: Services, rows: psycopg.Connection) -> None:
    """`session_ttl`: events and progress of a run that ended go sooner in one stage than in the other."""
    short = StagePolicy.model_validate({"session_ttl": "1d"})
    for name, policy in ((OLD, short), (NEW, POLICY)):
        ended(services, name, policy)
        rows.execute("insert into sluice_state.progress values (%s, 'paris', 1, 0, 1, 1, 1)", (name,))
    let_pass(rows, "2 days")
    told = count(rows, "event", "run = 'old'")
    estimated = collect(services, dry_run=True)
    assert collect(services, dry_run=False) == estimated
    assert estimated.session == {"event": told, "progress": 1}
    assert [count(rows, table, f"run = '{run}'") > 0 for run in (OLD, NEW) for table in ("event", "progress")] == [
        False,
        False,
        True,
        True,
    ]


def test_stages_differ_in_how_long_they_keep_runs(services: Services, rows: psycopg.Connection) -> None:
    """`state_ttl`: a run that ended goes sooner in one stage than in the other, and neither before it has ended."""
    short = StagePolicy.model_validate({"state_ttl": "1d", "artifact_ttl": "1d"})
    for name, policy in ((OLD, short), (NEW, POLICY)):
        run = ended(services, name, policy)
        assert run.expires_at is not None
        assert run.finished_at is not None
        assert run.expires_at - run.finished_at == policy.state_ttl
    opened = services.runs.open(a_run("at-work", request_key="at-work"), short)
    assert services.runs.enter(opened.id, Step.FETCH, MINUTE).expires_at is None
    let_pass(rows, "8 days")
    assert collect(services, dry_run=False).runs == 1
    assert {run.id for run in services.runs.recent(None, [], 9)} == {NEW, "at-work"}


def test_a_run_that_is_reopened_does_not_expire(services: Services) -> None:
    """Its time begins anew when it ends again."""
    ended(services)
    assert services.runs.enter(OLD, Step.FETCH, MINUTE).expires_at is None
