"""What has outlived its time, in memory, where nothing but artifacts and runs ever does."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta

from sluice.model.artifact import Pointer
from sluice.model.base import RunId
from sluice.model.garbage import Garbage, Needed
from tests.unit.fakes.memory import Memory


class MemoryGarbageStore:
    """The port `GarbageStore`. `steps` tells in which order it was used."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self.steps: list[str] = []

    def syncs(self) -> list[str]:
        """Return the syncs that have ended runs."""
        return sorted({run.sync for run in self._memory.runs.values() if run.finished_at})

    def estimate(self, needed: Needed, quiet: timedelta) -> Garbage:
        """Return what would go."""
        self.steps.append(f"estimate {quiet.days}")
        expired = self._expired(needed)
        runs = len(self._old_runs(needed, without=expired))
        size = sum(pointer.bytes for pointer in {pointer.key: pointer for pointer in expired}.values())
        number = len({pointer.key for pointer in expired})
        return Garbage(control={}, session={}, artifacts=number, bytes=size, runs=runs, kept=needed.unknown)

    def sweep_control(self, quiet: timedelta) -> dict[str, int]:
        """There is none."""
        self.steps.append(f"control {quiet.days}")
        return {}

    def sweep_session(self) -> dict[str, int]:
        """There is none."""
        self.steps.append("session")
        return {}

    def condemn(self, needed: Needed) -> list[str]:
        """Return the keys of expired pointers."""
        self.steps.append("condemn")
        return sorted({pointer.key for pointer in self._expired(needed)})

    @contextmanager
    def removing(self, keys: Sequence[str], needed: Needed) -> Iterator[list[Pointer]]:
        """Yield their pointers, and remove them."""
        self.steps.append("remove")
        expired = [pointer for pointer in self._expired(needed) if pointer.key in keys]
        yield expired
        for pointer in expired:
            del self._memory.pointers[pointer.ref]

    def sweep_runs(self, needed: Needed) -> int:
        """Remove the runs that are left without artifacts."""
        self.steps.append("runs")
        old = self._old_runs(needed, without=[])
        for run in old:
            del self._memory.runs[run]
        return len(old)

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
