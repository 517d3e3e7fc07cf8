"""States, events and the one table of transitions between them; in goes (state, event), out comes the next state.

Theory of operation
-------------------
Three things have a status: a run, a shard of a run, and the review of a run. Each has its own table below, and the
tables are the whole truth: a pair that is not in the table is an `IllegalTransition`, whoever asks. The stores hold
one method per event; each turns the table around (`sources`) and demands in its UPDATE that the row still is in a state the
event may leave, so that losing a race is an error and not silence.

*Run.* A run is `pending` from admission until its first step enters it, `running` while a step works, `waiting` while a
person decides. `settle` ends it: `succeeded` (every shard came in, what was approved is published), `partial` (some
shards failed; the others are published), `failed`, or `cancelled` (a person rejected the review or called the run off).
A run also waits while another one of the same request works: it *follows* that run, and ends as that one does. A request
that was answered just now is *replayed*: its run has succeeded at once, with the earlier run's result. A follower whose owner
died, or that is admitted once more after its end, is *readmitted*: pending, as if nobody had worked on its request.
Clearing a failed shard in Airflow, or running the request again, *reopens* a run that did not succeed; its checkpoints
are still there, so it goes on where it stood. A run that succeeded is over.

*Shard.* `pending`, then `running` from its first claim until its last chunk is transformed: `succeeded`. A shard that gave
up is `failed` and may be claimed again; its cursor stands. Where stored bytes turn out lost or damaged, the shard is `pending`
again: *redone* from its raw chunks, or *restarted* from its first page.

*By hand.* A person may *skip* a shard that has not come in: the run is published without it, and deletes nothing for its
absence. A shard that is *stopped* has `failed`; one that is *reset* is `pending` from its first page, even if it was skipped.
Whoever works on it is fenced in each case. What a person has ended, a stopped shard or a run called off, is begun again neither
by a worker that wakes nor by Airflow's own retries: a claim of the one and an entry into the other are refused until the
DagRun is cleared, which Airflow counts and the run's row remembers. A run outside Airflow is over for good; asking for the same
once more is another run.

*Review.* Policy gives the first verdict. `auto-approved` is final. `needs-human` and `blocked` wait for a decision
(`approved`, `approved-without-deletes`, `rejected`), for the clock (`expired`), or for a newer review that covers them
(`superseded`). No event leads out of a decision: what changes after it is a new review.
"""

from enum import StrEnum
from typing import Final, TypeVar

from sluice.errors import IllegalTransition


class RunStatus(StrEnum):
    """How a run is doing."""

    PENDING = "pending"
    RUNNING = "running"
    WAITING = "waiting"
    SUCCEEDED = "succeeded"
    PARTIAL = "partial"
    FAILED = "failed"
    CANCELLED = "cancelled"


class RunEvent(StrEnum):
    """What may happen to a run."""

    ENTER = "enter"
    FOLLOW = "follow"
    REPLAY = "replay"
    READMIT = "readmit"
    PARK = "park"
    SUCCEED = "succeed"
    END_PARTIAL = "end-partial"
    FAIL = "fail"
    CANCEL = "cancel"
    REOPEN = "reopen"


class ShardStatus(StrEnum):
    """How a shard is doing."""

    PENDING = "pending"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    SKIPPED = "skipped"


class ShardEvent(StrEnum):
    """What may happen to a shard."""

    CLAIM = "claim"
    SUCCEED = "succeed"
    FAIL = "fail"
    SKIP = "skip"
    STOP = "stop"
    RESET = "reset"
    REDO = "redo"
    RESTART = "restart"


class Verdict(StrEnum):
    """What has been decided about a review, by policy or by a person."""

    AUTO_APPROVED = "auto-approved"
    NEEDS_HUMAN = "needs-human"
    BLOCKED = "blocked"
    APPROVED = "approved"
    APPROVED_WITHOUT_DELETES = "approved-without-deletes"
    REJECTED = "rejected"
    EXPIRED = "expired"
    SUPERSEDED = "superseded"


class ReviewEvent(StrEnum):
    """What may happen to a review that waits."""

    APPROVE = "approve"
    APPROVE_WITHOUT_DELETES = "approve-without-deletes"
    REJECT = "reject"
    EXPIRE = "expire"
    SUPERSEDE = "supersede"


class Step(StrEnum):
    """Where a run stands."""

    ADMIT = "admit"
    SHARD = "shard"
    FETCH = "fetch"
    TRANSFORM = "transform"
    REVIEW = "review"
    GATE = "gate"
    PUBLISH = "publish"
    SETTLE = "settle"


S = TypeVar("S", RunStatus, ShardStatus, Verdict)
E = TypeVar("E", RunEvent, ShardEvent, ReviewEvent)

_UNFINISHED = (RunStatus.PENDING, RunStatus.RUNNING, RunStatus.WAITING)

