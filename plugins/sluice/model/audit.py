"""The audit trail: who did what, by which way and why, comes in; an entry that nobody changes any more goes out."""

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from pydantic import AwareDatetime, JsonValue

from sluice.errors import UsageInvalid
from sluice.model.base import Frozen, RunId

if TYPE_CHECKING:
    from sluice.model.run import Run  # which knows who has asked for it


class Act(StrEnum):
    """What a person or policy does that changes something."""

    RESET_SHARD = "reset-shard"
    SKIP_SHARD = "skip-shard"
    STOP_SHARD = "stop-shard"
    CANCEL_RUN = "cancel-run"
    RELEASE_LEASE = "release-lease"
    DECIDE_REVIEW = "decide-review"
    FORCE_RUN = "force-run"
    ROLL_BACK = "roll-back"
    REDRIVE = "redrive"
    DISCARD = "discard"
    COLLECT_GARBAGE = "collect-garbage"


LONGEST_REASON: Final = 2000
"""What is said beyond that is cut."""
_LONGEST_NAME: Final = 200


class Actor(Frozen):
    """A person, or policy; by which way they act, and why."""

    name: str
    via: str
    """`airflow`, `pages`, `cli` or `policy`."""
    reason: str = ""

    def with_reason(self) -> "Actor":
        """Return the actor as state keeps it; raise `UsageInvalid` unless there is a name and a reason."""
        name, reason = self.name.strip(), self.reason.strip()
        if not name:
            raise UsageInvalid("the name of whoever does this is empty")
        if not reason:
            raise UsageInvalid("the reason is empty: whoever looks later wants to know why")
        return self.model_copy(update={"name": name[:_LONGEST_NAME], "reason": reason[:LONGEST_REASON]})

    def __str__(self) -> str:
        """Return who it is, and why, as people read it."""
        return f"{self.name} ({self.via})" + (f": {self.reason}" if self.reason else "")


POLICY: Final = Actor(name="policy", via="policy")
"""Whoever acts where nobody is asked."""


class AuditEntry(Frozen):
    """One act. It outlives the run that it was about."""

    id: int
    at: AwareDatetime
    act: Act | str
    """A text if it is an act that only a later release knows."""
    by: Actor
    sync: str | None
    run: RunId | None
    subject: str | None
    """What of the run, or of the sync, it was about: a shard, a review, a publication, a lease, letters."""
    facts: dict[str, JsonValue]


def act_of_request(run: "Run") -> tuple[Act, str | None, dict[str, JsonValue]] | None:
    """Return what somebody does who begins a run that changes what others have brought, or does not rest on it.

    That is an act, what it is about, and its facts. An ordinary run is nobody's act.
    """
    if run.undoes is not None:
        return Act.ROLL_BACK, str(run.undoes), {}
    if run.redrives is not None:
        return Act.REDRIVE, None, run.redrives.model_dump(mode="json")
    return (Act.FORCE_RUN, None, {}) if run.force else None
