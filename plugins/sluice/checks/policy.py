"""Review policy: figures of a diff and drift in, verdict and reasons out."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sluice.checks import expectations
from sluice.model.evidence import Drift, Profile
from sluice.model.ledger import Outcome
from sluice.model.lifecycle import APPROVALS, Verdict
from sluice.model.quality import Quality
from sluice.model.review import Choice, Decision, Figures, Review
from sluice.model.run import Mode, ReviewMode, Run
from sluice.model.scalars import Limit
from sluice.model.spec import ReviewPolicy

_MOST_DRIFTS: Final = 5
"""So many fields are named; whoever reads the reasons looks at the evidence for more."""


@dataclass(frozen=True)
class Judgement:
    """What policy says of a diff; no reasons where it approves."""

    verdict: Verdict
    reasons: tuple[str, ...] = ()


def judge(
    policy: ReviewPolicy,
    figures: Figures,
    run: Run,
    drifts: Sequence[Drift] = (),
    profile: Profile | None = None,
    *,
    quality: Quality | None = None,
) -> Judgement:
    """Hold a diff's figures, what the table would hold, and how far that is from the last publication, against the policy.

    What the sync's suite has found counts as it says.

    A hard block outranks a limit. A run that would write nothing has nothing to approve, unless what it brought could not be
    taken in, or was too little: then somebody has to know. One that should have brought something and brought nothing is an
    outage. What takes a publication back is for the person who asks for it to decide, whatever the figures.
    """
    if run.mode is Mode.ROLLBACK:
        return Judgement(Verdict.NEEDS_HUMAN, (f"a person asks for publication {run.undoes} to be taken back",))
    if blocks := (*_blocks(policy, figures, run), *_unmet(policy, figures, profile), *expectations.blocks(quality)):
        return Judgement(Verdict.BLOCKED, blocks)
    if reasons := (*_wishes(policy, figures, run), *_doubts(policy, figures, run), *_drifted(policy, figures, drifts)):
        return Judgement(Verdict.NEEDS_HUMAN, reasons)
    return Judgement(Verdict.AUTO_APPROVED)


def asked_again(judgement: Judgement, earlier: Iterable[Review]) -> Judgement:
    """Return what is judged where a person has let an `earlier` review of the run pass that was not published.

    What has changed since is for a person to look at, too, whatever policy alone would let pass.
    """
    decided = [review.decision for review in earlier if review.verdict in APPROVALS and review.decision]
    if not decided or judgement.verdict is not Verdict.AUTO_APPROVED:
        return judgement
    return Judgement(Verdict.NEEDS_HUMAN, (f"it is not what {decided[0].by} let pass before: something has changed since",))


def is_mass_deletion(policy: ReviewPolicy, figures: Figures) -> bool:
    """Whether so much would be deleted that only a person who names a number may let it through."""
    return not policy.block.deleted.allows(figures.count(Outcome.DELETED), figures.live_before)


def unanswered(policy: ReviewPolicy, at: datetime) -> Decision:
    """Return what is decided about a review that nobody answers in time: never an approval."""
    choice = Choice.REJECT if policy.on_timeout == "reject" else Choice.EXPIRE
    return Decision(choice=choice, by="policy", via="policy", comment="nobody answered in time", at=at)


def _blocks(policy: ReviewPolicy, figures: Figures, run: Run) -> tuple[str, ...]:
    # A day may be quiet: of nothing within a window nothing follows, not even deletions.
    if figures.seen == 0 and run.window is None and run.mode is not Mode.REDRIVE:
        if run.mode is Mode.FULL or figures.live_before == 0:
            return ("the supplier delivered nothing",)
    elif run.mode is Mode.FULL and figures.seen and figures.count(Outcome.REJECTED) >= figures.seen:
        return (f"none of {figures.seen:,} objects could be taken in",)
    return _over(policy.block.deleted, "deleted", figures.count(Outcome.DELETED), figures.live_before, "block.deleted")


def _unmet(policy: ReviewPolicy, figures: Figures, profile: Profile | None) -> tuple[str, ...]:
    """Return the hard expectations that the table would not meet; what was not looked at is not met."""
    if not figures.writes:
        return ()
    fields = {field.field: field for field in profile.fields} if profile else {}
    reasons = []
    for expected in policy.block.expect:
        found = fields.get(expected.field)
        nulls = None if profile is None or found is None else profile.nulls_of(found)
        if profile is None or nulls is None:
            reasons.append(f"the values of {expected.field} could not be looked at; block.expect asks for that")
            continue
        if not expected.nulls_at_most.allows(nulls, profile.rows):
            share = f"{100 * nulls / profile.rows:.1f}%"
            what = f"{nulls:,} of {profile.rows:,} rows ({share}) would have no {expected.field}"
            reasons.append(f"{what}; block.expect allows {expected.nulls_at_most}")
    return tuple(reasons)


def _wishes(policy: ReviewPolicy, figures: Figures, run: Run) -> tuple[str, ...]:
    """Return who wants a person to look, whatever the figures are."""
    if not figures.writes:
        return ()
    asked = ("a review was asked for",) if run.review is ReviewMode.ALWAYS else ()
    return (*asked, "every change of this sync is reviewed (review.always)") if policy.always else asked


def _doubts(policy: ReviewPolicy, figures: Figures, run: Run) -> tuple[str, ...]:
    reasons: list[str] = []
    limits = policy.auto_approve
    if figures.first_loaded and policy.first_load == "needs-human":
        reasons.append(f"{figures.first_loaded:,} objects are a first load: the table holds nothing of their shards")
    reasons += _unseen(policy, figures, run)
    created = figures.count(Outcome.CREATED) - figures.first_loaded
    reappeared = figures.count(Outcome.REAPPEARED)
    changed = figures.count(Outcome.CHANGED) + reappeared
    said = "changed or reappeared" if reappeared else "changed"
    reasons += _over(limits.created, "created", created, figures.live_before, "auto_approve.created")
    reasons += _over(limits.changed, said, changed, figures.live_before, "auto_approve.changed")
    reasons += _over(limits.deleted, "deleted", figures.count(Outcome.DELETED), figures.live_before, "auto_approve.deleted")
    if run.mode is not Mode.REDRIVE:  # whose rejects are the dead letters that somebody knows of
        reasons += _over(limits.rejected, "rejected", figures.count(Outcome.REJECTED), figures.seen, "auto_approve.rejected")
    return tuple(reasons)


def _unseen(policy: ReviewPolicy, figures: Figures, run: Run) -> tuple[str, ...]:
    """Return whether a run that asked for everything saw too little of what the target holds, be it deleted for that or not."""
    if not run.asks_for_all or figures.shards_failed:
        return ()
    least = policy.auto_approve.seen_at_least
    seen = min(figures.seen, max(figures.live_before - figures.vanished, 0))
    if seen >= least * figures.live_before:
        return ()
    delivered = f"{seen:,} of the {figures.live_before:,} objects the table holds ({100 * seen / figures.live_before:.1f}%)"
    asked_for = f"{(least * 100).normalize():f}%"
    return (f"the supplier delivered only {delivered}; auto_approve.seen_at_least asks for {asked_for}",)


def _drifted(policy: ReviewPolicy, figures: Figures, drifts: Sequence[Drift]) -> tuple[str, ...]:
    """Return which fields have come too far, the furthest first. A first load has other shards' data to be compared with."""
    if not figures.writes or figures.first_loaded:
        return ()
    allowed = policy.auto_approve.drift
    far = sorted((drift for drift in drifts if drift.value > allowed), key=lambda drift: (-drift.value, drift.field))
    reasons = [
        f"the values of {drift.field} have shifted since the last publication: {drift.measure} {drift.value:.3f}; "
        f"auto_approve.drift allows {allowed:g}"
        for drift in far[:_MOST_DRIFTS]
    ]
    more = len(far) - len(reasons)
    return (*reasons, f"the values of {more} more fields have shifted, too") if more else tuple(reasons)


def _over(limit: Limit, what: str, number: int, total: int, rule: str) -> tuple[str, ...]:
    if limit.allows(number, total):
        return ()
    share = f" ({100 * number / total:.1f}%)" if total else ""
    return (f"{number:,} of {total:,} objects {what}{share}; {rule} allows {limit}",)
