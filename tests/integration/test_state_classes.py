"""Missing and unreachable are different: every method of every store, on no database at all, and on an empty one."""

import inspect
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from sluice.adapters import state as stores
from sluice.adapters.ledger.store import PostgresLedger
from sluice.adapters.postgres import Database, conninfo
from sluice.adapters.state.database import StateDatabase
from sluice.errors import Fenced, NotFound, Retryable, SchemaOutdated, SluiceError, StateUnavailable, TargetUnavailable
from sluice.model.alert import Alert, AlertLevel
from sluice.model.artifact import ArtifactKind
from sluice.model.audit import Act, Actor
from sluice.model.base import ObjectKey, PublicationId, ReviewId, RunId, ShardKey, Token
from sluice.model.breaker import Breaker
from sluice.model.call import Call, CallResult
from sluice.model.garbage import Garbage, Heap, Needed
from sluice.model.lifecycle import RunEvent, ShardStatus, Step
from sluice.model.overview import SyncGlance
from sluice.model.progress import Progress
from sluice.model.run import Failure, Mode, Redrive, Window
from sluice.model.shard import Shard, ShardPlan
from sluice.model.state_class import TABLES, StateClass
from sluice.ports import ConnectionInfo, SealedToken
from tests.support.nouns import MINUTE, NOW, POLICY, a_decision, a_pointer, a_reject, a_review, a_run, plans
from tests.unit.fakes.metrics import MemoryMetrics

RUN, PARIS, REVIEW = RunId("run-1"), ShardKey("paris"), ReviewId("r1")
SHARD = Shard(run=RUN, key=PARIS, params={}, status=ShardStatus.RUNNING, token=Token(1))
CALL = Call(key="k", sync="hotels", run=RUN, subject=REVIEW, name="shop")
FAILURE = Failure(error="CursorStuck", message="twice")
NOTHING = Garbage(
    control=dict.fromkeys(("call", "lease", "breaker", "rate", "access_token"), 0),
    session=dict.fromkeys(("event", "progress"), 0),
    task=dict.fromkeys(("shard", "review", "decision", "dead_letter", "incident"), 0),
    artifacts=0,
    bytes=0,
    runs=0,
    kept={},
)
HOST = ("shop:443", "hotel-content")
ADA = Actor(name="ada", via="cli", reason="it hangs")
TOKEN = SealedToken(b"sealed", MINUTE)


@dataclass(frozen=True)
class Asked:
    """What a method is asked, and what an empty database answers: a value, an error, or anything (`...`)."""

    arguments: tuple[Any, ...]
    empty: Any
    named: dict[str, Any] | None = None


