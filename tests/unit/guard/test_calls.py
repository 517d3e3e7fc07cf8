"""Calls with side effects: made once, whatever happens in between; repeated under the same key where nobody knows."""

import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from sluice import log_events
from sluice.errors import CallUnconfirmed, ConnectionInvalid, Fenced, RateLimited, ReceiverUnavailable, StateUnavailable
from sluice.guard.calls import call_key, once
from sluice.model.base import RunId
from sluice.model.call import Call, CallResult, CallStanding
from sluice.model.run import Run
from sluice.model.stage import RetryPolicy, StagePolicy
from tests.support.nouns import a_run
from tests.unit.fakes.call_store import MemoryCallStore
from tests.unit.fakes.memory import Memory
from tests.unit.fakes.webhook import ACCEPTED, REFUSED, ListedWebhook

DAY = timedelta(days=1)
QUICK = RetryPolicy(attempts=3, base=timedelta(0), cap=timedelta(0))
CALL = Call(key=call_key("webhook", "hotels", "r1", "shop"), sync="hotels", run=RunId("run-1"), subject="r1", name="shop")
DOWN = ReceiverUnavailable("POST http://shop/hook: connection refused")


class Bench:
    """A run that makes calls, and who is called."""

    def __init__(self, *answers: CallResult | BaseException, ttl: timedelta = DAY) -> None:
        self.memory = Memory()
        self.calls = MemoryCallStore(self.memory)
        self.receiver = ListedWebhook(*answers)
        self.policy = StagePolicy(retry=QUICK, idempotency_ttl=ttl)
        self.run = self.enter()

    def enter(self) -> Run:
        """Let a worker enter the run, which fences the one before."""
        self.run = self.memory.runs[CALL.run] = a_run(CALL.run, token=self.memory.next_token())
        return self.run

    def once(self, run: Run | None = None) -> CallResult:
        """Make the call."""
        return once(self.calls, CALL, run or self.run, self.policy, self.send)

    def send(self, call: Call) -> CallResult:
        """Make the call itself."""
        return self.receiver.post(call.key, {})

    def kept(self) -> Call:
        """What is known of the call."""
        (call,) = self.calls.of(CALL.run)
        return call


@pytest.mark.parametrize("result", [ACCEPTED, REFUSED])
def test_a_call_is_made_once(result: CallResult) -> None:
    """Its result, be it a refusal, is kept, and found by whoever makes the call again."""
    bench = Bench(result)
    assert bench.once() == result
    bench.enter()
    assert bench.once() == result
    assert bench.receiver.told == [(CALL.key, {})]
    assert bench.kept().result == result


def test_the_intent_is_committed_before_and_the_result_after() -> None:
    """While the call is under way, state tells that it was begun, and no more."""
    bench = Bench()
    seen: list[CallStanding] = []

    def send(call: Call) -> CallResult:
        seen.append(bench.kept().standing)
        return bench.send(call)

    once(bench.calls, CALL, bench.run, bench.policy, send)
    assert [*seen, bench.kept().standing] == [CallStanding.UNCONFIRMED, CallStanding.ACCEPTED]


def test_a_receiver_that_comes_back_is_asked_again_under_the_same_key() -> None:
    """Within one attempt, as often as the stage's retry allows."""
    bench = Bench(DOWN, RateLimited(retry_after=0), ACCEPTED)
    assert bench.once() == ACCEPTED
    assert [key for key, _ in bench.receiver.told] == [CALL.key] * 3
    assert bench.kept().begun == 1


def test_a_receiver_that_stays_away_is_left_to_a_later_attempt() -> None:
    """Nobody knows what became of the call, so it is neither given up nor made under another key."""
    bench = Bench(DOWN, DOWN, DOWN)
    with pytest.raises(CallUnconfirmed, match="connection refused"):
        bench.once()
    left = bench.kept()
    assert (left.standing, left.trouble) == (CallStanding.UNCONFIRMED, DOWN.message)
    bench.enter()
    assert bench.once() == ACCEPTED
    assert [key for key, _ in bench.receiver.told] == [CALL.key] * 4
    assert (bench.kept().begun, bench.kept().trouble) == (2, None)


