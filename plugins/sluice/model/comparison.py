"""What two versions of the transformation make of the same raw data, laid side by side."""

from pydantic import Field

from sluice.model.base import Frozen, ObjectKey, RunId

Sample = tuple[ObjectKey, str | None, str | None]
"""An object, and a value of it by the first and by the second version."""


class FieldDifference(Frozen):
    """A field in which objects differ."""

    field: str
    objects: int = Field(ge=1)
    samples: tuple[Sample, ...]


class RejectDifference(Frozen):
    """Why one of the two versions takes in no objects which the other one takes in."""

    version: int = Field(description="the one that rejects them")
    error: str
    field: str | None
    objects: int = Field(ge=1)
    samples: tuple[tuple[ObjectKey | None, str], ...] = Field(description="(object, what is wrong with it)")


class Comparison(Frozen):
    """Raw data that was mapped by both, object by object; one that was delivered twice counts twice."""

    sync: str
    first: int
    second: int
    run: RunId = Field(description="whose raw data it is")
    shards: int
    chunks: int
    objects: int
    equal: int
    differing: int
    rejected_by_both: int
    only_in_first: tuple[str, ...] = Field(default=(), description="fields that the second version does not have")
    only_in_second: tuple[str, ...] = Field(default=(), description="fields that the first version does not have")
    fields: tuple[FieldDifference, ...] = Field(description="the most frequent first; of the fields that both have")
    rejects: tuple[RejectDifference, ...] = Field(description="the most frequent first")

    def rejected_by_one(self, version: int) -> int:
        """How many objects one version alone does not take in."""
        return sum(found.objects for found in self.rejects if found.version == version)
