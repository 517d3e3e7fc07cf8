"""The audit trail in memory."""

from collections.abc import Mapping
from typing import Any

from pydantic import JsonValue

from sluice.model.audit import Act, Actor, AuditEntry
from sluice.model.base import RunId
from tests.unit.fakes.memory import Memory


class MemoryAuditStore:
    """The port `AuditStore`."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def note(self, act: Act, by: Actor, sync: str | None, facts: Mapping[str, JsonValue], run: RunId | None = None) -> None:
        """Note an act."""
        told: dict[str, Any] = dict(facts)
        with self._memory.lock:
            self._memory.note_act(act, by, sync=sync, run=run, **told)

    def of(self, sync: str | None, run: RunId | None, limit: int) -> list[AuditEntry]:
        """Return the newest entries first."""
        with self._memory.lock:
            found = [one for one in self._memory.audit if sync in (None, one.sync) and run in (None, one.run)]
            return found[::-1][:limit]
