"""What an examination of an installation has found, and what to do about it."""

from enum import StrEnum

from sluice.model.base import Frozen


class Standing(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARNING = "warning"
    """It works, and will not for ever."""
    FAILED = "failed"


class Finding(Frozen):
    """The result of one check."""

    check: str
    subject: str
    """What was looked at: a connection, a stage, a sync."""
    standing: Standing
    said: str
    mend: str | None = None
    """What to do; None: nothing."""
