"""A canary: a second version of the transformation in, and which shards it takes part in out."""

import hashlib
from typing import Final

from pydantic import Field

from sluice.model.base import Frozen, ShardKey
from sluice.model.fields import FieldSpec
from sluice.model.scalars import Share
from sluice.model.transform import TransformSpec

_POINTS: Final = 2**64

HIGHEST_VERSION: Final = 2**31 - 1
"""State and ledger keep versions of the transformation as integers."""


class CanarySpec(Frozen):
    """Another version of the transformation, beside that of the spec, for a share of the shards. What is absent is as there."""

    version: int = Field(
        ge=1, le=HIGHEST_VERSION, strict=True, description="of the transformation, another one than the spec's"
    )
    share: Share = Field(description="how many of the shards it makes")
    fields: tuple[FieldSpec, ...] | None = Field(
        default=None, min_length=1, description="all fields, with the names and types of the spec's; absent: as there"
    )
    transform: TransformSpec | None = Field(
        default=None, exclude_if=lambda transform: transform is None, description="the team's function; absent: as there"
    )

    def makes(self, sync: str, shard: ShardKey) -> bool:
        """Whether a shard is one of its share: by a hash, so that a larger share has all shards of a smaller one, and more."""
        name = "\0".join((sync, str(self.version), shard)).encode("utf-8", "surrogatepass")
        point = int.from_bytes(hashlib.blake2b(name, digest_size=8).digest())
        return point < self.share * _POINTS
