r"""The columns of rows and diff artifacts, agreed between those who write them and those who read them.

A *rows* artifact is one Parquet file for each raw chunk, one row for each object of the chunk that was not rejected, with the
columns of `ROW_COLUMNS` and then one for each field of the spec. Where `MAPPED` is false its fields are null because nobody
needs them: either the object's raw bytes are those the ledger remembers, and so are its row hash and version; or `DELETED` is
true, since its record is a tombstone, which says that the object is gone as of this version. That has no row, and the row hash
of nothing. `FRAME` and `INDEX` say where in the raw chunk its record stands.

A *diff* artifact is one Parquet file for each review, one row for each object whose outcome is not "unchanged", ordered by key.
It says where the new row stands (`SHARD`, `SEQ`, `POSITION`), and what the ledger held when it was compared (`OLD_HASH`,
`OLD_RAW_HASH`, `OLD_STATE`, `OLD_VERSION`, `OLD_SHARD`; null where it held nothing), and by which version of the transformation
the new row was made (`TRANSFORMER_VERSION`; null where none was). Hashes are text there, as Postgres reads them: `\x…`.
"""

from typing import Final

from pydantic import Field

from sluice.model.base import Frozen, ObjectKey

KEY: Final = "_key"
VERSION: Final = "_version"
RAW_HASH: Final = "_raw_hash"
ROW_HASH: Final = "_row_hash"
MAPPED: Final = "_mapped"
DELETED: Final = "_deleted"
"""Artifacts of older releases lack it: they have rows alone."""
FRAME: Final = "_frame"
INDEX: Final = "_index"
"""Artifacts of older releases lack both."""
ROW_COLUMNS: Final = (KEY, VERSION, RAW_HASH, ROW_HASH, MAPPED, DELETED, FRAME, INDEX)

OUTCOME: Final = "outcome"
SHARD: Final = "shard"
SEQ: Final = "seq"
POSITION: Final = "position"
OLD_HASH: Final = "old_hash"
OLD_RAW_HASH: Final = "old_raw_hash"
OLD_STATE: Final = "old_state"
OLD_VERSION: Final = "old_version"
OLD_SHARD: Final = "old_shard"
TRANSFORMER_VERSION: Final = "transformer_version"
"""Diffs of older releases lack it: all of their rows were made by the version of the run."""

HASH_BYTES: Final = 16
"""Row and raw hashes are xxh3-128."""

DELETED_AT: Final = "_sluice_deleted_at"
"""The column of the target that a soft deletion sets."""

VALID_FROM: Final = "_sluice_valid_from"
"""The column of a history that says when a version was published."""

VALID_TO: Final = "_sluice_valid_to"
"""The column of a history that says when its next version, or its deletion, was published."""


class Postdated(Frozen):
    """Records that the supplier dates after its own time at the end of their fetch: taken in, moving no watermark."""

    objects: int = Field(ge=1)
    key: ObjectKey = Field(description="of the first of them")
    value: str = Field(description="what the first of them is dated")

    def followed_by(self, more: "Postdated | None") -> "Postdated":
        """Return both together, the first of this one staying the first."""
        return self if more is None else self.model_copy(update={"objects": self.objects + more.objects})

    def __str__(self) -> str:
        """Return it as people read it."""
        return f"dated after the fetch: {self.objects:,}, first: {self.key} {self.value}"
