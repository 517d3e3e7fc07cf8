"""A lease: who has the flight of a request, and for how long."""

from pydantic import AwareDatetime

from sluice.model.base import Frozen, RunId
from sluice.model.lifecycle import RunStatus


class Lease(Frozen):
    """The flight of a request, as state has it."""

    key: str
    """The request's key."""
    owner: RunId
    sync: str
    stage: str
    status: RunStatus
    """Of the owner."""
    seen_at: AwareDatetime
    """When its owner gave the last sign of life."""
    expires_at: AwareDatetime
    is_expired: bool
    """By the clock of the state database."""
