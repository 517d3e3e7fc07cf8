"""What others have changed in the table, as a comparison with the ledger tells it."""

from enum import StrEnum

from pydantic import Field

from sluice.model.base import Frozen, PublicationId
from sluice.model.evidence import ValueChange


class Difference(StrEnum):
    """How an object of the table is not as it was published."""

    MISSING = "missing"
    """Published, and its row is not there."""
    UNKNOWN = "unknown"
    """A row that no publication put there."""
    CHANGED = "changed"
    """Its row holds other values."""
    DELETED = "deleted"
    """Live by the ledger, and its row is marked as deleted."""
    REVIVED = "revived"
    """Deleted by the ledger, and its row is live."""


class Alteration(Frozen):
    """One object that is not as it was published."""

    key: str = Field(description="the object; of a row that can be no object's: the values of its key columns")
    difference: Difference
    publication: PublicationId | None = Field(description="what brought it last; None: nothing has")
    changes: tuple[ValueChange, ...] = Field(default=(), description="published, and held by the table; empty: not known")


class Reconciliation(Frozen):
    """A table and its ledger, compared."""

    sync: str
    table: str
    rows: int = Field(ge=0, description="rows the table holds, those marked as deleted included")
    counts: dict[Difference, int] = Field(description="of differences, where there are any")
    alterations: tuple[Alteration, ...] = Field(description="some of them")
    published_meanwhile: int = Field(ge=0, description="objects that were published during the comparison: not compared")
    unclear: int = Field(ge=0, description="objects whose last publication was under a spec that nobody can read any more")

    @property
    def is_in_step(self) -> bool:
        """Whether all is known to be as it was published."""
        return not self.counts and not self.unclear
