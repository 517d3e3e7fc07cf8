"""A run of a sync, and what was asked of it."""

from datetime import datetime
from enum import StrEnum
from typing import Final

from pydantic import AwareDatetime, Field, model_validator

from sluice.errors import SluiceError
from sluice.model.base import Frozen, RunId, ShardKey, Token
from sluice.model.lifecycle import RunStatus, Step

RUN_STATE_VERSION: Final = 1


class Mode(StrEnum):
    """How much of the supplier a run looks at."""

    INCREMENTAL = "incremental"
    FULL = "full"


class ReviewMode(StrEnum):
    """Whether the policy may approve by itself."""

    POLICY = "policy"
    ALWAYS = "always"


class Window(Frozen):
    """A half-open span of time: `start` belongs to it, `end` does not."""

    start: AwareDatetime
    end: AwareDatetime

    @model_validator(mode="after")
    def _ordered(self) -> "Window":
        if self.start > self.end:
            raise ValueError(f"window starts at {self.start:%Y-%m-%dT%H:%M:%SZ}, after its end")
        return self


class RunRequest(Frozen):
    """What somebody asked for: the input of admission."""

    sync: str
    mode: Mode | None = Field(default=None, description="None: incremental where the spec can, else full")
    window: Window | None = None
    shards: tuple[ShardKey, ...] = Field(default=(), description="empty: all of them")
    review: ReviewMode = ReviewMode.POLICY
    origin: "Origin"


class Origin(Frozen):
    """Who executes a run: a DagRun of Airflow, or a process of `sluice run --inline`."""

    dag_id: str | None = None
    dag_run_id: str | None = None

    @property
    def is_airflow(self) -> bool:
        """Whether a DagRun executes it."""
        return self.dag_run_id is not None


class Failure(Frozen):
    """An error as state keeps it: its class by name and its message, free of secrets."""

    error: str
    message: str

    @classmethod
    def of(cls, error: SluiceError) -> "Failure":
        """Return the failure that `error` stands for."""
        return cls(error=type(error).__name__, message=error.message)


class Run(Frozen):
    """One execution of a sync over one window; in Airflow exactly one DagRun."""

    id: RunId
    sync: str
    stage: str
    tenant: str
    request_key: str
    mode: Mode
    window: Window | None
    shards: tuple[ShardKey, ...] = Field(description="the subset asked for; empty: all")
    review: ReviewMode
    spec_hash: str
    transformer_version: int
    origin: Origin
    status: RunStatus
    step: Step
    token: Token
    failure: Failure | None = None
    state_version: int = RUN_STATE_VERSION
    created_at: datetime
    finished_at: datetime | None = None

    @property
    def log_context(self) -> dict[str, str]:
        """The fields every log event of this run carries."""
        return {"sync": self.sync, "stage": self.stage, "run": self.id}


RunRequest.model_rebuild()
