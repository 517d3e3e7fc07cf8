"""Alerts in memory."""

from datetime import timedelta

from sluice.guard.takeover import is_taken_over
from sluice.model.alert import Alert, AlertLevel, Incident
from sluice.model.base import RunId
from sluice.model.lifecycle import RunStatus
from sluice.model.run import Mode, Run
from sluice.ports.coordination import Telling
from tests.unit.fakes.memory import Memory

_FAILURES = (RunStatus.FAILED, RunStatus.PARTIAL)


class MemoryAlertStore:
    """The port `AlertStore`."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def failed_in_a_row(self, run: RunId) -> int:
        """Count back to the last run that succeeded."""
        with self._memory.lock:
            up_to_it, _ = self._worked(run)
            failed = 0
            for earlier in reversed(up_to_it):
                if earlier.status is RunStatus.SUCCEEDED:
                    break
                failed += _has_failed(earlier)
            return failed

    def raise_alert(self, run: Run, alert: Alert, telling: Telling, ttl: timedelta) -> Incident | None:
        """Begin the incident, or let it reach a higher level."""
        with self._memory.lock:
            _, later = self._worked(run.id)
            if any(one.status is RunStatus.SUCCEEDED for one in later):
                return None
            reached = {"level": alert.level, "runs": alert.runs, "run": run.id}
            held = self._open(run.sync)
            if held is None:
                number = len(self._memory.incidents) + 1
                begun = Incident(id=number, sync=run.sync, began_at=self._memory.clock.now(), **reached)
                return self._keep(begun, telling, ttl)
            if (held.level, alert.level) != (AlertLevel.WARN, AlertLevel.PAGE):
                return None
            return self._keep(held.model_copy(update=reached), telling, ttl)

    def recover(self, run: Run, telling: Telling, ttl: timedelta) -> Incident | None:
        """End the incident, unless a later run has failed."""
        with self._memory.lock:
            _, later = self._worked(run.id)
            held = self._open(run.sync)
            if held is None or any(map(_has_failed, later)):
                return None
            return self._keep(held.model_copy(update={"ended_at": self._memory.clock.now()}), telling, ttl)

    def newest(self, sync: str) -> Incident | None:
        """Return the one that began last."""
        with self._memory.lock:
            return next((one for one in reversed(self._memory.incidents) if one.sync == sync), None)

    def _open(self, sync: str) -> Incident | None:
        return next((one for one in self._memory.incidents if one.sync == sync and one.ended_at is None), None)

    def _keep(self, incident: Incident, telling: Telling, ttl: timedelta) -> Incident:
        others = [one for one in self._memory.incidents if one.id != incident.id]
        self._memory.incidents = sorted([*others, incident], key=lambda one: one.id)
        for call in telling(incident):
            self._memory.calls.setdefault(call.key, (call, self._memory.clock.now() + ttl))
        return incident

    def _worked(self, run: RunId) -> tuple[list[Run], list[Run]]:
        """Return the runs of the sync that say something of the supplier: up to this one, and after it."""
        present = self._memory.run(run)
        runs = list(self._memory.runs.values())
        number = runs.index(present) + 1
        return _of(present.sync, runs[:number]), _of(present.sync, runs[number:])


def _of(sync: str, runs: list[Run]) -> list[Run]:
    asked_for = (Mode.ROLLBACK, Mode.REDRIVE)
    return [one for one in runs if one.sync == sync and one.follows is None and one.mode not in asked_for]


def _has_failed(run: Run) -> bool:
    return run.status in _FAILURES and not is_taken_over(run)