def test_a_process_that_dies_in_the_call_leaves_it_to_be_repeated() -> None:
    """The receiver may have it, so the repetition carries the same key."""
    bench = Bench(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        bench.once()
    assert bench.kept().standing is CallStanding.UNCONFIRMED
    bench.enter()
    assert bench.once() == ACCEPTED
    assert len({key for key, _ in bench.receiver.told}) == 1


def test_a_call_that_cannot_be_made_says_why() -> None:
    """It is not repeated within the attempt, and has no result."""
    bench = Bench(ConnectionInvalid("there is no Airflow connection 'shop'"))
    with pytest.raises(ConnectionInvalid):
        bench.once()
    assert (len(bench.receiver.told), bench.kept().trouble) == (1, "there is no Airflow connection 'shop'")


def test_of_two_workers_with_one_call_only_the_younger_makes_it() -> None:
    """The elder is fenced before it calls."""
    bench = Bench()
    elder = bench.run
    bench.enter()
    with pytest.raises(Fenced):
        bench.once(elder)
    assert bench.receiver.told == []


def test_the_elder_worker_keeps_no_result() -> None:
    """Overtaken in the middle of its call, it leaves the call to the younger one, which repeats it under the same key."""
    bench = Bench()
    elder = bench.run

    def overtaken(call: Call) -> CallResult:
        bench.enter()
        return bench.send(call)

    with pytest.raises(Fenced):
        once(bench.calls, CALL, elder, bench.policy, overtaken)
    assert bench.kept().standing is CallStanding.UNCONFIRMED
    assert bench.once() == ACCEPTED
    assert [key for key, _ in bench.receiver.told] == [CALL.key] * 2


@pytest.mark.parametrize(("ttl", "told"), [(DAY, 2), (7 * DAY, 1)])
def test_stages_differ_in_how_long_a_result_is_known(ttl: timedelta, told: int) -> None:
    """Two days later the one stage has forgotten the call and makes it again, under the same key; the other has not."""
    bench = Bench(ttl=ttl)
    bench.once()
    bench.memory.clock.move(2 * DAY)
    bench.once()
    assert [key for key, _ in bench.receiver.told] == [CALL.key] * told


class UnreachableCallStore(MemoryCallStore):
    """A store whose database is down at one of its methods."""

    def __init__(self, memory: Memory, method: str) -> None:
        super().__init__(memory)
        setattr(self, method, self._fail)

    def _fail(self, *_: object) -> None:
        raise StateUnavailable


@pytest.mark.parametrize(("method", "told"), [("begin", 0), ("answer", 1)])
def test_without_state_nothing_is_known(method: str, told: int) -> None:
    """What cannot be read is not taken for absent: no call without a committed intent, no result that was not committed."""
    bench = Bench()
    bench.calls = UnreachableCallStore(bench.memory, method)
    with pytest.raises(StateUnavailable):
        bench.once()
    assert len(bench.receiver.told) == told


@pytest.mark.parametrize(
    ("answers", "events"),
    [
        ([ACCEPTED], [("info", log_events.CALL_ANSWERED)]),
        ([REFUSED], [("warning", log_events.CALL_ANSWERED)]),
        ([ConnectionInvalid("none")], [("warning", log_events.CALL_LEFT)]),
    ],
)
def test_what_is_told_of_a_call(answers: list[CallResult | BaseException], events: list[tuple[str, str]]) -> None:
    """A refusal and a call without a result are warned of, with the key the receiver knows."""
    bench = Bench(*answers)
    with capture_logs() as logs, suppress(ConnectionInvalid):
        bench.once()
    assert [(entry["log_level"], entry["event"]) for entry in logs] == events
    assert all((entry["call"], entry["key"]) == ("shop", CALL.key) for entry in logs)


NAMES = st.lists(st.text(max_size=20), min_size=1, max_size=5)


@given(NAMES, NAMES)
def test_keys_differ_where_names_do(one: list[str], other: list[str]) -> None:
    """Not two sequences of names have one key, however they are cut; and every key can be sent in a header."""
    assert (call_key(*one) == call_key(*other)) == (one == other)
    assert call_key(*one).isascii()
    assert call_key(*one).isalnum()


def test_keys_are_the_same_in_every_process() -> None:
    """Neither a clock nor a random number, such as Python's own hash, is in them."""
    program = "from sluice.guard.calls import call_key; print(call_key('webhook', 'hotels', 'r1', 'shop'))"
    ask: Callable[[str], str] = lambda seed: subprocess.run(  # noqa: E731
        [sys.executable, "-c", program], env={"PYTHONHASHSEED": seed}, check=True, capture_output=True, text=True
    ).stdout.strip()
    assert {ask("1"), ask("2")} == {CALL.key}
