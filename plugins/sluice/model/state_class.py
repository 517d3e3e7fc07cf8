"""The three classes of state: a table of `sluice_state` goes in; how it is kept, and what it may lose, comes out.

*Control* state says who may act and what has been done to others: written at once, lost never, kept for seconds to hours
after its last use. *Task* state is what a run has brought so far: written at checkpoints, kept for days. *Session* state is for
whoever watches: aggregated, dropped where it cannot be written, and never read to decide anything. The classes are never mixed
in one table, and each has its own time to live, way of writing, conduct on failure and metric label.

Whatever the class, missing and unreachable are different: a store whose database cannot be reached raises, and never looks like
an empty one.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class StateClass(StrEnum):
    """What a table is for; the value is its metric label."""

    CONTROL = "control"
    TASK = "task"
    SESSION = "session"


class WriteMode(StrEnum):
    """When what is known is written."""

    AT_ONCE = "at once"
    AT_CHECKPOINTS = "at checkpoints"
    AGGREGATED = "aggregated"


class OnFailure(StrEnum):
    """What becomes of a write that cannot be made."""

    RAISE = "raise"
    DROP = "drop"


class Branch(StrEnum):
    """What becomes of a row that is read; see `adapters.state.versions`."""

    CONTINUE = "continue"
    MIGRATE = "migrate"
    REFUSE = "refuse"
    REBUILD = "rebuild"


@dataclass(frozen=True)
class Kept:
    """How the rows of a table are kept."""

    state_class: StateClass
    ttl: str | None
    """The key of the stage's policy that says for how long; None: as long as what it is about."""
    writes: WriteMode
    on_failure: OnFailure = OnFailure.RAISE


_CONTROL, _TASK, _SESSION = StateClass.CONTROL, StateClass.TASK, StateClass.SESSION

TABLES: Final[dict[str, Kept]] = {
    "lease": Kept(_CONTROL, "lease_ttl", WriteMode.AT_ONCE),
    "call": Kept(_CONTROL, "idempotency_ttl", WriteMode.AT_ONCE),
    "breaker": Kept(_CONTROL, "breaker.window", WriteMode.AT_ONCE),
    "rate": Kept(_CONTROL, None, WriteMode.AT_ONCE),
    "access_token": Kept(_CONTROL, None, WriteMode.AT_ONCE),
    "run": Kept(_TASK, "state_ttl", WriteMode.AT_CHECKPOINTS),
    "shard": Kept(_TASK, "state_ttl", WriteMode.AT_CHECKPOINTS),
    "artifact": Kept(_TASK, "artifact_ttl", WriteMode.AT_CHECKPOINTS),
    "review": Kept(_TASK, "state_ttl", WriteMode.AT_CHECKPOINTS),
    "decision": Kept(_TASK, "state_ttl", WriteMode.AT_CHECKPOINTS),
    "dead_letter": Kept(_TASK, None, WriteMode.AT_CHECKPOINTS),
    "dead_letter_lines": Kept(_TASK, None, WriteMode.AT_CHECKPOINTS),
    "audit": Kept(_TASK, None, WriteMode.AT_CHECKPOINTS),
    "watermark": Kept(_TASK, None, WriteMode.AT_CHECKPOINTS),
    "incident": Kept(_TASK, "state_ttl", WriteMode.AT_CHECKPOINTS),
    # Transitions note their events in their own transactions: those lose nothing, though they might.
    "event": Kept(_SESSION, "session_ttl", WriteMode.AT_CHECKPOINTS),
    "progress": Kept(_SESSION, "session_ttl", WriteMode.AGGREGATED, OnFailure.DROP),
}
