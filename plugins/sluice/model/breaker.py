"""A breaker: what all workers of a stage know together of one supplier's health."""

from datetime import datetime
from enum import StrEnum

from pydantic import Field

from sluice.model.base import Frozen


class BreakerState(StrEnum):
    """Whether tries are let through: all of them, none, or one, to see."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half-open"


class Breaker(Frozen):
    """A breaker as it stood at an instant. All its instants are of the clock of the store that told of it."""

    at: datetime = Field(description="when it stood so")
    tries: int = Field(default=0, ge=0, description="in the window that ended when somebody counted last")
    failures: int = Field(default=0, ge=0, description="those of the tries that failed")
    resting_until: datetime | None = Field(
        default=None, description="until when the supplier is left alone; None: it is closed"
    )
    probed_until: datetime | None = Field(
        default=None, description="how long whoever makes the one try may take, and which try it is; None: nobody makes it"
    )
    reason: str | None = Field(default=None, description="why the supplier is left alone")