RUN_TRANSITIONS: Final[dict[tuple[RunStatus, RunEvent], RunStatus]] = {
    **{(status, RunEvent.ENTER): RunStatus.RUNNING for status in _UNFINISHED},
    (RunStatus.RUNNING, RunEvent.PARK): RunStatus.WAITING,
    (RunStatus.WAITING, RunEvent.PARK): RunStatus.WAITING,
    (RunStatus.PENDING, RunEvent.FOLLOW): RunStatus.WAITING,
    (RunStatus.WAITING, RunEvent.FOLLOW): RunStatus.WAITING,
    (RunStatus.PENDING, RunEvent.REPLAY): RunStatus.SUCCEEDED,
    **{
        (status, RunEvent.READMIT): RunStatus.PENDING
        for status in (RunStatus.WAITING, RunStatus.PARTIAL, RunStatus.FAILED, RunStatus.CANCELLED)
    },
    **{(status, RunEvent.SUCCEED): RunStatus.SUCCEEDED for status in (RunStatus.RUNNING, RunStatus.WAITING)},
    **{(status, RunEvent.END_PARTIAL): RunStatus.PARTIAL for status in (RunStatus.RUNNING, RunStatus.WAITING)},
    **{(status, RunEvent.FAIL): RunStatus.FAILED for status in _UNFINISHED},
    **{(status, RunEvent.CANCEL): RunStatus.CANCELLED for status in _UNFINISHED},
    (RunStatus.PARTIAL, RunEvent.REOPEN): RunStatus.RUNNING,
    (RunStatus.FAILED, RunEvent.REOPEN): RunStatus.RUNNING,
    (RunStatus.CANCELLED, RunEvent.REOPEN): RunStatus.RUNNING,
}

_NOT_IN = (ShardStatus.PENDING, ShardStatus.RUNNING, ShardStatus.FAILED)

SHARD_TRANSITIONS: Final[dict[tuple[ShardStatus, ShardEvent], ShardStatus]] = {
    (ShardStatus.PENDING, ShardEvent.CLAIM): ShardStatus.RUNNING,
    (ShardStatus.RUNNING, ShardEvent.CLAIM): ShardStatus.RUNNING,
    (ShardStatus.FAILED, ShardEvent.CLAIM): ShardStatus.RUNNING,
    (ShardStatus.RUNNING, ShardEvent.SUCCEED): ShardStatus.SUCCEEDED,
    (ShardStatus.RUNNING, ShardEvent.FAIL): ShardStatus.FAILED,
    **{(status, ShardEvent.SKIP): ShardStatus.SKIPPED for status in _NOT_IN},
    **{(status, ShardEvent.STOP): ShardStatus.FAILED for status in _NOT_IN},
    **{(status, ShardEvent.RESET): ShardStatus.PENDING for status in ShardStatus},
    **{
        (status, event): ShardStatus.PENDING
        for status in (ShardStatus.PENDING, ShardStatus.RUNNING, ShardStatus.SUCCEEDED, ShardStatus.FAILED)
        for event in (ShardEvent.REDO, ShardEvent.RESTART)
    },
}

_WAITING_VERDICTS = (Verdict.NEEDS_HUMAN, Verdict.BLOCKED)

REVIEW_TRANSITIONS: Final[dict[tuple[Verdict, ReviewEvent], Verdict]] = {
    (verdict, event): outcome
    for verdict in _WAITING_VERDICTS
    for event, outcome in (
        (ReviewEvent.APPROVE, Verdict.APPROVED),
        (ReviewEvent.APPROVE_WITHOUT_DELETES, Verdict.APPROVED_WITHOUT_DELETES),
        (ReviewEvent.REJECT, Verdict.REJECTED),
        (ReviewEvent.EXPIRE, Verdict.EXPIRED),
        (ReviewEvent.SUPERSEDE, Verdict.SUPERSEDED),
    )
}

FINAL_RUN_STATUSES: Final = frozenset({RunStatus.SUCCEEDED, RunStatus.PARTIAL, RunStatus.FAILED, RunStatus.CANCELLED})
APPROVALS: Final = frozenset({Verdict.AUTO_APPROVED, Verdict.APPROVED, Verdict.APPROVED_WITHOUT_DELETES})
WAITING_VERDICTS: Final = frozenset(_WAITING_VERDICTS)


def advance(table: dict[tuple[S, E], S], state: S, event: E) -> S:
    """Return the state that follows `state` after `event`; raise `IllegalTransition` if none does."""
    try:
        return table[state, event]
    except KeyError:
        allowed = ", ".join(sorted(e for s, e in table if s == state)) or "nothing"
        raise IllegalTransition(
            f"{type(state).__name__} {state}: {event} may not happen now; allowed: {allowed}",
            state=str(state),
            event=str(event),
        ) from None


def destination(table: dict[tuple[S, E], S], event: E) -> S:
    """Return the state that `event` leads to: the same from wherever it may happen."""
    (state,) = {outcome for (_, happening), outcome in table.items() if happening == event}
    return state


def sources(table: dict[tuple[S, E], S], event: E) -> list[S]:
    """Return the states that `event` may leave, for the WHERE of the UPDATE that records it."""
    return sorted(state for state, happening in table if happening == event)
