"""Review policy: which figures are approved, doubted or blocked, and why."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from sluice.checks.policy import is_mass_deletion, judge, unanswered
from sluice.model.base import PublicationId, ShardKey
from sluice.model.evidence import Drift, FieldKind, FieldProfile, Measure, Profile
from sluice.model.ledger import Outcome
from sluice.model.lifecycle import Verdict
from sluice.model.review import Choice, Decision, Figures
from sluice.model.run import Mode, ReviewMode, Run, Window
from sluice.model.scalars import Limit
from sluice.model.spec import AutoApprove, Block, ReviewPolicy
from tests.support.nouns import NOW, a_run


def figures(live: int = 1000, seen: int = 1000, first: int = 0, vanished: int = 0, failed: int = 0, **outcomes: int) -> Figures:
    return Figures(
        seen=seen,
        unchanged=0,
        live_before=live,
        first_loaded=first,
        vanished=vanished,
        shards_failed=failed,
        outcomes={Outcome(name): number for name, number in outcomes.items()},
    )


def verdict_of(
    policy: ReviewPolicy, of: Figures, mode: Mode = Mode.FULL, review: ReviewMode = ReviewMode.POLICY, **run: Any
) -> Verdict:
    return judge(policy, of, a_run(mode=mode, review=review, **run)).verdict


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
    judgement = judge(ReviewPolicy(), nothing, a_run())
    assert (judgement.verdict, judgement.reasons) == (Verdict.BLOCKED, ("the supplier delivered nothing",))
    assert verdict_of(ReviewPolicy(), nothing, Mode.INCREMENTAL) is Verdict.AUTO_APPROVED
    assert verdict_of(ReviewPolicy(), figures(live=0, seen=0), Mode.INCREMENTAL) is Verdict.BLOCKED


def test_a_quiet_span_is_no_outage() -> None:
    """A backfill of a day on which nothing happened needs nobody; one of bad objects alone does."""
    assert judge(ReviewPolicy(), figures(seen=0), a_run(window=MAY)).verdict is Verdict.AUTO_APPROVED
    assert judge(ReviewPolicy(), figures(live=0, seen=0), a_run(window=MAY)).verdict is Verdict.AUTO_APPROVED
    assert judge(ReviewPolicy(), figures(seen=1, rejected=1), a_run(window=MAY)).verdict is Verdict.BLOCKED


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


def test_a_sync_may_want_every_change_reviewed() -> None:
    """With `always` no figures are small enough, unless nothing would change."""
    judgement = judge(ReviewPolicy(always=True), figures(changed=1), a_run())
    assert judgement.reasons == ("every change of this sync is reviewed (review.always)",)
    assert verdict_of(ReviewPolicy(always=True), figures()) is Verdict.AUTO_APPROVED


MAY = Window(start=datetime(2024, 5, 1, tzinfo=UTC), end=datetime(2024, 6, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    ("of", "run", "verdict"),
    [
        (figures(vanished=200), {}, Verdict.AUTO_APPROVED),
        (figures(vanished=201), {}, Verdict.NEEDS_HUMAN),
        (figures(seen=799), {}, Verdict.NEEDS_HUMAN),
        (figures(seen=800), {}, Verdict.AUTO_APPROVED),
        (figures(live=0, seen=1), {}, Verdict.AUTO_APPROVED),
        (figures(seen=1), {"mode": Mode.INCREMENTAL}, Verdict.AUTO_APPROVED),
        (figures(seen=1), {"shards": (ShardKey("north"),)}, Verdict.AUTO_APPROVED),
        (figures(seen=1), {"window": MAY}, Verdict.AUTO_APPROVED),
        (figures(seen=1, failed=1), {}, Verdict.AUTO_APPROVED),
    ],
)
def test_a_short_answer_is_looked_at(of: Figures, run: dict[str, Any], verdict: Verdict) -> None:
    """A run that asked for everything has to see most of what the table holds; one that did not ask need not."""
    assert verdict_of(ReviewPolicy(), of, **run) is verdict


def test_a_short_answer_is_told_in_numbers() -> None:
    """Whoever is on call reads what was seen, of how much, and what would have done."""
    judgement = judge(ReviewPolicy(), figures(seen=1200, vanished=500), a_run())
    assert judgement.reasons == (
        "the supplier delivered only 500 of the 1,000 objects the table holds (50.0%); auto_approve.seen_at_least asks for 80%",
    )


def drift(field: str, value: float, measure: Measure = Measure.STABILITY_INDEX) -> Drift:
    return Drift(field=field, measure=measure, value=value)


def test_drift_above_the_limit_is_looked_at() -> None:
    """The reason names field, measure and value; what is at the limit passes, and so does a run that writes nothing."""
    far = [drift("stars", 0.25), drift("price", 0.31), drift("kind", 0.5, Measure.FREQUENCY_SHIFT)]
    judgement = judge(ReviewPolicy(), figures(changed=1), a_run(), far)
    assert judgement.verdict is Verdict.NEEDS_HUMAN
    assert [reason.removesuffix("; auto_approve.drift allows 0.25") for reason in judgement.reasons] == [
        "the values of kind have shifted since the last publication: frequency shift 0.500",
        "the values of price have shifted since the last publication: population stability index 0.310",
    ]
    assert judge(ReviewPolicy(), figures(changed=1), a_run(), far[:1]).verdict is Verdict.AUTO_APPROVED
    assert judge(ReviewPolicy(), figures(), a_run(), far).verdict is Verdict.AUTO_APPROVED


def expecting(nulls_at_most: object) -> ReviewPolicy:
    """A policy with a hard expectation of one field."""
    return ReviewPolicy.model_validate({"block": {"expect": [{"field": "price", "nulls_at_most": nulls_at_most}]}})


def profile(nulls: int, rows: int = 1000, looked_at: int = 1000, field: str = "price", in_all: int | None = None) -> Profile:
    """What the table would hold: one field, with so many nulls among the rows looked at, and perhaps so many in all."""
    fields = (FieldProfile(field=field, kind=FieldKind.NUMBER, nulls=nulls, nulls_in_all=in_all, distinct=1),)
    return Profile(rows=rows, looked_at=looked_at, fields=fields)


@pytest.mark.parametrize(
    ("nulls_at_most", "of", "reason"),
    [
        ("1%", profile(10), None),
        ("1%", profile(11), "11 of 1,000 rows (1.1%) would have no price; block.expect allows 1%"),
        (0, profile(0), None),
        (0, profile(1), "1 of 1,000 rows (0.1%) would have no price; block.expect allows 0"),
        (1, profile(0, 100_000, 10_000, in_all=1), None),
        (0, profile(0, 100_000, 10_000, in_all=1), "1 of 100,000 rows (0.0%) would have no price; block.expect allows 0"),
        (9, profile(0, 100_000, 10_000), "the values of price could not be looked at; block.expect asks for that"),
        ("1%", profile(0, 0, 0), None),
        ("1%", profile(0, field="stars"), "the values of price could not be looked at; block.expect asks for that"),
        ("1%", None, "the values of price could not be looked at; block.expect asks for that"),
    ],
)
def test_a_failed_hard_expectation_blocks(nulls_at_most: object, of: Profile | None, reason: str | None) -> None:
    """Whatever else the limits allow; what a sample alone tells, and what was not looked at, has not been met."""
    judgement = judge(expecting(nulls_at_most), figures(changed=1), a_run(), (), of)
    if reason is None:
        assert judgement.verdict is Verdict.AUTO_APPROVED
    else:
        assert (judgement.verdict, judgement.reasons) == (Verdict.BLOCKED, (reason,))
    assert judge(expecting(nulls_at_most), figures(), a_run(), (), of).verdict is Verdict.AUTO_APPROVED


def test_reasons_stay_few() -> None:
    """Of two hundred fields that drift, the furthest are named."""
    reasons = judge(ReviewPolicy(), figures(changed=1), a_run(), [drift(f"f{n}", 1 + n) for n in range(200)]).reasons
    assert len(reasons) == 6
    assert reasons[0].startswith("the values of f199 have shifted")
    assert reasons[-1] == "the values of 195 more fields have shifted, too"


def test_a_limit_may_be_a_number_and_a_share() -> None:
    """The stricter of the two counts, and the reason names both."""
    policy = ReviewPolicy(auto_approve=AutoApprove(changed=Limit(count=5, share=Decimal("0.01"))))
    assert verdict_of(policy, figures(changed=5)) is Verdict.AUTO_APPROVED
    assert verdict_of(policy, figures(live=100, changed=2)) is Verdict.NEEDS_HUMAN
    (reason,) = judge(policy, figures(changed=6), a_run()).reasons
    assert reason == "6 of 1,000 objects changed (0.6%); auto_approve.changed allows 5 and 1%"


def test_what_reappeared_is_named_in_the_reason() -> None:
    """It counts with what changed, which may then be more than the table holds."""
    (reason,) = judge(ReviewPolicy(), figures(live=60, seen=90, changed=40, reappeared=30), a_run()).reasons
    assert reason == "70 of 60 objects changed or reappeared (116.7%); auto_approve.changed allows 20%"


@pytest.mark.parametrize("of", [figures(), figures(seen=0), figures(deleted=1000), figures(changed=1)])
def test_policy_neither_approves_nor_blocks_a_rollback(of: Figures) -> None:
    """Who asks for it decides about it."""
    judgement = judge(ReviewPolicy(), of, a_run(mode=Mode.ROLLBACK, undoes=PublicationId(7)))
    assert (judgement.verdict, judgement.reasons) == (
        Verdict.NEEDS_HUMAN,
        ("a person asks for publication 7 to be taken back",),
    )


@pytest.mark.parametrize(("deleted", "is_one"), [(0, False), (200, False), (201, True)])
def test_what_a_mass_deletion_is(deleted: int, is_one: bool) -> None:
    """More deletions than the hard block allows."""
    assert is_mass_deletion(ReviewPolicy(), figures(deleted=deleted)) is is_one


@pytest.mark.parametrize(("on_timeout", "choice"), [("expire", Choice.EXPIRE), ("reject", Choice.REJECT)])
def test_what_nobody_answers_is_decided_by_policy(on_timeout: Literal["expire", "reject"], choice: Choice) -> None:
    """As the sync says; there is no way to say that it shall be approved."""
    decision = unanswered(ReviewPolicy(on_timeout=on_timeout), NOW)
    assert (decision.choice, decision.by, decision.via, decision.at) == (choice, "policy", "policy", NOW)


@pytest.mark.parametrize("choice", [Choice.APPROVE, Choice.APPROVE_WITHOUT_DELETES])
def test_policy_approves_nothing_that_was_asked(choice: Choice) -> None:
    """Such a decision cannot even be written down."""
    with pytest.raises(ValidationError, match="policy decides about nothing but what nobody answers"):
        Decision(choice=choice, by="policy", via="policy", at=NOW)


def test_reasons_say_number_share_and_limit() -> None:
    """Whoever is on call reads what was exceeded and by how much."""
    judgement = judge(ReviewPolicy(), figures(deleted=400, changed=500), a_run())
    assert judgement.reasons == ("400 of 1,000 objects deleted (40.0%); block.deleted allows 20%",)


@given(number=st.integers(0, 10**9), total=st.integers(0, 10**9), millionths=st.integers(0, 10**6))
def test_a_share_is_exact(number: int, total: int, millionths: int) -> None:
    """A limit as a share decides as integer arithmetic does, without rounding."""
    limit = Limit(share=Decimal(millionths) / 10**6)
    assert limit.allows(number, total) is (number == 0 or number * 10**6 <= millionths * total)


MILDEST_FIRST = [Verdict.AUTO_APPROVED, Verdict.NEEDS_HUMAN, Verdict.BLOCKED]
numbers = st.integers(0, 50)
limits = st.builds(Limit, count=st.none() | numbers, share=st.integers(0, 100).map(lambda percent: Decimal(percent) / 100))
policies = st.builds(
    ReviewPolicy,
    always=st.booleans(),
    first_load=st.sampled_from(["auto-approve", "needs-human"]),
    auto_approve=st.builds(
        AutoApprove,
        seen_at_least=st.integers(1, 100).map(lambda percent: Decimal(percent) / 100),
        drift=st.floats(0.01, 2),
        created=limits,
        changed=limits,
        deleted=limits,
        rejected=limits,
    ),
    block=st.builds(Block, deleted=limits),
)
runs = st.builds(a_run, mode=st.sampled_from([Mode.FULL, Mode.INCREMENTAL]), review=st.sampled_from(ReviewMode))
RAISED = ["created", "changed", "reappeared", "deleted", "rejected", "vanished", "first_loaded", "moved"]


@st.composite
def counted(draw: st.DrawFn) -> Figures:
    """Figures as a diff may have them."""
    outcomes = {Outcome(name): draw(numbers) for name in ("created", "changed", "reappeared", "deleted", "rejected")}
    delivered = sum(number for outcome, number in outcomes.items() if outcome is not Outcome.DELETED)
    unchanged = draw(numbers)
    return Figures(
        seen=delivered + unchanged,
        unchanged=unchanged,
        live_before=draw(st.integers(0, 200)),
        first_loaded=draw(st.integers(0, outcomes[Outcome.CREATED])),
        vanished=draw(numbers),
        outcomes=outcomes,
    )


def raised(of: Figures, what: str, by: int) -> Figures:
    """The same with more of something; what more is delivered is seen, too."""
    if what in ("vanished", "moved"):
        return of.model_copy(update={what: getattr(of, what) + by})
    outcome = Outcome.CREATED if what == "first_loaded" else Outcome(what)
    more: dict[str, Any] = {"outcomes": {**of.outcomes, outcome: of.count(outcome) + by}}
    if what == "first_loaded":
        more["first_loaded"] = of.first_loaded + by
    return of.model_copy(update=more)


mores = st.tuples(st.sampled_from(RAISED), st.integers(1, 100))


@given(policies, counted(), runs, mores, st.lists(st.floats(0, 3), max_size=3))
def test_more_of_anything_is_never_judged_more_mildly(
    policy: ReviewPolicy, of: Figures, run: Run, more: tuple[str, int], drifts: list[float]
) -> None:
    """Raising a figure, or having a field drift, may only make the verdict stricter."""
    before = judge(policy, of, run).verdict
    fields = [drift(f"f{number}", value) for number, value in enumerate(drifts)]
    after = judge(policy, raised(of, *more), run, fields).verdict
    assert MILDEST_FIRST.index(after) >= MILDEST_FIRST.index(before)


@given(policies, counted(), st.data())
def test_fewer_seen_is_never_judged_more_mildly(policy: ReviewPolicy, of: Figures, data: st.DataObject) -> None:
    """What the supplier left out earns nothing."""
    fewer = of.model_copy(update={"seen": data.draw(st.integers(of.seen - of.unchanged, of.seen))})
    before, after = judge(policy, of, a_run()).verdict, judge(policy, fewer, a_run()).verdict
    assert MILDEST_FIRST.index(after) >= MILDEST_FIRST.index(before)


@given(policies, counted(), st.integers(1, 200))
def test_a_short_answer_never_deletes_by_itself(policy: ReviewPolicy, of: Figures, deleted: int) -> None:
    """Whatever policy and figures: a full run that saw nothing, or less than it has to, needs a person to delete anything."""
    outcomes = {**of.outcomes, Outcome.DELETED: deleted}
    nothing = of.model_copy(update={"outcomes": {Outcome.DELETED: deleted}, "seen": 0, "unchanged": 0})
    assert judge(policy, nothing, a_run()).verdict is Verdict.BLOCKED
    least = int(policy.auto_approve.seen_at_least * of.live_before)
    for seen in range(min(least, 3)):
        short = of.model_copy(update={"outcomes": outcomes, "vanished": of.live_before - seen})
        assert judge(policy, short, a_run()).verdict is not Verdict.AUTO_APPROVED
