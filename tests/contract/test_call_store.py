"""The contract of `CallStore`."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from sluice.errors import Fenced, NotFound
from sluice.model.base import RunId
from sluice.model.call import Call, CallResult, CallStanding
from sluice.model.lifecycle import RunEvent, Step
from sluice.model.run import Run
from sluice.ports import CallStore
from tests.contract.conftest import Stores
from tests.support.nouns import MINUTE, OVER, POLICY, a_run

ACCEPTED = CallResult(accepted=True, answer="200 OK")
REFUSED = CallResult(accepted=False, answer="410 Gone: no such shop")


def a_call(key: str = "k1", run: str = "run-1", **changes: str) -> Call:
    """Return a call nobody has made."""
    return Call(**{"key": key, "sync": "hotels", "run": RunId(run), "subject": "r1", "name": "shop", **changes})


WRITES: dict[str, Callable[[CallStore, Run], object]] = {
    "prepare": lambda calls, run: calls.prepare([a_call("k2")], run, MINUTE),
    "begin": lambda calls, run: calls.begin(a_call(), run, MINUTE),
    "answer": lambda calls, run: calls.answer(a_call(), run, ACCEPTED),
    "leave": lambda calls, run: calls.leave(a_call(), run, "gone"),
}


def opened(stores: Stores, name: str = "run-1") -> Run:
    """Open a run of a request of its own."""
    return stores.runs.open(a_run(name, request_key=f"request of {name}"), POLICY)


def test_a_call_from_its_intent_to_its_result(stores: Stores) -> None:
    """Each step is kept, and told to whoever asks about the run."""
    run = opened(stores)
    stores.calls.prepare([a_call()], run, MINUTE)
    assert stores.calls.of(run.id) == [a_call()]
    assert stores.calls.begin(a_call(), run, MINUTE) == a_call().model_copy(update={"begun": 1})
    stores.calls.leave(a_call(), run, "connection refused")
    (left,) = stores.calls.of(run.id)
    assert (left.standing, left.trouble) == (CallStanding.UNCONFIRMED, "connection refused")
    assert stores.calls.begin(a_call(), run, MINUTE).begun == 2
    stores.calls.answer(a_call(), run, REFUSED)
    (known,) = stores.calls.of(run.id)
    assert known == a_call().model_copy(update={"begun": 2, "result": REFUSED})
    assert known.standing is CallStanding.REFUSED


def test_a_call_may_begin_unprepared(stores: Stores) -> None:
    """Then its intent is noted there and then."""
    run = opened(stores)
    assert stores.calls.begin(a_call(), run, MINUTE).begun == 1


def test_a_result_that_is_known_stands(stores: Stores) -> None:
    """Neither a new intent, nor another result, nor trouble changes it."""
    run = opened(stores)
    stores.calls.begin(a_call(), run, MINUTE)
    stores.calls.answer(a_call(), run, ACCEPTED)
    stores.calls.answer(a_call(), run, REFUSED)
    stores.calls.leave(a_call(), run, "too late")
    stores.calls.prepare([a_call()], run, MINUTE)
    found = stores.calls.begin(a_call(), run, MINUTE)
    assert (found.begun, found.result, found.trouble) == (1, ACCEPTED, None)


def test_what_has_expired_counts_as_absent(stores: Stores) -> None:
    """Its result is forgotten, and it is begun as if it were new."""
    run = opened(stores)
    stores.calls.begin(a_call(), run, OVER)
    stores.calls.answer(a_call(), run, ACCEPTED)
    assert stores.calls.of(run.id) == []
    assert stores.calls.begin(a_call(), run, MINUTE) == a_call().model_copy(update={"begun": 1})


@pytest.mark.parametrize("write", WRITES)
def test_a_worker_that_was_overtaken_writes_nothing(stores: Stores, write: str) -> None:
    """Its run has a younger token."""
    elder = opened(stores)
    stores.calls.begin(a_call(), elder, MINUTE)
    stores.runs.enter(elder.id, Step.PUBLISH, MINUTE)
    before = stores.calls.of(elder.id)
    with pytest.raises(Fenced):
        WRITES[write](stores.calls, elder)
    assert stores.calls.of(elder.id) == before


def test_a_run_that_is_over_still_makes_its_calls(stores: Stores) -> None:
    """Its task may be cleared for their sake; that takes no flight from anybody."""
    run = opened(stores)
    ended = stores.runs.end(stores.runs.enter(run.id, Step.SETTLE, MINUTE), RunEvent.SUCCEED)
    stores.calls.begin(a_call(), ended, MINUTE)
    stores.calls.answer(a_call(), ended, ACCEPTED)
    (known,) = stores.calls.of(run.id)
    assert known.result == ACCEPTED
    assert stores.runs.open(a_run("run-2", request_key=run.request_key), POLICY).follows is None


def test_what_runs_have_left_behind(stores: Stores) -> None:
    """Calls without a result, of runs that are over, oldest first; not of other syncs, nor what has expired."""
    run = opened(stores)
    calls = [a_call(f"k{number}") for number in range(4)]
    stores.calls.prepare(calls[:3], run, MINUTE)
    stores.calls.prepare([a_call("other", sync="rates")], run, MINUTE)
    stores.calls.prepare([calls[3]], run, OVER)
    stores.calls.begin(calls[1], run, MINUTE)
    stores.calls.answer(calls[1], run, ACCEPTED)
    assert stores.calls.left("hotels") == []
    stores.runs.end(stores.runs.enter(run.id, Step.PUBLISH, MINUTE), RunEvent.FAIL)
    assert [call.key for call in stores.calls.left("hotels")] == ["k0", "k2"]


def test_a_later_run_makes_the_calls_an_earlier_one_has_left(stores: Stores) -> None:
    """They stay the earlier one's."""
    earlier, later = opened(stores), opened(stores, "run-2")
    stores.calls.begin(a_call(), earlier, timedelta(days=1))
    stores.calls.begin(a_call(), later, timedelta(days=1))
    stores.calls.answer(a_call(), later, ACCEPTED)
    (known,) = stores.calls.of(earlier.id)
    assert (known.begun, known.result) == (2, ACCEPTED)
    assert stores.calls.of(later.id) == []


def test_a_run_that_nobody_admitted_makes_no_call(stores: Stores) -> None:
    """Missing is told apart from everything else."""
    with pytest.raises(NotFound, match="there is no run run-9"):
        stores.calls.begin(a_call(), a_run("run-9"), MINUTE)