ASKED: dict[str, Asked] = {
    "PostgresAccessTokenStore.get": Asked(("shop",), None),
    "PostgresAccessTokenStore.renew": Asked(
        ("shop",), TOKEN, {"is_spent": lambda _: False, "ask": lambda: TOKEN, "patience": MINUTE}
    ),
    "PostgresAlertStore.failed_in_a_row": Asked((RUN,), 0),
    "PostgresAlertStore.newest": Asked(("hotels",), None),
    "PostgresAlertStore.raise_alert": Asked((a_run(), Alert(level=AlertLevel.WARN, runs=1), lambda _: [], MINUTE), NotFound),
    "PostgresAlertStore.recover": Asked((a_run(), lambda _: [], MINUTE), NotFound),
    "PostgresAuditStore.note": Asked((Act.COLLECT_GARBAGE, ADA, None, {"runs": 1}), None),
    "PostgresAuditStore.of": Asked((None, None, 5), []),
    "PostgresBreakerStore.claim_probe": Asked((*HOST, MINUTE), None),
    "PostgresBreakerStore.close": Asked((*HOST, NOW), None),
    "PostgresBreakerStore.count": Asked(HOST, ..., {"tries": 1, "failures": 1, "window": MINUTE}),
    "PostgresBreakerStore.look": Asked(HOST, ...),
    "PostgresBreakerStore.open": Asked(HOST, ..., {"open_for": MINUTE, "reason": "503"}),
    "PostgresByHandStore.cancel_run": Asked((RUN, ADA), NotFound),
    "PostgresByHandStore.leases": Asked((), []),
    "PostgresByHandStore.note_clearing": Asked((RUN, 1), None),
    "PostgresByHandStore.release_lease": Asked(("hotels", lambda _: MINUTE, ADA), NotFound),
    "PostgresByHandStore.reset_shard": Asked((RUN, PARIS, ADA), NotFound),
    "PostgresByHandStore.skip_shard": Asked((RUN, PARIS, ADA), NotFound),
    "PostgresByHandStore.stop_shard": Asked((RUN, PARIS, ADA), NotFound),
    "PostgresCallStore.answer": Asked((CALL, a_run(), CallResult(accepted=True, answer="200")), NotFound),
    "PostgresCallStore.begin": Asked((CALL, a_run(), MINUTE), NotFound),
    "PostgresCallStore.leave": Asked((CALL, a_run(), "503"), NotFound),
    "PostgresCallStore.left": Asked(("hotels",), []),
    "PostgresCallStore.of": Asked((RUN,), []),
    "PostgresCallStore.prepare": Asked(([CALL], a_run(), MINUTE), NotFound),
    "PostgresDeadLetterStore.close": Asked((a_run(), [ObjectKey("h1")]), NotFound),
    "PostgresDeadLetterStore.close_absent": Asked((a_run(),), NotFound),
    "PostgresDeadLetterStore.open_keys": Asked(("hotels",), set()),
    "PostgresDeadLetterStore.record": Asked((a_run(), SHARD, [a_reject("h1")], "rejects-0"), NotFound),
    "PostgresDeadLetterStore.lines": Asked(("hotels",), []),
    "PostgresDeadLetterStore.settle": Asked((a_run(), [], []), NotFound),
    "PostgresEventReader.after": Asked((RUN, 0, 9), []),
    "PostgresEventReader.newest": Asked((RUN, 9), []),
    "PostgresEventReader.standing": Asked((RUN,), NotFound),
    "PostgresOverviewStore.resting": Asked((), []),
    "PostgresOverviewStore.syncs": Asked((["hotels"], 9), [SyncGlance(sync="hotels")]),
    "PostgresGarbageStore.close_silent": Asked((MINUTE,), 0),
    "PostgresGarbageStore.condemn": Asked((Needed(),), ([], {})),
    "PostgresGarbageStore.estimate": Asked((Needed(), MINUTE, MINUTE), NOTHING),
    "PostgresGarbageStore.orphans": Asked(([], MINUTE), ([], Heap())),
    "PostgresGarbageStore.removing": Asked((["key"], Needed()), []),
    "PostgresGarbageStore.sweep_control": Asked((MINUTE,), NOTHING.control),
    "PostgresGarbageStore.retiring": Asked((Needed(), MINUTE), ([], NOTHING.task)),
    "PostgresGarbageStore.telling": Asked((), []),
    "PostgresGarbageStore.undoing": Asked((), []),
    "PostgresGarbageStore.sweep_session": Asked((), NOTHING.session),
    "PostgresGarbageStore.syncs": Asked((), []),
    "PostgresPointerStore.add": Asked((a_pointer(),), NotFound),
    "PostgresLetterDesk.discard": Asked(("hotels", Redrive(), ADA), 0),
    "PostgresLetterDesk.get": Asked((1,), NotFound),
    "PostgresLetterDesk.groups": Asked((None,), []),
    "PostgresLetterDesk.of_object": Asked(("hotels", ObjectKey("h1"), 9), []),
    "PostgresLetterDesk.selected": Asked(("hotels", Redrive(), 9), []),
    "PostgresPointerStore.named": Asked((["key"],), {}),
    "PostgresPointerStore.rows_elsewhere": Asked((a_pointer(), "v1-"), None),
    "PostgresPointerStore.of": Asked((RUN, ArtifactKind.RAW), []),
    "PostgresProgressStore.of": Asked((RUN,), {}),
    "PostgresProgressStore.tell": Asked((Progress(run=RUN, shard=PARIS, token=Token(1), chunk=0),), None),
    "PostgresRateStore.reserve": Asked(HOST, timedelta(0), {"spacing": MINUTE, "patience": MINUTE}),
    "PostgresRebuildStore.review": Asked((RUN, REVIEW), None),
    "PostgresRebuildStore.run": Asked((a_run(),), NotFound),
    "PostgresRebuildStore.shard": Asked((RUN, ShardPlan(key=PARIS, params={})), NotFound),
    "PostgresRedoStore.fetch_again": Asked((PARIS, SHARD), NotFound),
    "PostgresRedoStore.map_again": Asked((PARIS, [0], SHARD), NotFound),
    "PostgresRedoStore.review_again": Asked((a_run(),), NotFound),
    "PostgresRedriveStore.close": Asked((a_run(), [PARIS], [], []), NotFound),
    "PostgresRedriveStore.letters": Asked((a_run(), PARIS, None, 9), []),
    "PostgresRedriveStore.lines": Asked((a_run(), PARIS, 0), []),
    "PostgresRedriveStore.shards": Asked(("hotels", Redrive()), {}),
    "PostgresRedriveStore.state": Asked(("hotels", Redrive()), "letters=None rest=None"),
    "PostgresRedriveStore.take_up": Asked((SHARD, {1: "0" * 32}), NotFound),
    "PostgresRedriveStore.take_up_lines": Asked((SHARD, 1, [0]), NotFound),
    "PostgresRedriveStore.taken": Asked((RUN,), []),
    "PostgresRedriveStore.taken_lines": Asked((RUN,), []),
    "PostgresReviewStore.count_waiting": Asked((), 0),
    "PostgresReviewStore.decide": Asked((REVIEW, a_decision()), NotFound),
    "PostgresReviewStore.get": Asked((REVIEW,), NotFound),
    "PostgresReviewStore.latest": Asked((RUN,), None),
    "PostgresReviewStore.of": Asked((RUN,), []),
    "PostgresReviewStore.save": Asked((a_review("r1"), a_run()), NotFound),
    "PostgresReviewStore.superseded_by": Asked((REVIEW,), []),
    "PostgresReviewStore.waiting": Asked((), []),
    "PostgresRunStore.end": Asked((a_run(), RunEvent.FAIL), NotFound),
    "PostgresRunStore.enter": Asked((RUN, Step.FETCH, MINUTE), NotFound),
    "PostgresRunStore.asked_within": Asked(("hotels", Window(start=NOW, end=NOW + MINUTE), [Mode.FULL]), []),
    "PostgresRunStore.fetched_within": Asked(("hotels", Window(start=NOW, end=NOW + MINUTE)), []),
    "PostgresRunStore.followed_by": Asked((RUN, 9), []),
    "PostgresRunStore.get": Asked((RUN,), NotFound),
    "PostgresRunStore.newer_than": Asked((a_run(),), []),
    "PostgresRunStore.next_token": Asked((a_run(),), NotFound),
    "PostgresRunStore.open": Asked((a_run(), POLICY), ...),
    "PostgresRunStore.reach": Asked((a_run(), Step.SETTLE), NotFound),
    "PostgresRunStore.recent": Asked((None, [], 9), []),
    "PostgresRunStore.renew": Asked((a_run(), MINUTE), NotFound),
    "PostgresShardStore.adopt": Asked((a_run(), [RUN], {}, NOW), NotFound),
    "PostgresShardStore.checkpoint": Asked((SHARD, a_pointer(shard=PARIS), MINUTE), NotFound),
    "PostgresShardStore.claim": Asked((RUN, PARIS), NotFound),
    "PostgresShardStore.claim_next": Asked((RUN,), None),
    "PostgresShardStore.delivered": Asked(("hotels", 9), {}),
    "PostgresShardStore.fail": Asked((SHARD, FAILURE), NotFound),
    "PostgresShardStore.get": Asked((RUN, PARIS), NotFound),
    "PostgresShardStore.of": Asked((RUN,), []),
    "PostgresShardStore.plan": Asked((a_run(), plans(PARIS), {}), NotFound),
    "PostgresShardStore.renew": Asked((SHARD, MINUTE), NotFound),
    "PostgresShardStore.succeed": Asked((SHARD,), NotFound),
    "PostgresWatermarkStore.advance": Asked(("hotels", {PARIS: "1"}, a_run()), NotFound),
    "PostgresWatermarkStore.of": Asked(("hotels",), {}),
    "PostgresLedger.events": Asked(("hotels", ObjectKey("h1")), []),
    "PostgresLedger.known": Asked(("hotels", [ObjectKey("h1")]), {}),
    "PostgresLedger.near": Asked(("hotels", ObjectKey("h1"), 3), []),
    "PostgresLedger.object": Asked(("hotels", ObjectKey("h1")), None),
    "PostgresLedger.publication": Asked((PublicationId(17),), None),
    "PostgresLedger.publication_of": Asked((REVIEW,), None),
    "PostgresLedger.publications": Asked(("hotels", 9), []),
    "PostgresLedger.remembered": Asked(("hotels", 1, [ObjectKey("h1")]), {}),
}
KINDS = {name: getattr(stores, name) for name in stores.__all__} | {"PostgresLedger": PostgresLedger}


