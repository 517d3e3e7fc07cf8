"""What becomes of a run that is opened: all that it may meet, and what may never come of it."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.guard.flight import End, Follow, Own, Surroundings, decide, is_decided
from sluice.model.base import RunId
from sluice.model.lifecycle import FINAL_RUN_STATUSES, RUN_TRANSITIONS, RunEvent, RunStatus, advance
from sluice.model.run import Failure, Run
from sluice.model.stage import StagePolicy
from tests.support.nouns import MINUTE, NOW, a_run

OWNER, OTHER = RunId("owner"), RunId("other")
FAILURE = Failure(error="SupplierRefused", message="403 Forbidden")
POLICY = StagePolicy(wait_timeout=10 * MINUTE, result_ttl=10 * MINUTE)
NOBODY = Surroundings(now=NOW, waited=timedelta(0), holder=None, followed=None, newest=None, is_outrun=False)


def ended(name: str, status: RunStatus, ago: timedelta = MINUTE) -> Run:
    """A run that has, or has not, come to an end."""
    is_over = status in FINAL_RUN_STATUSES
    failure = FAILURE if status is RunStatus.FAILED else None
    return a_run(name, status=status, finished_at=NOW - ago if is_over else None, failure=failure)


def follower(**changes: Any) -> Run:
    """A run that follows."""
    return a_run("run", **{"status": RunStatus.WAITING, "follows": OWNER, **changes})


def around(**facts: Any) -> Surroundings:
    """What a run meets."""
    return Surroundings(**{**vars(NOBODY), **facts})


names = st.sampled_from([OWNER, OTHER])
others = st.builds(ended, names, st.sampled_from(RunStatus), st.timedeltas(timedelta(0), timedelta(hours=1)))
meetings = st.builds(
    Surroundings,
    now=st.just(NOW),
    waited=st.timedeltas(timedelta(0), timedelta(hours=1)),
    holder=st.none() | names,
    followed=others.filter(lambda run: run.id == OWNER),
    newest=st.none() | others,
    is_outrun=st.booleans(),
)
undecided = st.builds(
    lambda status, follows, force: a_run("run", status=status, follows=follows, force=force),
    st.sampled_from([RunStatus.WAITING, RunStatus.PARTIAL, RunStatus.FAILED, RunStatus.CANCELLED]),
    st.just(OWNER),
    st.booleans(),
) | st.builds(lambda force: a_run("run", force=force), st.booleans())


@given(undecided, meetings)
def test_of_all_runs_of_a_request_one_works(run: Run, meeting: Surroundings) -> None:
    """Nobody works while another run has the flight; and who follows has somebody to wait for."""
    decision = decide(run, meeting, POLICY)
    if isinstance(decision, Own):
        assert meeting.holder is None
    if isinstance(decision, Follow):
        awaited = meeting.followed is not None and meeting.followed.status is RunStatus.WAITING
        assert decision.owner in {meeting.holder, *([OWNER] if awaited else [])}


@given(undecided, meetings)
def test_force_takes_no_outcome(run: Run, meeting: Surroundings) -> None:
    """It works, waits, or has waited in vain."""
    decision = decide(run.model_copy(update={"force": True}), meeting, POLICY)
    if isinstance(decision, End):
        assert decision.failure is not None
        assert decision.failure.error == "WaitedInVain"
        assert meeting.holder is not None


@given(undecided, meetings)
def test_every_decision_is_a_legal_transition(run: Run, meeting: Surroundings) -> None:
    """A run that has ended as a follower is readmitted first."""
    decision = decide(run, meeting, POLICY)
    status = run.status
    if status in FINAL_RUN_STATUSES or (isinstance(decision, Own) and status is not RunStatus.PENDING):
        status = advance(RUN_TRANSITIONS, status, RunEvent.READMIT)
    match decision:
        case Own():
            assert status is RunStatus.PENDING
        case Follow():
            assert advance(RUN_TRANSITIONS, status, RunEvent.FOLLOW) is RunStatus.WAITING
        case End(event):
            assert advance(RUN_TRANSITIONS, status, event) in FINAL_RUN_STATUSES


@given(undecided, meetings)
def test_a_decision_lasts_while_nothing_happens(run: Run, meeting: Surroundings) -> None:
    """Whoever follows, and looks again, follows still."""
    decision = decide(run, meeting, POLICY)
    if isinstance(decision, Follow):
        alive = a_run(decision.owner, status=RunStatus.RUNNING)
        awaited = meeting.followed if meeting.followed and decision.owner == meeting.followed.id else alive
        later = Surroundings(**{**vars(meeting), "followed": awaited, "waited": timedelta(0)})
        assert decide(follower(follows=decision.owner, force=run.force), later, POLICY) == decision


@pytest.mark.parametrize(
    ("status", "event"),
    [
        (RunStatus.SUCCEEDED, RunEvent.SUCCEED),
        (RunStatus.PARTIAL, RunEvent.END_PARTIAL),
        (RunStatus.FAILED, RunEvent.FAIL),
        (RunStatus.CANCELLED, RunEvent.CANCEL),
    ],
)
@pytest.mark.parametrize("holder", [None, OTHER])
def test_an_end_is_taken_over(status: RunStatus, event: RunEvent, holder: RunId | None) -> None:
    """However long it was waited for, and whoever works on the request by now."""
    owner = ended(OWNER, status)
    meeting = around(followed=owner, holder=holder, waited=timedelta(days=1))
    assert decide(follower(), meeting, POLICY) == End(event, OWNER, owner.failure)


def test_a_run_that_was_cleared_is_no_end() -> None:
    """Its shards are claimed again, so it has the flight: it is waited for."""
    assert decide(follower(), around(followed=ended(OWNER, RunStatus.FAILED), holder=OWNER), POLICY) == Follow(OWNER)


@pytest.mark.parametrize(
    ("owner", "holder", "decision"),
    [
        (RunStatus.RUNNING, OWNER, Follow(OWNER)),
        (RunStatus.PENDING, OWNER, Follow(OWNER)),
        (RunStatus.WAITING, None, Follow(OWNER)),
        (RunStatus.WAITING, OTHER, Follow(OWNER)),
        (RunStatus.RUNNING, None, Own()),
        (RunStatus.RUNNING, OTHER, Follow(OTHER)),
    ],
    ids=["works", "begins", "waits for a person", "waits while another works", "died", "died, and another works"],
)
def test_an_owner_that_has_not_ended(owner: RunStatus, holder: RunId | None, decision: Follow | Own) -> None:
    """It is waited for, unless it has died."""
    assert decide(follower(), around(followed=ended(OWNER, owner), holder=holder), POLICY) == decision


@pytest.mark.parametrize("status", [RunStatus.RUNNING, RunStatus.WAITING])
@pytest.mark.parametrize(("waited", "is_over"), [(10 * MINUTE, False), (11 * MINUTE, True)])
def test_patience_has_an_end(status: RunStatus, waited: timedelta, *, is_over: bool) -> None:
    """With a person's review as with a worker; the failure says which run, how long, and whose rule that is."""
    holder = OWNER if status is RunStatus.RUNNING else None
    decision = decide(follower(), around(followed=ended(OWNER, status), holder=holder, waited=waited), POLICY)
    assert isinstance(decision, End) is is_over
    if isinstance(decision, End):
        assert decision.event is RunEvent.FAIL
        assert decision.failure is not None
        assert "run owner of the same request did not end within 10m (wait_timeout of stage hotel-content)" in (
            decision.failure.message
        )


