"""What has outlived its time: what must be kept all the same comes in; what may go, or went, is counted."""

from pydantic import Field

from sluice.model.base import Frozen, RunId


class Needed(Frozen):
    """What state alone does not tell to be needed."""

    published: tuple[RunId, ...] = Field(default=(), description="the runs whose publications are the newest of their syncs")
    unknown: dict[str, str] = Field(default_factory=dict, description="syncs whose newest publication is not known, and why")


class Garbage(Frozen):
    """What may be removed, or was. Rows of control and session state are counted by table."""

    control: dict[str, int]
    session: dict[str, int]
    artifacts: int = Field(description="objects in the object store")
    bytes: int = Field(description="of those objects")
    runs: int = Field(description="ended runs, with their shards, pointers, reviews and decisions")
    kept: dict[str, str] = Field(description="syncs of which neither artifacts nor runs were looked at, and why")
