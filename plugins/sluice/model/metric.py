"""Every metric of Sluice in one table: what it counts or measures, and its labels, each with all the values it may have."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from sluice.model.alert import Tidings
from sluice.model.artifact import ArtifactKind
from sluice.model.breaker import BreakerState
from sluice.model.ledger import Outcome
from sluice.model.lifecycle import Step, Verdict
from sluice.model.state_class import Branch, StateClass


class MetricKind(StrEnum):
    """What becomes of the numbers."""

    COUNT = "count"
    """They are added up."""
    GAUGE = "gauge"
    """The last one stands."""
    DURATION = "duration"
    """They become a histogram, in milliseconds."""


class StepOutcome(StrEnum):
    """What became of a step, or of a shard in it."""

    FINISHED = "finished"
    RETRYABLE = "retryable"
    """It was stopped by what may pass, and goes on where it stood when it is tried again."""
    FAILED = "failed"
    """No repetition mends it."""
    FENCED = "fenced"
    """It was somebody else's by then."""
    STUCK = "stuck"
    """It came no further for so long that it gave its request up."""
    BROKEN = "broken"
    """By an error that is none of Sluice's, or from the keyboard."""


class FlightResult(StrEnum):
    """What a request meets when it is admitted."""

    OWNED = "owned"
    FOLLOWED = "followed"
    REPLAYED = "replayed"


class RetryScope(StrEnum):
    """What is tried again."""

    REQUEST = "request"
    SHARD = "shard"
    RUN = "run"


class RebuildReason(StrEnum):
    """Why something is made again that was there."""

    ROW_UNREADABLE = "row-unreadable"
    BYTES_DAMAGED = "bytes-damaged"
    POINTERS_GONE = "pointers-gone"


class CacheResult(StrEnum):
    """Whether what was looked for was at hand."""

    HIT = "hit"
    MISS = "miss"


UNCHANGED: Final = "unchanged"
"""Of a review, besides the outcomes: objects that the ledger holds just so."""

STAGES: Final[tuple[str, ...]] = ()
"""The stages are a closed list of each project's own: `include/stages.yaml`."""


@dataclass(frozen=True)
class Metric:
    """One metric. Labels are from closed lists alone, so that no supplier's data can make their number grow."""

    name: str
    kind: MetricKind
    meaning: str
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By name, the values; `STAGES` where they are the project's own."""

    def misuse(self, kind: MetricKind, labels: Mapping[str, str]) -> str | None:
        """Say what is wrong with telling this metric so; None: nothing is."""
        if kind is not self.kind:
            return f"{self.name} is a {self.kind}, no {kind}"
        if set(labels) != set(self.labels):
            return f"{self.name} has the labels {sorted(self.labels)}, not {sorted(labels)}"
        for label, value in labels.items():
            if self.labels[label] and value not in self.labels[label]:
                return f"{self.name}: {label} is one of {sorted(self.labels[label])}, not {value!r}"
        return None


