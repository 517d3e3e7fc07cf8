"""Review policy: figures of a diff in, verdict and reasons out."""

from dataclasses import dataclass

from sluice.model.ledger import Outcome
from sluice.model.lifecycle import Verdict
from sluice.model.review import Figures
from sluice.model.run import Mode, ReviewMode
from sluice.model.scalars import Limit
from sluice.model.spec import ReviewPolicy


@dataclass(frozen=True)
class Judgement:
    """What policy says of a diff; no reasons where it approves."""

    verdict: Verdict
    reasons: tuple[str, ...] = ()


def judge(policy: ReviewPolicy, figures: Figures, mode: Mode, review: ReviewMode) -> Judgement:
    """Hold a diff's figures against the policy.

    A hard block outranks a limit. A run that would write nothing has nothing to approve, unless what it brought could not be
    taken in: then somebody has to know. One that should have brought something and brought nothing is an outage.
    """
    if blocks := _blocks(policy, figures, mode):
        return Judgement(Verdict.BLOCKED, blocks)
    if reasons := _doubts(policy, figures, review):
        return Judgement(Verdict.NEEDS_HUMAN, reasons)
    return Judgement(Verdict.AUTO_APPROVED)


def _blocks(policy: ReviewPolicy, figures: Figures, mode: Mode) -> tuple[str, ...]:
    if figures.seen == 0 and (mode is Mode.FULL or figures.live_before == 0):
        return ("the supplier delivered nothing",)
    if mode is Mode.FULL and figures.count(Outcome.REJECTED) == figures.seen:
        return (f"none of {figures.seen:,} objects could be taken in",)
    return _over(policy.block.deleted, "deleted", figures.count(Outcome.DELETED), figures.live_before, "block")


def _doubts(policy: ReviewPolicy, figures: Figures, review: ReviewMode) -> tuple[str, ...]:
    reasons: list[str] = []
    limits = policy.auto_approve
    if review is ReviewMode.ALWAYS and figures.writes:
        reasons.append("a review was asked for")
    if figures.first_loaded and policy.first_load == "needs-human":
        reasons.append(f"{figures.first_loaded:,} objects are a first load: the table holds nothing of their shards")
    created = figures.count(Outcome.CREATED) - figures.first_loaded
    changed = figures.count(Outcome.CHANGED) + figures.count(Outcome.REAPPEARED)
    reasons += _over(limits.created, "created", created, figures.live_before, "auto_approve")
    reasons += _over(limits.changed, "changed", changed, figures.live_before, "auto_approve")
    reasons += _over(limits.deleted, "deleted", figures.count(Outcome.DELETED), figures.live_before, "auto_approve")
    reasons += _over(limits.rejected, "rejected", figures.count(Outcome.REJECTED), figures.seen, "auto_approve")
    return tuple(reasons)


def _over(limit: Limit, what: str, number: int, total: int, rule: str) -> tuple[str, ...]:
    if limit.allows(number, total):
        return ()
    share = f" ({100 * number / total:.1f}%)" if total else ""
    return (f"{number:,} of {total:,} objects {what}{share}; {rule}.{what} allows {limit}",)
