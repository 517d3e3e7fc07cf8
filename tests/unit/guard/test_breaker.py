"""The breaker: when it opens, whom it lets through, what it costs and what it tells."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from sluice.errors import (
    CodeFailed,
    SluiceError,
    StateUnavailable,
    SupplierResting,
    SupplierUnavailable,
)
from sluice.guard.breaker import FEWEST_TRIES, SharedBreaker, state_of
from sluice.guard.retries import patiently
from sluice.model.breaker import Breaker, BreakerState
from sluice.model.stage import BreakerPolicy, RetryPolicy, StagePolicy
from tests.support.nouns import NOW
from tests.unit.fakes.breaker_store import MemoryBreakerStore
from tests.unit.fakes.clock import FakeClock
from tests.unit.fakes.metrics import MemoryMetrics

SHOP = "api.example.com:443"
SECOND = timedelta(seconds=1)


class Work:
    """One stage's work on a host: its store, its clock, its workers."""

    def __init__(self, stage: str = "hotel-content", store: MemoryBreakerStore | None = None, **breaker: Any) -> None:
        self.store = store or MemoryBreakerStore(FakeClock())
        self.clock = self.store.clock
        self.metrics = MemoryMetrics()
        self.stage = stage
        self.policy = StagePolicy(breaker=BreakerPolicy.model_validate(breaker))
        self.made = 0

    def worker(self) -> SharedBreaker:
        """Return the view of one more worker."""
        return SharedBreaker(self.store, self.clock, self.metrics, host=SHOP, stage=self.stage, policy=self.policy)

    def answer(self) -> str:
        """Be a supplier that is well."""
        self.made += 1
        return "page"

    def fail(self) -> str:
        """Be a supplier in trouble."""
        self.made += 1
        raise SupplierUnavailable("GET /hotels: 500", status=500)

    def try_it(self, worker: SharedBreaker, call: Callable[[], str], times: int = 1) -> type[SluiceError] | None:
        """Try so often; return how the last try ended."""
        ended: type[SluiceError] | None = None
        for _ in range(times):
            try:
                worker.watch(call)
                ended = None
            except SluiceError as error:
                ended = type(error)
        return ended

    def changes(self) -> dict[str, int]:
        """Return what was counted, by the state that was entered."""
        return {
            state: number
            for state in BreakerState
            if (number := self.metrics.of("breaker_changed", stage=self.stage, state=str(state)))
        }


def test_enough_failures_open_it_for_all_workers() -> None:
    """The fifth failure ends its own request's tries as well, and the others of the stage make none any more."""
    work = Work()
    one, other = work.worker(), work.worker()
    assert work.try_it(other, work.answer) is None
    work.clock.move(SECOND)
    assert [work.try_it(one, work.fail) for _ in range(5)] == [SupplierUnavailable] * 4 + [SupplierResting]
    work.clock.move(SECOND)
    assert work.try_it(other, work.answer) is SupplierResting
    with pytest.raises(
        SupplierResting, match="is left alone by stage hotel-content until 2026-01-31T12:00:31Z: 5 of 5"
    ) as raised:
        other.require_rested()
    assert raised.value.facts["until"] == NOW + timedelta(seconds=31)
    assert work.made == 6


def test_the_error_says_what_failed_last() -> None:
    """Whoever sees the shard fail sees what was wrong with the supplier, and not only that it rests."""
    work = Work()
    worker = work.worker()
    work.try_it(worker, work.fail, times=4)
    with pytest.raises(SupplierResting, match="5 of 5 tries within 1m failed; the last: GET /hotels: 500") as raised:
        worker.watch(work.fail)
    assert isinstance(raised.value.__cause__, SupplierUnavailable)


def test_other_hosts_and_stages_go_on() -> None:
    """A breaker is of one host in one stage."""
    work = Work()
    work.try_it(work.worker(), work.fail, times=9)
    assert work.try_it(Work("hotel-rates", work.store).worker(), work.answer) is None
    elsewhere = SharedBreaker(work.store, work.clock, work.metrics, host="x", stage=work.stage, policy=work.policy)
    assert work.try_it(elsewhere, work.answer) is None


def test_after_the_rest_one_try_is_let_through_and_an_answer_closes_it() -> None:
    """While it is made nobody else tries; after it everybody may."""
    work = Work(open_for="30s")
    worker, other = work.worker(), work.worker()
    work.try_it(worker, work.fail, times=5)
    work.clock.move(timedelta(seconds=29))
    assert work.try_it(worker, work.answer) is SupplierResting
    work.clock.move(SECOND)

    def probe() -> str:
        assert work.try_it(other, work.answer) is SupplierResting
        assert work.try_it(worker, work.answer) is SupplierResting
        return work.answer()

    assert work.try_it(worker, probe) is None
    work.clock.move(SECOND)
    assert work.try_it(other, work.fail, times=4) is SupplierUnavailable
    assert work.changes() == {BreakerState.OPEN: 1, BreakerState.HALF_OPEN: 1, BreakerState.CLOSED: 1}