def _of(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(str(value) for value in values)


_COUNT, _GAUGE, _DURATION = MetricKind.COUNT, MetricKind.GAUGE, MetricKind.DURATION
_STAGE: Final = {"stage": STAGES}
_STEP: Final = {"stage": STAGES, "step": _of(Step)}
_VERSIONED: Final = ("run", "shard", "review")
"""The tables whose rows are of a release's version."""

_CLASS: Final = {"state_class": _of(StateClass)}

STEP_DURATION: Final = Metric(
    "step_duration",
    _DURATION,
    "How long a step worked; `fetch` and `transform` are told shard by shard.",
    {**_STEP, "outcome": _of(StepOutcome)},
)
STEPS_STUCK: Final = Metric(
    "steps_stuck", _COUNT, "Steps that came no further for `no_progress_timeout`: their leases are renewed no more.", _STEP
)
OBJECTS_REVIEWED: Final = Metric(
    "objects_reviewed",
    _COUNT,
    "What reviews made of the objects that came in, and of those that did not come any more.",
    {**_STAGE, "outcome": (*_of(Outcome), UNCHANGED)},
)
OBJECTS_PUBLISHED: Final = Metric(
    "objects_published", _COUNT, "What publications have written, in objects.", {**_STAGE, "outcome": _of(Outcome)}
)
RETRIES: Final = Metric(
    "retries",
    _COUNT,
    "Requests repeated within a step, shards gone on with in another try, ended runs that were gone on with.",
    {**_STEP, "scope": _of(RetryScope)},
)
TAKEOVERS: Final = Metric("takeovers", _COUNT, "Runs that went on from what a dead one had left.", _STAGE)
FLIGHTS: Final = Metric(
    "flights",
    _COUNT,
    "Requests admitted: those that work, that follow another run of the same request, or have its result at once.",
    {**_STAGE, "result": _of(FlightResult)},
)
BREAKER_STATE: Final = Metric(
    "breaker_state",
    _GAUGE,
    "How a worker found the breaker of the supplier it asks: 0 closed, 1 half-open, 2 open.",
    _STAGE,
)
BREAKER_LEVELS: Final = {BreakerState.CLOSED: 0, BreakerState.HALF_OPEN: 1, BreakerState.OPEN: 2}
BREAKER_CHANGED: Final = Metric(
    "breaker_changed", _COUNT, "Breakers that opened, let one try through, or closed.", {**_STAGE, "state": _of(BreakerState)}
)
REVIEW_WAIT: Final = Metric(
    "review_wait",
    _DURATION,
    "How long a review waited until it was decided about, told when its run ends; one that policy approves at once is not.",
    {**_STAGE, "verdict": _of(Verdict)},
)
REVIEWS_WAITING: Final = Metric(
    "reviews_waiting",
    _GAUGE,
    "Reviews that wait for a person, told whenever a run parks or settles.",
)
ALERTS: Final = Metric(
    "alerts",
    _COUNT,
    "What was told of syncs that keep failing, once per incident.",
    {**_STAGE, "tidings": (Tidings.WARN, Tidings.PAGE, Tidings.RECOVERED)},
)
STATE_READ: Final = Metric(
    "state_read", _COUNT, "Rows of state read, by what became of them.", {"table": _VERSIONED, "branch": _of(Branch)}
)
STATE_MISSING: Final = Metric("state_missing", _COUNT, "Looks at state that is not there.", _CLASS)
STATE_FAILED: Final = Metric(
    "state_failed",
    _COUNT,
    "Looks at state that could not be made, since its database could not be used.",
    {**_CLASS, "error": ("StateUnavailable", "CommitUnconfirmed", "SchemaOutdated")},
)
STATE_REBUILT: Final = Metric(
    "state_rebuilt", _COUNT, "Rows of state that no release could read, written anew.", {"table": _VERSIONED}
)
ARTIFACT_CORRUPT: Final = Metric(
    "artifact_corrupt", _COUNT, "Artifacts found missing or damaged when they were read.", {"kind": _of(ArtifactKind)}
)
REBUILDS: Final = Metric("rebuilds", _COUNT, "Things that had to be made again, by why.", {"reason": _of(RebuildReason)})
ARTIFACT_CACHE: Final = Metric(
    "artifact_cache",
    _COUNT,
    "Artifacts read, from a copy on the worker's disk or from the object store.",
    {"result": _of(CacheResult), "written_here": ("true", "false")},
)
ROWS_CACHE: Final = Metric(
    "rows_cache",
    _COUNT,
    "Raw chunks to be mapped, by whether another run had mapped the very same one in the same way.",
    {**_STAGE, "result": _of(CacheResult)},
)
PROGRESS_DROPPED: Final = Metric("progress_dropped", _COUNT, "Words of progress that could not be told, and were dropped.")

METRICS: Final = (
    STEP_DURATION,
    STEPS_STUCK,
    OBJECTS_REVIEWED,
    OBJECTS_PUBLISHED,
    RETRIES,
    TAKEOVERS,
    FLIGHTS,
    BREAKER_STATE,
    BREAKER_CHANGED,
    REVIEW_WAIT,
    REVIEWS_WAITING,
    ALERTS,
    STATE_READ,
    STATE_MISSING,
    STATE_FAILED,
    STATE_REBUILT,
    ARTIFACT_CORRUPT,
    REBUILDS,
    ARTIFACT_CACHE,
    ROWS_CACHE,
    PROGRESS_DROPPED,
)
