"""A review: the diff of a run against the ledger in figures, its verdict, and the decision about it."""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Final

from pydantic import Field, model_validator

from sluice.model.artifact import Pointer
from sluice.model.audit import Actor
from sluice.model.base import Frozen, ReviewId, RunId
from sluice.model.ledger import WRITING_OUTCOMES, Outcome
from sluice.model.lifecycle import ReviewEvent, ShardStatus, Verdict
from sluice.model.shard import Shard

REVIEW_STATE_VERSION: Final = 3


class Figures(Frozen):
    """What a publication of this run would do, counted."""

    seen: int = Field(ge=0, description="distinct objects the supplier delivered, rejected ones included")
    unchanged: int = Field(ge=0, description="objects the ledger already holds just so")
    live_before: int = Field(ge=0, description="objects the target holds now")
    first_loaded: int = Field(
        default=0, ge=0, description="of the created objects, those of shards of which the target holds nothing yet"
    )
    vanished: int = Field(
        default=0, ge=0, description="objects the target holds and a run that saw everything did not; deleted, unless ignored"
    )
    moved: int = Field(default=0, ge=0, description="objects that another shard delivered than the last time")
    conflicts: int = Field(
        default=0, ge=0, description="objects of the publication to take back that were changed since, and are left alone"
    )
    noted: int = Field(
        default=0,
        ge=0,
        description="objects that leave the table alone, and of which the ledger learns a newer version, or news of"
        " an older one",
    )
    outcomes: dict[Outcome, int]
    shards_failed: int = Field(default=0, ge=0)

    def count(self, outcome: Outcome) -> int:
        """Return how many objects have this outcome."""
        return self.outcomes.get(outcome, 0)

    @property
    def publishes(self) -> bool:
        """Whether a publication would change anything, be it in the table or in the ledger alone."""
        return bool(self.writes or self.noted)

    @property
    def writes(self) -> int:
        """How many rows of the target would change."""
        return sum(self.count(outcome) for outcome in WRITING_OUTCOMES)


class Choice(StrEnum):
    """What a person may answer; `airflow_names` has the labels of Airflow's approval form."""

    APPROVE = "approve"
    APPROVE_WITHOUT_DELETES = "approve-without-deletes"
    REJECT = "reject"
    EXPIRE = "expire"
    """Nobody answered in time."""

    @property
    def event(self) -> ReviewEvent:
        """The lifecycle event this answer stands for."""
        return ReviewEvent(self.value)


LONGEST_COMMENT: Final = 2000
"""What a person says beyond that is cut."""

MOST_DELETES: Final = 2**63 - 1
"""The highest number of deletions that can be kept."""


class Decision(Frozen):
    """Who decided what about a review, when, why, and by which way the answer came. Policy never approves by one."""

    choice: Choice
    by: str
    via: str = Field(description="`airflow`, `pages`, `cli` or `policy`")
    comment: str = ""
    deletes_at_most: int | None = Field(
        default=None, ge=0, description="how many deletions were let through; None: as many as the review has"
    )
    at: datetime

    @model_validator(mode="after")
    def _approved_by_a_person(self) -> "Decision":
        if self.via == "policy" and self.choice not in (Choice.EXPIRE, Choice.REJECT):
            raise ValueError("policy decides about nothing but what nobody answers")
        return self

    @property
    def actor(self) -> Actor:
        """Who decided, and why, as the audit trail has it."""
        return Actor(name=self.by, via=self.via, reason=self.comment)

    def answers_as(self, other: "Decision") -> bool:
        """Whether the other one says the same: it lets through as many deletions, or leaves that open."""
        return self.choice is other.choice and other.deletes_at_most in (None, self.deletes_at_most)


class Review(Frozen):
    """The diff of a run against the ledger, bound to exactly what was staged."""

    id: ReviewId
    run: RunId
    sync: str
    digest: str = Field(
        description="sha-256 over what was staged, its diff, the spec and what checks found: an approval is of this alone"
    )
    figures: Figures
    reasons: tuple[str, ...] = Field(description="why it was not approved by policy; empty if it was")
    checks: str | None = Field(default=None, description="sha-256 of what the suite of its sync found; None: it named none")
    verdict: Verdict
    diff: Pointer
    evidence: Pointer | None = Field(default=None, description="what a person decides by; None: made before there was any")
    report: Pointer | None = Field(default=None, description="the packet, to be read offline; None as above")
    decision: Decision | None = None
    superseded_by: ReviewId | None = Field(default=None, description="the newer review that has taken its place")
    state_version: int = REVIEW_STATE_VERSION
    created_at: datetime

    @property
    def deletions_allowed(self) -> int:
        """How many objects its publication may delete."""
        if self.verdict is Verdict.APPROVED_WITHOUT_DELETES:
            return 0
        number = self.decision.deletes_at_most if self.decision is not None else None
        return self.figures.count(Outcome.DELETED) if number is None else number

    def covers(self, shards: Sequence[Shard]) -> bool:
        """Whether all shards of its run that have succeeded by now had done so when it was made."""
        return sum(shard.status is not ShardStatus.SUCCEEDED for shard in shards) >= self.figures.shards_failed


def told_by(reasons: Sequence[str], checks: str | None) -> tuple[str, ...]:
    """Return what policy and checks say of a diff, as it goes into the digest of its review."""
    return tuple(reasons) if checks is None else (*reasons, checks)


def by_whom(review: Review) -> str:
    """Return who decided about it and what they said, or which review has superseded it, to be read after its verdict."""
    if review.superseded_by is not None:
        return f" by review {review.superseded_by}"
    if review.decision is None:
        return ""
    return f" by {review.decision.by}" + (f": {review.decision.comment}" if review.decision.comment else "")


def no_longer_waits(review: Review, successor: Review | None) -> str:
    """Return what to tell whoever answers a review that waits no longer; `successor` has superseded it, if it is known."""
    if review.superseded_by is not None:
        of_run = f" of run {successor.run}" if successor is not None else ""
        return f"review {review.id} is superseded by review {review.superseded_by}{of_run}: decide about that one"
    given_by = f", by {review.decision.by} at {review.decision.at:%Y-%m-%dT%H:%M:%SZ}" if review.decision else ""
    return f"review {review.id} is {review.verdict}{given_by}: it no longer waits, and the answer changes nothing"
