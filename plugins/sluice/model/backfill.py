"""A backfill: spans of time, what there is of each, and what is to be done about it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from sluice.model.base import ShardKey
from sluice.model.lifecycle import FINAL_RUN_STATUSES, RunStatus
from sluice.model.run import Mode, Run, Window

BACKFILL_MODES: Final = (Mode.FULL, Mode.REPLAY)
"""An incremental run goes on from its watermark, whatever span it is for."""


class Reprocess(StrEnum):
    """Which spans are taken up again, of those that have a run that ended."""

    NONE = "none"
    FAILED = "failed"
    COMPLETED = "completed"


class Standing(StrEnum):
    """How things stand with a span."""

    MISSING = "missing"
    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"
    """For a person."""
    SUCCEEDED = "succeeded"
    PARTIAL = "partial"
    FAILED = "failed"
    CANCELLED = "cancelled"


AT_WORK: Final = frozenset({Standing.QUEUED, Standing.RUNNING})
UNSETTLED: Final = frozenset({Standing.PARTIAL, Standing.FAILED})


class Act(StrEnum):
    """What a backfill does about a span."""

    START = "start"
    RESUME = "resume"
    """Go on from the checkpoints of what failed."""
    REDO = "redo"
    """Do all of it again, from the first page."""
    FOLLOW = "follow"
    """It is at work already."""
    LEAVE = "leave"


@dataclass(frozen=True)
class DagRunSeen:
    """A DagRun as far as a backfill looks at it."""

    id: str
    kind: str
    """Airflow's type of it: backfill, scheduled, manual."""
    state: str
    logical_date: datetime | None
    shards: frozenset[ShardKey]
    """The subset its form asked for; empty: all."""

    @property
    def is_at_work(self) -> bool:
        """Whether it has not ended."""
        return self.state in ("queued", "running")


@dataclass(frozen=True)
class AirflowBackfill:
    """A backfill that Airflow itself has on its books. A DAG has one at a time that is not over."""

    id: int
    first: datetime
    """The logical date of its first run."""
    last: datetime
    conf: Mapping[str, Any]
    max_active: int
    is_over: bool


@dataclass(frozen=True)
class Span:
    """A span of time, and the newest that was asked of it."""

    window: Window
    run: Run | None = None
    dag_run: DagRunSeen | None = None

    @property
    def standing(self) -> Standing:
        """How things stand. Of a DagRun at work its run tells more, unless that has ended, and the DagRun begins again."""
        run, dag_run = self.run, self.dag_run
        if run is not None and run.status in FINAL_RUN_STATUSES and not (dag_run is not None and dag_run.is_at_work):
            return Standing(run.status.value)
        if run is not None and run.status not in FINAL_RUN_STATUSES:
            return Standing.WAITING if run.status is RunStatus.WAITING and not run.is_following else Standing.RUNNING
        if dag_run is None:
            return Standing.MISSING
        if dag_run.is_at_work:
            return Standing.QUEUED if dag_run.state == "queued" else Standing.RUNNING
        return Standing.SUCCEEDED if dag_run.state == "success" else Standing.FAILED

    def act(self, reprocess: Reprocess) -> Act:
        """Return what a backfill does about it. What waits for a person is left to that person."""
        match self.standing:
            case Standing.MISSING:
                return Act.START
            case Standing.QUEUED | Standing.RUNNING:
                return Act.FOLLOW
            case Standing.WAITING:
                return Act.FOLLOW if self.dag_run is not None and self.dag_run.is_at_work else Act.LEAVE
            case Standing.FAILED | Standing.PARTIAL if reprocess is Reprocess.FAILED:
                return Act.RESUME
            case _:
                return Act.REDO if reprocess is Reprocess.COMPLETED else Act.LEAVE


def covers(shards: frozenset[ShardKey], asked: frozenset[ShardKey]) -> bool:
    """Whether what was asked of some shards, or of all, has the shards that are asked for now."""
    return not shards or (bool(asked) and asked <= shards)
