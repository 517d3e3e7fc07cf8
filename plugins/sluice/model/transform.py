"""The team's own function: where it stands, when it is called, and what it is told besides the frame."""

from typing import Literal

from pydantic import Field

from sluice.model.auth import CODE_PATTERN
from sluice.model.base import Frozen, ShardKey


class TransformSpec(Frozen):
    """A function of the team's that takes a frame of objects and returns one of the same objects."""

    function: str = Field(
        pattern=CODE_PATTERN,
        description="by its dotted path, importable from include/ or installed: transforms.hotels.enrich",
    )
    when: Literal["before", "after"] = Field(
        default="after", description="whether it is given the records as they came, or objects with the values of their fields"
    )


class TransformContext(Frozen):
    """What a function is told of the objects in its frame: only what would be the same in another run."""

    sync: str
    tenant: str
    shard: ShardKey
    version: int