@pytest.fixture
def metrics() -> MemoryMetrics:
    """What is counted."""
    return MemoryMetrics()


def call(name: str, database: Any) -> Any:
    """Call a method of a store on that database."""
    kind, method = name.split(".")
    asked = ASKED[name]
    answer = getattr(KINDS[kind](database), method)(*asked.arguments, **(asked.named or {}))
    if isinstance(answer, AbstractContextManager):
        with answer as yielded:
            return yielded
    return answer


def test_no_method_is_forgotten() -> None:
    """Every public method of every store is in the list above."""
    methods = {
        f"{name}.{method}"
        for name, kind in KINDS.items()
        for method, _ in inspect.getmembers(kind, inspect.isfunction)
        if not method.startswith("_")
    }
    assert methods == set(ASKED)


def test_every_table_has_a_class(database: ConnectionInfo) -> None:
    """What is in the schema is named with its class, and nothing else is, but for the schema's own revision."""
    with psycopg.connect(conninfo(database)) as connection:
        rows = connection.execute("select table_name from information_schema.tables where table_schema = 'sluice_state'")
        assert {name for (name,) in rows} == set(TABLES) | {"migration"}


@pytest.mark.parametrize("name", ASKED)
def test_a_store_that_cannot_be_reached_never_looks_empty(database: ConnectionInfo, metrics: MemoryMetrics, name: str) -> None:
    """Each method raises what tells to come again, naming the connection; state's failures are counted by class."""
    nowhere = replace(database, port=1)
    if name.startswith("PostgresLedger"):
        target: Any = Database(nowhere, TargetUnavailable)
        expected: type[Retryable] = TargetUnavailable
    else:
        target = StateDatabase(Database(nowhere, StateUnavailable), StateClass.TASK, metrics)
        expected = StateUnavailable
    with pytest.raises(expected, match="connection sluice_state"):
        call(name, target)
    if expected is StateUnavailable:
        assert metrics.of("state_failed", state_class="task", error="StateUnavailable") == 1
        assert metrics.of("state_missing", state_class="task") == 0


