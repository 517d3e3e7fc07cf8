"""What has outlived its time, in memory, where nothing but artifacts and runs ever does."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta

from sluice.model.artifact import Pointer, StoredObject
from sluice.model.base import RunId
from sluice.model.garbage import Garbage, Heap, Holding, Needed, OfSync, Retired, Undoing
from tests.unit.fakes.memory import Memory


class MemoryGarbageStore:
    """The port `GarbageStore`. `steps` tells in which order it was used."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self.steps: list[str] = []

    def syncs(self) -> list[str]:
        """Return the syncs that have ended runs."""
        return sorted({run.sync for run in self._memory.runs.values() if run.finished_at})

    def undoing(self) -> list[Undoing]:
        """Return what unfinished runs take back."""
        runs = self._memory.runs.values()
        return [Undoing(sync=run.sync, publication=run.undoes) for run in runs if run.undoes and run.finished_at is None]

    def estimate(self, needed: Needed, quiet: timedelta, grace: timedelta) -> Garbage:
        """Return what would go."""
        self.steps.append(f"estimate {quiet.days} {grace.days}")
        expired = self._expired(needed)
        runs = self._old_runs(needed, without=expired)
        objects = {pointer.key: pointer for pointer in expired}
        size = sum(pointer.bytes for pointer in objects.values())
        syncs = {
            sync: OfSync(
                artifacts=Heap(
                    objects=sum(one.ref.sync == sync for one in objects.values()),
                    bytes=sum(one.bytes for one in objects.values() if one.ref.sync == sync),
                ),
                runs=sum(self._memory.runs[run].sync == sync for run in runs),
            )
            for sync in {*(one.ref.sync for one in objects.values()), *(self._memory.runs[run].sync for run in runs)}
        }
        return Garbage(
            control={}, session={}, artifacts=len(objects), bytes=size, runs=len(runs), syncs=syncs, kept=needed.unknown
        )

    def close_silent(self, grace: timedelta) -> int:
        """None ever is."""
        self.steps.append(f"silent {grace.days}")
        return 0

    @contextmanager
    def telling(self) -> Iterator[list[Retired]]:
        """There are none."""
        yield []

    @contextmanager
    def orphans(self, found: Sequence[StoredObject], grace: timedelta) -> Iterator[tuple[list[StoredObject], Heap]]:
        """Yield what no pointer names, of runs that ended long ago."""
        self.steps.append("orphans")
        runs, before = self._memory.runs, self._memory.clock.now() - grace
        named = {pointer.key for pointer in self._memory.pointers.values()}
        stray = [one for one in found if one.key not in named]
        known = [one for one in stray if one.run in runs]
        strange = [one for one in stray if one.run not in runs]
        old = [one for one in known if (ended := runs[one.run].finished_at) is not None and ended <= before]
        yield old, Heap(objects=len(strange), bytes=sum(one.bytes for one in strange))

    def sweep_control(self, quiet: timedelta) -> dict[str, int]:
        """There is none."""
        self.steps.append(f"control {quiet.days}")
        return {}

    def sweep_session(self) -> dict[str, int]:
        """There is none."""
        self.steps.append("session")
        return {}

    def condemn(self, needed: Needed) -> tuple[list[Pointer], dict[Holding, Heap]]:
        """Return expired pointers."""
        self.steps.append("condemn")
        return list({pointer.key: pointer for pointer in self._expired(needed)}.values()), {}

    @contextmanager
    def removing(self, keys: Sequence[str], needed: Needed) -> Iterator[list[Pointer]]:
        """Yield their pointers, and remove them."""
        self.steps.append("remove")
        expired = [pointer for pointer in self._expired(needed) if pointer.key in keys]
        yield expired
        for pointer in expired:
            del self._memory.pointers[pointer.ref]

    @contextmanager
    def retiring(self, needed: Needed, grace: timedelta) -> Iterator[tuple[list[Retired], dict[str, int]]]:
        """Yield one of the runs that are left without artifacts, and remove it."""
        self.steps.append(f"runs {grace.days}")
        old = [self._memory.runs[run] for run in self._old_runs(needed, without=[])[:1]]
        yield [Retired(run.id, run.sync, "state", iter([run.model_dump_json()])) for run in old], {}
        for run in old:
            del self._memory.runs[run.id]

    def _expired(self, needed: Needed) -> list[Pointer]:
        now = self._memory.clock.now()
        return [
            pointer
            for ref, pointer in self._memory.pointers.items()
            if pointer.expires_at is not None
            and pointer.expires_at <= now
            and self._memory.runs[ref.run].finished_at
            and ref.sync not in needed.unknown
            and ref.run not in needed.published
        ]

    def _old_runs(self, needed: Needed, without: list[Pointer]) -> list[RunId]:
        now = self._memory.clock.now()
        left = {pointer.ref.run for pointer in self._memory.pointers.values() if pointer not in without}
        return [
            run.id
            for run in self._memory.runs.values()
            if run.expires_at is not None
            and run.expires_at <= now
            and run.id not in left
            and run.id not in needed.published
            and run.sync not in needed.unknown
        ]
