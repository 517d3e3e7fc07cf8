"""One pace and one breaker for all workers: processes that share nothing but a supplier and the state database."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from datetime import timedelta
from multiprocessing import get_context
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from sluice.adapters.postgres import Database, conninfo
from sluice.adapters.state import PostgresBreakerStore, PostgresRateStore
from sluice.errors import StateUnavailable
from sluice.model.connections import ARTIFACTS, STATE
from sluice.model.stage import BreakerPolicy, RetryPolicy, StagePolicy
from sluice.ports import ConnectionInfo
from tests.support.asking import Asking, Told, ask
from tests.support.scripted_supplier import ScriptedSupplier, answer, scripted
from tests.unit.flow.workshop import sync_spec

Asker = Callable[[ScriptedSupplier, StagePolicy, int], "Future[Told]"]
Rows = psycopg.Connection[dict[str, Any]]

DOWN = answer({}, "500 Internal Server Error")
QUICK = RetryPolicy(attempts=5, base=timedelta(milliseconds=1), cap=timedelta(milliseconds=1))
POLICY = StagePolicy(retry=QUICK, breaker=BreakerPolicy(open_for=timedelta(hours=1)))


def pages(count: int) -> list[bytes]:
    """Pages behind each of which another one follows."""
    return [answer({"hotels": [], "next": number}) for number in range(count)]


@pytest.fixture
def start(database: ConnectionInfo, artifacts: ConnectionInfo) -> Iterator[Asker]:
    """Let a process that has never asked before ask for so many pages."""
    with ProcessPoolExecutor(2, mp_context=get_context("spawn"), max_tasks_per_child=1) as processes:

        def started(server: ScriptedSupplier, policy: StagePolicy, count: int) -> "Future[Told]":
            known = {STATE: database, ARTIFACTS: artifacts, "shop": server.connection()}
            return processes.submit(ask, Asking(known, sync_spec(), policy, count))

        yield started


@pytest.fixture
def rows(database: ConnectionInfo) -> Iterator[Rows]:
    """A look behind the stores."""
    with psycopg.connect(conninfo(database), autocommit=True, row_factory=dict_row) as connection:
        yield connection


@pytest.fixture
def state(database: ConnectionInfo) -> Iterator[Database]:
    """The state database, as the threads of one worker share it."""
    opened = Database(database, StateUnavailable)
    yield opened
    opened.close()


class Held(list[bytes]):
    """Answers that are given only once somebody allows it."""

    def __init__(self, answers: list[bytes]) -> None:
        super().__init__(answers)
        self.is_due = threading.Event()
        self.is_allowed = threading.Event()

    def pop(self, place: Any = -1) -> bytes:
        """Wait, then answer."""
        self.is_due.set()
        assert self.is_allowed.wait(60)
        return super().pop(place)


def test_two_processes_keep_one_pace(start: Asker, rows: Rows) -> None:
    """Each try of both, retries included, has a slot of its own: the first free one lies behind all of them."""
    began = rows.execute("select clock_timestamp() as at").fetchone()
    assert began is not None
    spacing = timedelta(seconds=0.1)
    policy = POLICY.model_copy(update={"requests_per_second": 10})
    with scripted(*pages(5), DOWN, *pages(6)[5:], DOWN, *pages(16)[6:]) as server:
        host = f"127.0.0.1:{server.port}"
        # A queue that is longer than two processes take to start: no slot of the test passes unasked for.
        rows.execute(
            "insert into sluice_state.rate (host, stage, next_at) values (%s, 'hotel-content', %s)",
            (host, began["at"] + timedelta(seconds=5)),
        )
        told = [future.result(120) for future in [start(server, policy, 6), start(server, policy, 6)]]
        assert told == [Told(6), Told(6)]
        assert len(server.asked) == 14
    rate = rows.execute("select host, next_at from sluice_state.rate").fetchall()
    assert [row["host"] for row in rate] == [host]
    assert rate[0]["next_at"] - began["at"] >= timedelta(seconds=5) + 14 * spacing


def test_without_a_limit_nothing_is_reserved(start: Asker, rows: Rows) -> None:
    """A stage that sets none costs no write."""
    with scripted(*pages(2)) as server:
        assert start(server, POLICY, 2).result(120) == Told(2)
    assert rows.execute("select * from sluice_state.rate").fetchall() == []


def test_two_processes_share_a_breaker(start: Asker, rows: Rows) -> None:
    """What one finds out the other knows: it does not ask. After the rest one of them tries, and its answer is for both."""
    with scripted(*[DOWN] * 9) as server:
        opened = start(server, POLICY, 1).result(120)
        assert (opened.pages, opened.error) == (0, "SupplierResting")
        assert len(server.asked) == 5
        refused = start(server, POLICY, 1).result(120)
        assert (refused, len(server.asked)) == (opened, 5)

        rows.execute("update sluice_state.breaker set resting_until = clock_timestamp()")
        server.answers = held = Held([answer({"hotels": [], "next": None})])
        probing = start(server, POLICY, 1)
        assert held.is_due.wait(120)
        other = start(server, POLICY, 1).result(120)
        assert (other.error, len(server.asked)) == ("SupplierResting", 6)
        held.is_allowed.set()
        assert probing.result(120) == Told(1)
        server.answers = pages(1)
        assert start(server, POLICY, 1).result(120) == Told(1)
    closed = rows.execute("select resting_until, probed_until, reason, tries from sluice_state.breaker").fetchall()
    assert closed == [{"resting_until": None, "probed_until": None, "reason": None, "tries": []}]


def test_the_reason_is_there_for_whoever_looks(start: Asker, rows: Rows) -> None:
    """The error names the host, the stage, until when, and what failed; so does the table."""
    with scripted(*[DOWN] * 9) as server:
        told = start(server, POLICY, 1).result(120)
    row = rows.execute("select host, stage, reason, resting_until > now() as rests from sluice_state.breaker").fetchone()
    assert row is not None
    assert (row["host"], row["stage"], row["rests"]) == (f"127.0.0.1:{server.port}", "hotel-content", True)
    assert row["reason"].startswith("5 of 5 tries within 1m failed; the last: GET http://127.0.0.1")
    assert told.message.endswith(row["reason"])


def at_once(act: Callable[[], Any], times: int = 8) -> list[Any]:
    """Let so many workers do the same at the same time; return what each got."""
    begin = threading.Barrier(times)

    def one(_: int) -> Any:
        begin.wait(30)
        return act()

    with ThreadPoolExecutor(times) as workers:
        return list(workers.map(one, range(times)))


def test_of_all_who_ask_at_once_each_has_a_slot_of_its_own(state: Database) -> None:
    """Also for the very first slots, when there is no row yet."""
    rates = PostgresRateStore(state)
    hour = timedelta(hours=1)
    waits = sorted(at_once(lambda: rates.reserve("shop", "rates", spacing=hour, patience=24 * hour)))
    assert [round(wait / hour) for wait in waits] == list(range(8))


def test_what_all_count_at_once_adds_up(state: Database) -> None:
    """None is lost, and of all who see the sum the last one sees all of it."""
    breakers = PostgresBreakerStore(state)
    counted = at_once(lambda: breakers.count("shop", "rates", tries=3, failures=1, window=timedelta(hours=1)))
    assert sorted((breaker.tries, breaker.failures) for breaker in counted) == [(3 * n, n) for n in range(1, 9)]


def test_of_all_who_find_it_too_bad_at_once_one_opens_it(state: Database) -> None:
    """So that the change is told once."""
    breakers = PostgresBreakerStore(state)
    breakers.count("shop", "rates", tries=5, failures=5, window=timedelta(hours=1))
    opened = at_once(lambda: breakers.open("shop", "rates", open_for=timedelta(0), reason="5 of 5"))
    assert len([breaker for breaker in opened if breaker]) == 1


def test_of_all_who_claim_the_try_at_once_one_gets_it(state: Database) -> None:
    """And of all who have been told that it failed, or not, one changes something."""
    breakers = PostgresBreakerStore(state)
    breakers.count("shop", "rates", tries=5, failures=5, window=timedelta(hours=1))
    breakers.open("shop", "rates", open_for=timedelta(0), reason="5 of 5")
    claimed = [breaker for breaker in at_once(lambda: breakers.claim_probe("shop", "rates", timedelta(hours=1))) if breaker]
    assert len(claimed) == 1
    probe = claimed[0].probed_until
    assert probe is not None
    assert len([breaker for breaker in at_once(lambda: breakers.close("shop", "rates", probe)) if breaker]) == 1


def test_a_longer_memory_than_before_starts_from_what_is_there(state: Database) -> None:
    """A stage's window may be changed while work goes on: what was counted under the old one counts as long as it is fresh."""
    breakers = PostgresBreakerStore(state)
    breakers.count("shop", "rates", tries=4, failures=4, window=timedelta(minutes=1))
    counted = breakers.count("shop", "rates", tries=1, failures=1, window=timedelta(hours=7))
    assert (counted.tries, counted.failures) == (5, 5)