def test_a_failure_after_the_rest_opens_it_again() -> None:
    """One failure is enough then, and the rest begins anew."""
    work = Work(open_for="30s")
    worker = work.worker()
    work.try_it(worker, work.fail, times=5)
    for _ in range(3):
        work.clock.move(timedelta(seconds=30))
        with pytest.raises(SupplierResting, match="the one try after a rest failed as well: GET /hotels: 500"):
            worker.watch(work.fail)
        assert work.try_it(worker, work.fail, times=3) is SupplierResting
    assert work.made == 8
    assert work.changes() == {BreakerState.OPEN: 4, BreakerState.HALF_OPEN: 3}


def test_who_dies_while_trying_does_not_block() -> None:
    """Its try counts as made for as long as it may take at most; then another worker has it."""
    work = Work(open_for="30s")
    worker, other = work.worker(), work.worker()
    work.try_it(worker, work.fail, times=5)
    work.clock.move(timedelta(seconds=30))

    def die() -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        worker.watch(die)
    work.clock.move(work.policy.timeouts.connect + work.policy.timeouts.read - SECOND)
    assert work.try_it(other, work.answer) is SupplierResting
    work.clock.move(SECOND)
    assert work.try_it(other, work.answer) is None
    assert work.changes()[BreakerState.CLOSED] == 1


def test_code_that_fails_before_it_asks_says_nothing_of_the_supplier() -> None:
    """However often it does, it opens nothing; and as the one try after a rest it closes nothing."""
    work = Work(open_for="30s")
    worker = work.worker()

    def sign() -> str:
        raise CodeFailed("it failed at signers.py:9")

    assert work.try_it(worker, sign, times=9) is CodeFailed
    work.try_it(worker, work.fail, times=5)
    work.clock.move(timedelta(seconds=30))
    assert work.try_it(worker, sign) is CodeFailed
    assert work.changes() == {BreakerState.OPEN: 1, BreakerState.HALF_OPEN: 1}


def test_who_was_too_slow_with_the_one_try_decides_nothing() -> None:
    """If another worker has the try by now, the late outcome neither opens nor closes; it is the request's alone."""
    work = Work(open_for="30s")
    slow, other = work.worker(), work.worker()
    work.try_it(slow, work.fail, times=5)
    work.clock.move(timedelta(seconds=30))

    def overtaken() -> str:
        work.clock.move(timedelta(hours=1))
        assert work.try_it(other, work.answer) is None
        return work.fail()

    assert work.try_it(slow, overtaken) is SupplierUnavailable
    assert work.changes() == {BreakerState.OPEN: 1, BreakerState.HALF_OPEN: 2, BreakerState.CLOSED: 1}


def test_a_healthy_supplier_costs_a_statement_a_second() -> None:
    """Eighty answers in ten seconds: one look or count each second, and all but the last second's are counted."""
    work = Work()
    worker = work.worker()
    for _ in range(80):
        worker.require_rested()
        assert work.try_it(worker, work.answer) is None
        work.clock.move(timedelta(milliseconds=125))
    assert work.store.statements == 10
    assert work.store.look(SHOP, work.stage).tries == 72


def test_refusing_costs_no_more_than_that() -> None:
    """While the supplier rests, and while somebody tries it: a look each second and worker, however often it is asked for."""
    work = Work(open_for="30s")
    worker, other = work.worker(), work.worker()
    work.try_it(worker, work.fail, times=5)

    def ask_often() -> str:
        before = work.store.statements
        assert work.try_it(other, work.answer, times=50) is SupplierResting
        assert work.store.statements == before + 1
        return work.answer()

    ask_often()
    work.clock.move(timedelta(seconds=30))
    assert work.try_it(worker, ask_often) is None


def test_successes_are_told_with_a_failure() -> None:
    """So that a share of failures is never made of failures alone."""
    work = Work()
    worker = work.worker()
    work.try_it(worker, work.answer, times=20)
    assert work.try_it(worker, work.fail, times=9) is SupplierUnavailable
    seen = work.store.look(SHOP, work.stage)
    assert (seen.tries, seen.failures) == (29, 9)


def test_a_worker_that_dies_takes_successes_along_and_no_failures() -> None:
    """What is lost makes the supplier look worse, never better: five failures open it, where six answers more would not."""
    work = Work()
    work.try_it(work.worker(), work.answer, times=6)
    dies_after = work.worker()
    work.try_it(dies_after, work.fail)
    assert work.try_it(work.worker(), work.fail, times=4) is SupplierResting


def test_two_stages_bear_as_much_as_each_declares() -> None:
    """`breaker.failure_rate`: the same outcomes open the one and not the other."""
    ended = {}
    for rate in ("30%", "60%"):
        work = Work(failure_rate=rate)
        worker = work.worker()
        work.try_it(worker, work.answer, times=6)
        ended[rate] = work.try_it(worker, work.fail, times=4)
    assert ended == {"30%": SupplierResting, "60%": SupplierUnavailable}