@pytest.fixture
def reachable(database: ConnectionInfo) -> Iterator[Database]:
    """A database with nothing in it but tables."""
    opened = Database(database, StateUnavailable)
    yield opened
    opened.close()


@pytest.mark.parametrize("name", ASKED)
def test_a_store_that_is_empty_says_so(reachable: Database, metrics: MemoryMetrics, name: str) -> None:
    """Each method answers as its port says, and what is missing is counted as such, and not as a failure."""
    counted = StateDatabase(reachable, StateClass.CONTROL, metrics)
    empty = ASKED[name].empty
    if isinstance(empty, type) and issubclass(empty, SluiceError):
        with pytest.raises(empty):
            call(name, counted)
        assert metrics.of("state_missing", state_class="control") == 1
    elif empty is ...:
        assert not isinstance(call(name, counted), Fenced)
    else:
        assert call(name, counted) == empty
    assert not [labels for (counter, labels), _ in metrics.counts.items() if counter == "state_failed"]


def test_a_breaker_nobody_has_counted_for_is_closed(reachable: Database) -> None:
    """Where nothing is known of a supplier, it is asked."""
    looked = call("PostgresBreakerStore.look", reachable)
    assert looked == Breaker(at=looked.at)


def test_a_schema_that_is_missing_is_a_failure(empty_database: ConnectionInfo, metrics: MemoryMetrics) -> None:
    """Tables that are not there are no empty tables."""
    database = Database(empty_database, StateUnavailable)
    with pytest.raises(SchemaOutdated):
        call("PostgresShardStore.of", StateDatabase(database, StateClass.TASK, metrics))
    database.close()
    assert metrics.of("state_failed", state_class="task", error="SchemaOutdated") == 1
