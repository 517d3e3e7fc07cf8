"""One removal: services and what is needed go in; one kind of garbage after the other goes, each after its cold copy."""

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Final, TypeVar

import structlog

from sluice import log_events
from sluice.errors import ArtifactCorrupt
from sluice.model.artifact import Pointer, StoredObject
from sluice.model.garbage import NOTHING, Garbage, Heap, Holding, Needed, OfSync, Retired
from sluice.ports import Services

T = TypeVar("T")

log: Final = structlog.get_logger()

_OBJECTS_AT_ONCE: Final = 100
"""While so many are removed, none of their runs can be gone on with."""


class Removal:
    """Removes, and keeps the tally. Each method may be killed at any point, and does the rest when called again."""

    def __init__(self, services: Services, needed: Needed, grace: timedelta, tell: Callable[[str], None]) -> None:
        self._services = services
        self._needed = needed
        self._grace = grace
        self._tell = tell
        self._syncs: dict[str, OfSync] = {}
        self._task: dict[str, int] = {}
        self._held: dict[Holding, Heap] = {}
        self._copied = NOTHING
        self._strange = NOTHING
        self.control: dict[str, int] = {}
        self.session: dict[str, int] = {}
        self.closed = 0

    def count(self, estimated: Garbage) -> None:
        """Take over what was estimated instead of removed."""
        self.control, self.session, self.closed = estimated.control, estimated.session, estimated.closed
        self._syncs, self._task, self._held = dict(estimated.syncs), estimated.task, estimated.held

    def garbage(self, *, copied: bool = False) -> Garbage:
        """Return the tally; with `copied`, of what would be removed, all would be copied before."""
        artifacts = sum((of.artifacts for of in self._syncs.values()), NOTHING)
        orphans = sum((of.orphans for of in self._syncs.values()), NOTHING)
        return Garbage(
            control=self.control,
            session=self.session,
            task=self._task,
            artifacts=artifacts.objects,
            bytes=artifacts.bytes,
            orphans=orphans,
            runs=sum(of.runs for of in self._syncs.values()),
            closed=self.closed,
            syncs=self._syncs,
            copied=artifacts + orphans if copied else self._copied,
            held=self._held,
            strange=self._strange,
            kept=self._needed.unknown,
        )

    def events(self) -> None:
        """Copy the events of runs that ended long ago, and remove them. Without cold copies they are swept with the rest."""
        while self._services.cold is not None:
            with self._services.garbage.telling() as told:
                for part in told:
                    number = self._write(part)
                    self.session["event"] = self.session.get("event", 0) + number
            if not told:
                return
            self._tell(f"{self.session['event']:,} events")

    def artifacts(self) -> None:
        """Remove expired bytes, then what points to them."""
        condemned, self._held = self._services.garbage.condemn(self._needed)
        for batch in _batches(condemned):
            copied = self._copies(batch)
            with self._services.garbage.removing(list(copied), self._needed) as pointers:
                for pointer in pointers:
                    self._services.artifacts.remove(pointer)
            for pointer in pointers:
                self._add(pointer.ref.sync, artifacts=Heap(objects=1, bytes=pointer.bytes))
                self._copied += copied[pointer.key]
            self._tell(f"{sum(of.artifacts.objects for of in self._syncs.values()):,} of {len(condemned):,} artifacts")

    def orphans(self, *, is_dry: bool) -> None:
        """Remove the objects that nothing has ever pointed to; look at all there are, a page at a time."""
        before = self._services.clock.now() - self._grace
        after: str | None = ""
        seen = 0
        while after is not None:
            page = self._services.artifacts.listed(after)
            old = [one for one in page.objects if one.stored_at <= before]
            for batch in _batches(old):
                self._orphans(batch, is_dry=is_dry)
            seen += len(page.objects)
            self._tell(f"{seen:,} objects in the store looked at")
            after = page.after

    def _orphans(self, found: Sequence[StoredObject], *, is_dry: bool) -> None:
        with self._services.garbage.orphans(found, self._grace) as (stray, strange):
            copied = {} if is_dry else self._copies(stray)
            for one in stray:
                if not is_dry and one.key in copied:
                    self._services.artifacts.remove(one)
                if is_dry or one.key in copied:
                    self._add(one.sync, orphans=Heap(objects=1, bytes=one.bytes))
        self._copied = sum(copied.values(), self._copied)
        self._strange += strange

    def runs(self) -> None:
        """Remove ended runs with all that belongs to them."""
        while True:
            with self._services.garbage.retiring(self._needed, self._grace) as (retired, belongings):
                for part in retired:
                    if self._services.cold is not None:
                        self._write(part)
            for table, number in belongings.items():
                self._task[table] = self._task.get(table, 0) + number
            for part in retired:
                self._add(part.sync, runs=1)
            if not retired:
                return
            self._tell(f"{sum(of.runs for of in self._syncs.values()):,} runs")

    def _copies(self, objects: Sequence[Pointer | StoredObject]) -> dict[str, Heap]:
        """Return what may be removed, and how much of it has a cold copy by now. What is damaged stays, for a person."""
        done: dict[str, Heap] = {}
        for one in objects:
            size = Heap(objects=1, bytes=one.bytes)
            try:
                has_copy = self._services.cold is not None and self._services.cold.copy(one)
            except ArtifactCorrupt as error:
                log.warning(log_events.GARBAGE_DAMAGED, key=one.key, message=error.message)
                self._held[Holding.DAMAGED] = self._held.get(Holding.DAMAGED, NOTHING) + size
                continue
            done[one.key] = size if has_copy else NOTHING
        return done

    def _write(self, part: Retired) -> int:
        """Make a cold copy of rows of state, and return how many they are."""
        assert self._services.cold is not None  # noqa: S101 - whoever calls this has looked
        number = 0

        def counted() -> Iterator[str]:
            nonlocal number
            for row in part.rows:
                number += 1
                yield row

        self._services.cold.write(part.sync, part.run, part.name, counted())
        return number

    def _add(self, sync: str, artifacts: Heap = NOTHING, orphans: Heap = NOTHING, runs: int = 0) -> None:
        of = self._syncs.get(sync, OfSync())
        self._syncs[sync] = OfSync(artifacts=of.artifacts + artifacts, orphans=of.orphans + orphans, runs=of.runs + runs)


def _batches(objects: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(objects), _OBJECTS_AT_ONCE):
        yield objects[start : start + _OBJECTS_AT_ONCE]
