"""Pointers: all that state keeps of the bytes in the object store."""

from datetime import datetime
from enum import StrEnum

from pydantic import Field

from sluice.model.base import Frozen, RunId, ShardKey


class ArtifactKind(StrEnum):
    """What the bytes are."""

    SPEC = "spec"
    RUN = "run"
    RAW = "raw"
    ROWS = "rows"
    REJECTS = "rejects"
    DIFF = "diff"
    EVIDENCE = "evidence"
    UNDO = "undo"
    CONFLICTS = "conflicts"
    REPORT = "report"


class ArtifactRef(Frozen):
    """The stable identity of an artifact: its place in a run. The same work always yields the same ref."""

    sync: str
    run: RunId
    kind: ArtifactKind
    shard: ShardKey | None = None
    seq: int = Field(default=0, ge=0, description="consecutive number within run, kind and shard")
    variant: str = Field(default="", description="what sets a second version apart, such as `v3` or a digest")

    def of_content(self, sha256: str) -> "ArtifactRef":
        """Return the ref of the artifact of this place that has these bytes."""
        return self.model_copy(update={"variant": sha256[:16]})


class Pointer(Frozen):
    """Where an artifact's bytes are, and how to tell that they are the right ones."""

    ref: ArtifactRef
    key: str = Field(description="the object's key within the bucket")
    bytes: int = Field(ge=0, description="stored size, after compression")
    sha256: str = Field(pattern="^[0-9a-f]{64}$", description="of the stored bytes")
    records: int = Field(ge=0)
    expires_at: datetime | None = None


class StoredObject(Frozen):
    """An artifact as the object store lists it, whether anything points to it or not."""

    sync: str
    run: RunId
    key: str
    bytes: int = Field(ge=0)
    stored_at: datetime = Field(description="when it was put last, by the clock of the object store")


class Listing(Frozen):
    """Some of the artifacts that there are."""

    objects: tuple[StoredObject, ...]
    after: str | None = Field(description="behind which key to go on; None: there are no more")
