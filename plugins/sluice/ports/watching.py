"""What people watch: a run as it goes on, and all syncs at a glance."""

from collections.abc import Sequence
from typing import Protocol

from sluice.model.base import RunId
from sluice.model.journal import JournalEvent
from sluice.model.overview import RestingStage, SyncGlance
from sluice.model.standing import Standing


class EventReader(Protocol):
    """The journals of runs."""

    def after(self, run: RunId, seq: int, limit: int) -> list[JournalEvent]:
        """Return the events of a run behind a number, oldest first.

        Who asks for what is behind the last number he was told misses none, however transactions overlap: a number is given
        out under the lock of the run's row, so that whoever sees it sees all that are lower.
        """

    def newest(self, run: RunId, limit: int) -> list[JournalEvent]:
        """Return the newest events of a run, the newest first."""

    def standing(self, run: RunId) -> Standing:
        """Return how the run is doing now; raise `NotFound` naming it."""


class OverviewStore(Protocol):
    """All syncs at a glance, in so few questions that fifty of them cost no more than one."""

    def syncs(self, syncs: Sequence[str], runs: int) -> list[SyncGlance]:
        """Return these syncs, by name, each with so many of its newest runs; one that never ran is among them."""

    def resting(self) -> list[RestingStage]:
        """Return the stages that leave a supplier alone, since its breaker is not closed, by name."""
