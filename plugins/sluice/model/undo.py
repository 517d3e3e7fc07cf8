"""What would become of a publication's objects if it were taken back: the fields that change, and the objects left alone."""

from enum import StrEnum

from sluice.model.base import Frozen, ObjectKey, PublicationId


class ConflictKind(StrEnum):
    """Why an object is not as the publication left it."""

    PUBLISHED = "published"
    """A later publication changed it."""
    ALTERED = "altered"
    """Others changed it in the table, or put it back there."""
    GONE = "gone"
    """Others took it out of the table."""


class Conflict(Frozen):
    """An object of a publication that was changed since: taking the publication back leaves it alone."""

    key: ObjectKey
    kind: ConflictKind
    publication: PublicationId | None = None
    """The later publication that changed it, where one did."""

    @property
    def why(self) -> str:
        """As people read it."""
        if self.kind is ConflictKind.PUBLISHED:
            return f"publication {self.publication} changed it"
        return "others changed it in the table" if self.kind is ConflictKind.ALTERED else "others took it out of the table"
