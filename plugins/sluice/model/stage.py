"""Stages: the closed list of business categories, each with the policy that governs its runs."""

from datetime import timedelta
from typing import Annotated

from pydantic import AfterValidator, Field

from sluice.model.base import Frozen
from sluice.model.scalars import Duration, Size


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


class StagePolicy(Frozen):
    """What governs the runs of one stage."""

    lease_ttl: Positive = Field(
        default="60s", validate_default=True, description="how long a run without any sign of life keeps its request"
    )
    groups: int = Field(
        default=32, ge=1, le=500, strict=True, description="at most so many mapped Airflow tasks for a run's shards"
    )
    max_parallel_shards: int = Field(default=4, ge=1, le=1000, strict=True, description="slots of the stage's Airflow pool")
    task_retries: int = Field(default=2, ge=0, le=50, strict=True, description="retries of one Airflow task")
    task_retry_delay: Duration = Field(default="30s", validate_default=True, description="wait between two tries of a task")
    retry: RetryPolicy = RetryPolicy()
    timeouts: Timeouts = Timeouts()
    chunk_bytes: Size = Field(default="16MB", validate_default=True, description="a raw chunk closes at this size")
    chunk_age: Duration = Field(default="10s", validate_default=True, description="a raw chunk closes after this time")
    max_body: Size = Field(default="64MB", validate_default=True, description="largest answer, after decompression")
    artifact_ttl: Duration = Field(default="90d", validate_default=True, description="how long artifacts are kept")
    compression: int = Field(default=1, ge=1, le=19, strict=True, description="zstd level of raw artifacts")


class StageRegistry(Frozen):
    """The closed list of stages, by name; nothing outside it may run. `defaults` are merged into each."""

    defaults: StagePolicy = StagePolicy()
    stages: dict[str, StagePolicy]
