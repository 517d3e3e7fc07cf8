"""A run of a sync, and what was asked of it."""

from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from pydantic import AwareDatetime, Field, model_validator

from sluice.errors import SluiceError, UsageInvalid
from sluice.model.audit import Actor
from sluice.model.base import Frozen, PublicationId, RunId, ShardKey, Token
from sluice.model.lifecycle import RunStatus, Step
from sluice.model.scalars import parse_moment

RUN_STATE_VERSION: Final = 5


class Mode(StrEnum):
    """How much of the supplier a run looks at."""

    INCREMENTAL = "incremental"
    FULL = "full"
    ROLLBACK = "rollback"
    """It looks at no supplier: it takes a publication back."""
    REPLAY = "replay"
    """It looks at no supplier: it maps what other runs have fetched once more, as the spec has it now."""
    REDRIVE = "redrive"
    """It looks at no supplier: it takes up dead letters again."""


SYNC_MODES: Final = (Mode.INCREMENTAL, Mode.FULL)
"""The modes in which a run asks the supplier."""

ASKED_MODES: Final = (*SYNC_MODES, Mode.REPLAY)
"""The modes a person may ask for by name; what takes a publication back is asked for otherwise."""


class ReviewMode(StrEnum):
    """Whether the policy may approve by itself."""

    POLICY = "policy"
    ALWAYS = "always"


class Window(Frozen):
    """A half-open span of time: `start` belongs to it, `end` does not; so it is never empty."""

    start: AwareDatetime
    end: AwareDatetime

    @model_validator(mode="after")
    def _ordered(self) -> "Window":
        if self.start >= self.end:
            raise ValueError(f"window ends at {self.end.isoformat()}, not after its start {self.start.isoformat()}")
        return self


def parse_window(start: Any, end: Any, names: tuple[str, str]) -> Window | None:
    """Return the window between two moments as people write them, None if neither is given.

    Raises `UsageInvalid`, whose `problems` say all that is wrong, calling the moments by these names.
    """
    if start is None and end is None:
        return None
    problems: list[str] = []
    moments: list[datetime] = []
    for name, written in zip(names, (start, end), strict=True):
        if written is None:
            problems.append(f"{name} is missing: a window needs both {' and '.join(names)}")
            continue
        try:
            moments.append(parse_moment(written))
        except ValueError as error:
            problems.append(f"{name} {error}")
    if not problems:
        if moments[0] < moments[1]:
            return Window(start=moments[0], end=moments[1])
        problems.append(f"{names[1]} {end} is not after {names[0]} {start}")
    raise UsageInvalid("\n".join(problems), problems=problems)


class Redrive(Frozen):
    """Which open dead letters are taken up again: some by number, or all of a cause, or all there are."""

    letters: tuple[int, ...] = Field(default=(), description="by number; empty: all that have the cause")
    cause: str | None = Field(default=None, description="None: whatever it is")


class RunRequest(Frozen):
    """What somebody asked for: the input of admission."""

    sync: str
    mode: Mode | None = Field(default=None, description="None: incremental where the spec can, else full")
    window: Window | None = None
    shards: tuple[ShardKey, ...] = Field(default=(), description="empty: all of them")
    review: ReviewMode = ReviewMode.POLICY
    force: bool = Field(default=False, description="do it again, whatever another run of the same request has brought")
    undoes: PublicationId | None = Field(default=None, description="the publication that a rollback takes back")
    replays: RunId | None = Field(default=None, description="whose raw data a replay maps again; None: that of its window")
    redrives: Redrive | None = Field(default=None, description="the dead letters that a redrive takes up again")
    version: int | None = Field(default=None, ge=1, description="of the transformation; None: as the spec says")
    origin: "Origin"
    by: Actor | None = Field(default=None, description="who asks for it, for the audit trail; None: nobody, it was due")

    def require_sense(self) -> None:
        """Raise `UsageInvalid` if its parts contradict each other, whatever sync it is for."""
        if (self.undoes is None) is (self.mode is Mode.ROLLBACK):
            raise UsageInvalid("a run takes a publication back if it names one and its mode is rollback, and not otherwise")
        if self.undoes is not None and (self.window is not None or self.shards or self.version is not None):
            raise UsageInvalid("a publication is taken back as a whole: without a window, without shards, by no version")
        named = (self.replays is not None, self.window is not None)
        if named.count(True) != 1 if self.mode is Mode.REPLAY else self.replays is not None:
            raise UsageInvalid(
                "a replay names the run whose raw data it maps again (--of, or `replays` in the form), or else a window in "
                "which the runs were begun; and only a replay names a run"
            )
        if (self.redrives is None) is (self.mode is Mode.REDRIVE):
            raise UsageInvalid(
                "a redrive says which dead letters it takes up (`letters` and `cause` in the form), and only a redrive does"
            )
        if self.redrives is not None and (self.window is not None or self.shards):
            raise UsageInvalid("a redrive takes up dead letters, wherever they come from: without a window, without shards")


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


LEFT_UNFINISHED: Final = Failure(error="RunIncomplete", message="its run ended before it had come through")
"""Why a shard failed whose worker was not heard of before its run ended well."""


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
    force: bool = Field(default=False, description="nobody else's result or checkpoints will do")
    undoes: PublicationId | None = Field(default=None, description="the publication that a rollback takes back")
    replays: RunId | None = Field(default=None, description="whose raw data a replay maps again; None: that of its window")
    redrives: Redrive | None = Field(default=None, description="the dead letters that a redrive takes up again")
    spec_hash: str
    transformer_version: int = Field(description="of the shards that say nothing else")
    origin: Origin
    status: RunStatus
    step: Step
    token: Token
    follows: RunId | None = Field(default=None, description="the run of the same request whose outcome this one takes")
    failure: Failure | None = None
    state_version: int = RUN_STATE_VERSION
    created_at: datetime
    finished_at: datetime | None = None
    expires_at: datetime | None = Field(default=None, description="when its state may be removed; None while it may go on")

    @property
    def is_following(self) -> bool:
        """Whether it waits for the run it follows; one without such a run waits for a person."""
        return self.follows is not None and self.status is RunStatus.WAITING

    @property
    def asks_for_all(self) -> bool:
        """Whether it looks at all there is, so that what does not come is not there."""
        return self.mode is Mode.FULL and not self.shards and self.window is None

    @property
    def worked_by(self) -> RunId:
        """The run whose work its outcome is; with `force`, no other than itself."""
        return self.id if self.follows is None or self.force else self.follows

    @property
    def log_context(self) -> dict[str, str]:
        """The fields every log event of this run carries."""
        return {"sync": self.sync, "stage": self.stage, "run": self.id}


RunRequest.model_rebuild()
