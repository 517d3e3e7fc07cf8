"""Stages: the closed list of business categories, each with the policy that governs its runs."""

from datetime import timedelta
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from sluice.model.base import Frozen, JsonValue
from sluice.model.run import Origin
from sluice.model.scalars import Duration, Share, Size


def _more_than_nothing(value: timedelta) -> timedelta:
    if value <= timedelta(0):
        raise ValueError("has to be more than 0s")
    return value


Positive = Annotated[Duration, AfterValidator(_more_than_nothing)]
"""A duration that cannot be nothing."""


class RetryPolicy(Frozen):
    """How often one request is repeated, and how long to wait in between (exponential, with jitter)."""

    attempts: int = Field(default=5, ge=1, le=20, strict=True, description="tries of one request, the first included")
    base: Duration = Field(default="1s", validate_default=True, description="wait before the second try")
    cap: Duration = Field(default="60s", validate_default=True, description="longest wait between two tries")


class Timeouts(Frozen):
    """How long things may take."""

    connect: Positive = Field(default="10s", validate_default=True, description="opening a connection to the supplier")
    read: Positive = Field(default="60s", validate_default=True, description="between two bytes of an answer")
    step: Positive = Field(default="6h", validate_default=True, description="one attempt of one Airflow task")


class BreakerPolicy(Frozen):
    """When a supplier that keeps failing is left alone for a while, by all workers of the stage."""

    window: Positive = Field(default="1m", validate_default=True, description="the span in which failures are counted")
    failure_rate: Share = Field(default="50%", validate_default=True, description="opens from this share of failed tries on")
    open_for: Positive = Field(default="30s", validate_default=True, description="then one try is let through, to see")


class CachePolicy(Frozen):
    """How much of the artifacts a worker keeps on its own disk. The object store stays the truth."""

    size: Size = Field(default="1GB", validate_default=True, description="least recently used artifacts go above this")
    age: Duration = Field(default="1d", validate_default=True, description="artifacts go after this; 0s keeps none")


class Notifier(Frozen):
    """Somebody who is told through a notifier of Airflow's, or of the team's own."""

    notifier: str = Field(
        pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)+$", description="its class, as it is imported: a `BaseNotifier` of Airflow"
    )
    arguments: dict[str, JsonValue] = Field(
        default={}, description="what it is made with; what it takes for a template may say `{{ alert.message }}`"
    )

    def __hash__(self) -> int:
        """Policies are told apart by their hashes, and arguments may be of any kind."""
        return hash(self.notifier)


class Notify(Frozen):
    """Who is told of what; nobody, unless somebody is named."""

    warn: tuple[Notifier, ...] = Field(default=(), description="of an incident that is a warning, and of its end")
    page: tuple[Notifier, ...] = Field(default=(), description="of an incident that somebody is woken for, and of its end")
    review: tuple[Notifier, ...] = Field(default=(), description="of each review that waits for a person")


class Alerts(Frozen):
    """After how many runs of a sync in a row that did not succeed somebody is told, and who."""

    warn: int = Field(default=1, ge=1, le=1000, strict=True, description="runs in a row, then a warning")
    page: int = Field(default=3, ge=1, le=1000, strict=True, description="runs in a row, then somebody is woken")
    notify: Notify = Notify()


class StagePolicy(Frozen):
    """What governs the runs of one stage."""

    lease_ttl: Positive = Field(
        default="60s", validate_default=True, description="how long a run without any sign of life keeps its request"
    )
    heartbeat: Positive = Field(default="15s", validate_default=True, description="between two signs of life of a worker")
    no_progress_timeout: Positive = Field(
        default="15m", validate_default=True, description="a step that came no further for so long gives its request up"
    )
    wait_timeout: Positive = Field(
        default="12h", validate_default=True, description="how long another run of the request, or a supplier, is waited for"
    )
    result_ttl: Duration = Field(
        default="0s", validate_default=True, description="a request asked again within this gets the result it had; 0s: never"
    )
    takeover: Duration = Field(
        default="1d", validate_default=True, description="oldest checkpoints of a dead run to go on from; 0s: start afresh"
    )
    groups: int = Field(
        default=32, ge=1, le=500, strict=True, description="at most so many mapped Airflow tasks for a run's shards"
    )
    max_parallel_shards: int = Field(default=4, ge=1, le=1000, strict=True, description="slots of the stage's Airflow pool")
    requests_per_second: float | None = Field(
        default=None, gt=0, le=10_000, description="to one host, by all workers of the stage together; null: no limit"
    )
    task_retries: int = Field(default=2, ge=0, le=50, strict=True, description="retries of one Airflow task")
    task_retry_delay: Duration = Field(default="30s", validate_default=True, description="wait between two tries of a task")
    retry: RetryPolicy = RetryPolicy()
    breaker: BreakerPolicy = BreakerPolicy()
    timeouts: Timeouts = Timeouts()
    chunk_bytes: Size = Field(default="16MB", validate_default=True, description="a raw chunk closes at this size")
    chunk_age: Duration = Field(default="10s", validate_default=True, description="a raw chunk closes after this time")
    max_body: Size = Field(default="64MB", validate_default=True, description="largest answer, after decompression")
    compression: int = Field(default=1, ge=1, le=19, strict=True, description="zstd level of raw artifacts")
    local_cache: CachePolicy = CachePolicy()
    artifact_ttl: Duration = Field(default="90d", validate_default=True, description="how long artifacts are kept")
    state_ttl: Duration = Field(default="365d", validate_default=True, description="task state: how long ended runs are kept")
    session_ttl: Duration = Field(
        default="7d", validate_default=True, description="session state: how long events and progress of ended runs are kept"
    )
    idempotency_ttl: Duration = Field(
        default="7d", validate_default=True, description="control state: how long the results of calls to others are kept"
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(default="info", description="what is less is not logged")
    alerts: Alerts = Alerts()

    def gap(self, origin: Origin) -> timedelta:
        """How long a run may lie between two of its tasks, or two tries of one, without being dead: Airflow calls them."""
        return self.task_retry_delay if origin.is_airflow else timedelta(0)

    @property
    def longest_run(self) -> timedelta:
        """How long one task may go on, all its tries together."""
        return (self.task_retries + 1) * self.timeouts.step

    @property
    def retry_window(self) -> timedelta:
        """How long the waits between the tries of one task add up to."""
        return self.task_retries * self.task_retry_delay


class StageRegistry(Frozen):
    """The closed list of stages, by name; nothing outside it may run. `defaults` are merged into each."""

    defaults: StagePolicy = StagePolicy()
    stages: dict[str, StagePolicy]
