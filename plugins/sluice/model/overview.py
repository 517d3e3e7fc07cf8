"""The syncs at a glance: how the newest runs of each went, what it published last, and what waits for a person."""

from datetime import datetime

from pydantic import Field

from sluice.model.alert import AlertLevel
from sluice.model.base import Frozen, ReviewId, RunId
from sluice.model.ledger import Outcome
from sluice.model.lifecycle import RunStatus, Step
from sluice.model.run import Mode


class RunGlance(Frozen):
    """A run, as small as it can be told of."""

    id: RunId
    status: RunStatus
    step: Step
    mode: Mode
    created_at: datetime
    finished_at: datetime | None


class Published(Frozen):
    """The newest review of a sync that was published and changed something."""

    run: RunId
    review: ReviewId
    outcomes: dict[Outcome, int] = Field(description="as it was reviewed")
    at: datetime = Field(description="when its run ended")


class SyncGlance(Frozen):
    """A sync."""

    sync: str
    runs: tuple[RunGlance, ...] = Field(default=(), description="the newest first; none: it never ran")
    stage: str | None = Field(default=None, description="of its newest run")
    alert: AlertLevel | None = Field(default=None, description="the level that its incident has reached; None: it has none")
    good_at: datetime | None = Field(default=None, description="when its newest run that succeeded was asked for")
    published: Published | None = Field(default=None, description="None: none of its newest runs has published anything")
    reviews: int = Field(default=0, description="that wait for a person")
    letters: int = Field(default=0, description="objects that could not be taken in, and are not given up")


class RestingStage(Frozen):
    """A stage whose workers leave a supplier alone. Which one, and why, only those may know who read the runs that ask it."""

    stage: str
    until: datetime
