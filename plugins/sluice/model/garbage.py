"""What has outlived its time: what must be kept all the same comes in; what may go, or went, is counted."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from pydantic import Field

from sluice.model.base import Frozen, PublicationId, RunId


class Needed(Frozen):
    """What state alone does not tell to be needed."""

    published: tuple[RunId, ...] = Field(
        default=(), description="the runs whose publications are the newest of their syncs, or are being taken back"
    )
    unknown: dict[str, str] = Field(default_factory=dict, description="syncs whose publications are not known, and why")


class Holding(StrEnum):
    """Why bytes stay that have outlived their time."""

    PINNED = "pinned"
    RUN = "its run has not ended"
    UNKNOWN = "the publications of its sync are not known"
    PUBLICATION = "of the newest publication, or of one that is being taken back"
    UNDO = "its publication can still be taken back"
    LETTERS = "named by open dead letters"
    SHARED = "another pointer needs the same bytes"
    DAMAGED = "damaged: no cold copy can be made of it"


class Heap(Frozen):
    """Some objects in the object store."""

    objects: int = 0
    bytes: int = 0

    def __add__(self, other: "Heap") -> "Heap":
        """Return both together."""
        return Heap(objects=self.objects + other.objects, bytes=self.bytes + other.bytes)


NOTHING = Heap()


class OfSync(Frozen):
    """What goes of one sync."""

    artifacts: Heap = NOTHING
    orphans: Heap = NOTHING
    runs: int = 0


class Garbage(Frozen):
    """What may be removed, or was. Rows of state are counted by table."""

    control: dict[str, int]
    session: dict[str, int]
    task: dict[str, int] = Field(default_factory=dict, description="what goes with the runs")
    artifacts: int = Field(description="objects in the object store whose time is over")
    bytes: int = Field(description="of those objects")
    orphans: Heap = Field(default=NOTHING, description="objects that nothing has ever pointed to")
    runs: int = Field(description="ended runs, with their shards, pointers, reviews and decisions")
    closed: int = Field(default=0, description="runs that were at work, without any sign of life for long, and count as failed")
    syncs: dict[str, OfSync] = Field(default_factory=dict, description="the same, by sync")
    copied: Heap = Field(default=NOTHING, description="of all objects, those with a cold copy")
    held: dict[Holding, Heap] = Field(default_factory=dict, description="objects that stay though their time is over, and why")
    strange: Heap = Field(default=NOTHING, description="objects of runs that state does not know; they stay")
    kept: dict[str, str] = Field(description="syncs of which neither artifacts nor runs were looked at, and why")


@dataclass(frozen=True)
class Retired:
    """A part of state that is about to go: rows of one run, each a JSON document that names its table."""

    run: RunId
    sync: str
    name: str
    """What tells this part of the run's state from its others; always the same for the same rows."""
    rows: Iterator[str]


class Undoing(Frozen):
    """A publication that a run which has not ended takes back."""

    sync: str
    publication: PublicationId
