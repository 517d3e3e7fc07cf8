"""Triage: what may be the matter with a group of dead letters, and which change of a field might mend it.

A proposal changes nothing. A person writes it into the spec, and the redrive that follows goes through review as any run does.
"""

from pydantic import Field, JsonValue

from sluice.model.base import Frozen, ObjectKey
from sluice.model.fields import FieldSpec
from sluice.model.reject import Cause


class Specimen(Frozen):
    """One of the objects of a group."""

    key: ObjectKey | None = Field(description="None: not even the key could be read")
    message: str = Field(description="what is wrong with it")
    record: bytes = Field(description="as the supplier sent it; it need not be JSON")


class Ward(Frozen):
    """Some objects that could not be taken in for the same cause: what triage is asked about."""

    sync: str
    cause: Cause
    field: FieldSpec | None = Field(description="the field to blame, as it is declared; None: the whole object is")
    objects: int = Field(ge=1, description="how many there are; the specimens are the newest of them")
    specimens: tuple[Specimen, ...]


class Proposal(Frozen):
    """What may be the matter, and what might mend it."""

    because: str = Field(min_length=1, max_length=1000, description="what may be the matter, for people")
    changes: dict[str, JsonValue] = Field(
        default={}, description="keys of the field, as the spec would have them; none: there is nothing to declare about it"
    )


class Weighed(Frozen):
    """A proposal, tried on the specimens."""

    proposal: Proposal
    takes_in: int | None = Field(description="how many specimens could be taken in with it; None: it changes nothing")
    of: int = Field(description="specimens it was tried on")
    refused: str | None = Field(default=None, description="why no spec could say so; None: one could")


class Triaged(Frozen):
    """A group of dead letters, and what is proposed about it, the most promising first."""

    ward: Ward
    proposals: tuple[Weighed, ...]