@pytest.mark.parametrize("status", list(RunStatus))
@pytest.mark.parametrize(("ago", "is_recent"), [(9 * MINUTE, True), (10 * MINUTE, False)])
@pytest.mark.parametrize("is_outrun", [False, True])
@pytest.mark.parametrize("force", [False, True])
def test_what_is_replayed(status: RunStatus, ago: timedelta, *, is_recent: bool, is_outrun: bool, force: bool) -> None:
    """A recent success that nobody has published over since, for whoever does not insist on another."""
    meeting = around(newest=ended(OWNER, status, ago), is_outrun=is_outrun)
    replay = End(RunEvent.REPLAY, OWNER)
    is_due = status is RunStatus.SUCCEEDED and is_recent and not is_outrun and not force
    assert decide(a_run("run", force=force), meeting, POLICY) == (replay if is_due else Own())


def test_nothing_is_replayed_where_a_stage_does_not_ask_for_it() -> None:
    """Not even what ended in this very moment."""
    meeting = around(newest=ended(OWNER, RunStatus.SUCCEEDED, timedelta(0)))
    assert decide(a_run("run"), meeting, StagePolicy()) == Own()


@pytest.mark.parametrize("status", list(RunStatus))
def test_who_has_worked_is_not_decided_upon(status: RunStatus) -> None:
    """Nor is who has succeeded; everybody else that has followed is."""
    assert is_decided(a_run("run", status=status))
    assert is_decided(follower(status=status)) is (status is RunStatus.SUCCEEDED)
