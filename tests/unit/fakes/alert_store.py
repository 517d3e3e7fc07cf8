"""Alerts in memory."""

from sluice.guard.takeover import is_taken_over
from sluice.model.alert import Alert
from sluice.model.base import RunId
from sluice.model.lifecycle import RunStatus
from sluice.model.run import Mode, Run
from tests.unit.fakes.memory import Memory


class MemoryAlertStore:
    """The port `AlertStore`."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def failed_in_a_row(self, run: RunId) -> int:
        """Count back to the last run that succeeded."""
        with self._memory.lock:
            present = self._memory.run(run)
            runs = list(self._memory.runs.values())
            up_to_it = runs[: runs.index(present) + 1]
            failed, asked_for = 0, (Mode.ROLLBACK, Mode.REDRIVE)
            worked = [one for one in up_to_it if one.sync == present.sync and one.follows is None and one.mode not in asked_for]
            for earlier in reversed(worked):
                if earlier.status is RunStatus.SUCCEEDED:
                    break
                failed += earlier.status in (RunStatus.FAILED, RunStatus.PARTIAL) and not is_taken_over(earlier)
            return failed

    def note(self, run: Run, alert: Alert) -> bool:
        """Keep the run's first alert."""
        with self._memory.lock:
            self._memory.run(run.id)
            is_first = run.id not in self._memory.alerts
            self._memory.alerts.setdefault(run.id, alert)
            return is_first