def test_two_stages_remember_as_long_as_each_declares() -> None:
    """`breaker.window`: failures half a minute apart are many to the one, and few to the other."""
    ended = {}
    for window in ("1m", "10m"):
        work = Work(window=window)
        worker = work.worker()
        for _ in range(5):
            ended[window] = work.try_it(worker, work.fail)
            work.clock.move(timedelta(seconds=30))
    assert ended == {"1m": SupplierUnavailable, "10m": SupplierResting}


def test_two_stages_rest_as_long_as_each_declares() -> None:
    """`breaker.open_for`: a minute later the one tries again, the other does not."""
    ended = {}
    for rest in ("1m", "10m"):
        work = Work(open_for=rest)
        worker = work.worker()
        work.try_it(worker, work.fail, times=5)
        work.clock.move(timedelta(minutes=1))
        ended[rest] = work.try_it(worker, work.answer)
    assert ended == {"1m": None, "10m": SupplierResting}


def test_an_open_breaker_ends_the_retries_of_a_request() -> None:
    """No wait follows, and no further try: the shard fails with what it met."""
    work = Work()
    worker = work.worker()
    retry = RetryPolicy(attempts=20, base=timedelta(microseconds=1), cap=timedelta(microseconds=1))
    with capture_logs() as logs, pytest.raises(SupplierResting):
        patiently(lambda: worker.watch(work.fail), retry, timedelta(hours=1))
    assert work.made == FEWEST_TRIES
    assert [entry["event"] for entry in logs].count("sluice.call_retried") == FEWEST_TRIES - 1


def test_what_is_told() -> None:
    """Each change is one event with host, stage and figures."""
    work = Work()
    worker = work.worker()
    with capture_logs() as logs:
        work.try_it(worker, work.answer)
        work.try_it(worker, work.fail, times=5)
        work.clock.move(timedelta(seconds=30))
        work.try_it(worker, work.answer)
    facts = {"host": SHOP, "stage": "hotel-content"}
    assert logs == [
        {
            "event": "sluice.breaker_opened",
            "log_level": "warning",
            **facts,
            "failures": 4,
            "tries": 5,
            "until": "2026-01-31T12:00:30Z",
            "reason": "4 of 5 tries within 1m failed; the last: GET /hotels: 500",
        },
        {"event": "sluice.breaker_probed", "log_level": "info", **facts, "failures": 4, "tries": 5},
        {"event": "sluice.breaker_closed", "log_level": "info", **facts, "failures": 0, "tries": 0},
    ]


def test_of_two_who_find_it_too_bad_one_tells() -> None:
    """Both stop, and the change is counted once."""

    class Raced(MemoryBreakerStore):
        def count(self, host: str, stage: str, *, tries: int, failures: int, window: timedelta) -> Breaker:
            counted = super().count(host, stage, tries=tries, failures=failures, window=window)
            if counted.failures == FEWEST_TRIES:
                self.open(host, stage, open_for=timedelta(minutes=1), reason="another worker says so")
            return counted

    work = Work(store=Raced(FakeClock()))
    worker = work.worker()
    work.try_it(worker, work.fail, times=4)
    with pytest.raises(SupplierResting, match="another worker says so"):
        worker.watch(work.fail)
    assert work.changes() == {}


def test_out_of_reach_is_not_healthy() -> None:
    """A worker that cannot look makes no try; one that cannot count tells the failure when it can."""
    work = Work()
    worker = work.worker()
    work.try_it(worker, work.answer, times=3)
    work.store.is_away = True
    assert work.try_it(worker, work.fail) is StateUnavailable
    work.clock.move(SECOND)
    assert work.try_it(worker, work.answer) is StateUnavailable
    assert work.made == 4
    work.store.is_away = False
    assert work.try_it(worker, work.answer) is None
    assert work.store.look(SHOP, work.stage).tries == 3


@given(st.lists(st.sampled_from(["answer", "fail", "wait a second", "wait a rest"]), max_size=60), st.integers(0, 2))
def test_no_story_makes_more_tries_than_it_may(story: list[str], shared: int) -> None:
    """Whatever happens to three workers, a breaker that a look finds open lets no try through, and after a rest exactly one."""
    work = Work(window="1m", open_for="30s")
    workers = [work.worker() for _ in range(shared + 1)]
    for number, act in enumerate(story):
        if act.startswith("wait"):
            work.clock.move(SECOND if act == "wait a second" else timedelta(seconds=30))
            continue
        for worker in workers:
            worker._known = None  # each looks for itself
        before, state = work.made, state_of(work.store.look(SHOP, work.stage))
        worker = workers[number % len(workers)]
        ended = work.try_it(worker, work.answer if act == "answer" else work.fail)
        after = state_of(work.store.look(SHOP, work.stage))
        if state is BreakerState.OPEN:
            assert (work.made, ended, after) == (before, SupplierResting, BreakerState.OPEN)
        elif work.made == before:  # answers that were told only now were the fifth try, of which too many had failed
            assert (state, ended, after) == (BreakerState.CLOSED, SupplierResting, BreakerState.OPEN)
        else:
            assert work.made == before + 1
        if state is BreakerState.HALF_OPEN:
            assert after is (BreakerState.CLOSED if act == "answer" else BreakerState.OPEN)
