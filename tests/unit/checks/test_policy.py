"""Review policy: which figures are approved, doubted or blocked, and why."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.checks.policy import judge
from sluice.model.ledger import Outcome
from sluice.model.lifecycle import Verdict
from sluice.model.review import Figures
from sluice.model.run import Mode, ReviewMode
from sluice.model.scalars import Limit
from sluice.model.spec import ReviewPolicy


def figures(live: int = 1000, seen: int = 1000, first: int = 0, **outcomes: int) -> Figures:
    return Figures(
        seen=seen,
        unchanged=0,
        live_before=live,
        first_loaded=first,
        outcomes={Outcome(name): number for name, number in outcomes.items()},
    )


def verdict_of(policy: ReviewPolicy, of: Figures, mode: Mode = Mode.FULL, review: ReviewMode = ReviewMode.POLICY) -> Verdict:
    return judge(policy, of, mode, review).verdict


@pytest.mark.parametrize(
    ("of", "verdict"),
    [
        (figures(changed=200), Verdict.AUTO_APPROVED),
        (figures(changed=201), Verdict.NEEDS_HUMAN),
        (figures(changed=150, reappeared=51), Verdict.NEEDS_HUMAN),
        (figures(created=200), Verdict.AUTO_APPROVED),
        (figures(created=201), Verdict.NEEDS_HUMAN),
        (figures(deleted=1), Verdict.NEEDS_HUMAN),
        (figures(deleted=200), Verdict.NEEDS_HUMAN),
        (figures(deleted=201), Verdict.BLOCKED),
        (figures(changed=1, rejected=10), Verdict.AUTO_APPROVED),
        (figures(changed=1, rejected=11), Verdict.NEEDS_HUMAN),
        (figures(rejected=10), Verdict.AUTO_APPROVED),
        (figures(rejected=11), Verdict.NEEDS_HUMAN),
        (figures(rejected=1000), Verdict.BLOCKED),
        (figures(stale=900), Verdict.AUTO_APPROVED),
        (figures(live=0, first=1, created=1), Verdict.NEEDS_HUMAN),
        (figures(first=1, created=1), Verdict.NEEDS_HUMAN),
    ],
)
def test_default_limits_protect(of: Figures, verdict: Verdict) -> None:
    """The defaults let a fifth change, no deletion pass, and block mass deletion."""
    assert verdict_of(ReviewPolicy(), of) is verdict


def test_nothing_received_is_an_outage_and_never_a_deletion() -> None:
    """A full run that brought nothing is blocked; an incremental one of a filled table is an ordinary quiet day."""
    nothing = figures(seen=0)
    judgement = judge(ReviewPolicy(), nothing, Mode.FULL, ReviewMode.POLICY)
    assert (judgement.verdict, judgement.reasons) == (Verdict.BLOCKED, ("the supplier delivered nothing",))
    assert verdict_of(ReviewPolicy(), nothing, Mode.INCREMENTAL) is Verdict.AUTO_APPROVED
    assert verdict_of(ReviewPolicy(), figures(live=0, seen=0), Mode.INCREMENTAL) is Verdict.BLOCKED


def test_a_quiet_day_of_bad_objects_is_looked_at() -> None:
    """An incremental run that brought nothing but rejects is no outage, but somebody has to know."""
    assert verdict_of(ReviewPolicy(), figures(seen=1, rejected=1), Mode.INCREMENTAL) is Verdict.NEEDS_HUMAN


def test_a_review_can_be_asked_for() -> None:
    """Asked to, policy approves nothing that writes by itself."""
    assert verdict_of(ReviewPolicy(), figures(changed=1), review=ReviewMode.ALWAYS) is Verdict.NEEDS_HUMAN
    assert verdict_of(ReviewPolicy(), figures(), review=ReviewMode.ALWAYS) is Verdict.AUTO_APPROVED


def test_first_load_may_be_approved_by_policy() -> None:
    """A sync may trust the first load of each shard, but not one that was rejected by half."""
    trusting = ReviewPolicy(first_load="auto-approve")
    assert verdict_of(trusting, figures(live=0, first=1000, created=1000)) is Verdict.AUTO_APPROVED
    assert verdict_of(trusting, figures(live=100, first=400, created=420)) is Verdict.AUTO_APPROVED
    assert verdict_of(trusting, figures(live=100, first=400, created=421)) is Verdict.NEEDS_HUMAN
    assert verdict_of(trusting, figures(live=0, first=500, created=500, rejected=500)) is Verdict.NEEDS_HUMAN


def test_reasons_say_number_share_and_limit() -> None:
    """Whoever is on call reads what was exceeded and by how much."""
    judgement = judge(ReviewPolicy(), figures(deleted=400, changed=500), Mode.FULL, ReviewMode.POLICY)
    assert judgement.reasons == ("400 of 1,000 objects deleted (40.0%); block.deleted allows 20%",)


@given(number=st.integers(0, 10**9), total=st.integers(0, 10**9), millionths=st.integers(0, 10**6))
def test_a_share_is_exact(number: int, total: int, millionths: int) -> None:
    """A limit as a share decides as integer arithmetic does, without rounding."""
    limit = Limit(share=Decimal(millionths) / 10**6)
    assert limit.allows(number, total) is (number == 0 or number * 10**6 <= millionths * total)
