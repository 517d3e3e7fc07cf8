"""Calls with side effects, in memory."""

from collections.abc import Sequence
from datetime import timedelta

from sluice.errors import Fenced
from sluice.model.base import RunId
from sluice.model.call import Call, CallResult
from sluice.model.lifecycle import FINAL_RUN_STATUSES
from sluice.model.run import Run
from tests.unit.fakes.memory import Memory


class MemoryCallStore:
    """The port `CallStore`."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def prepare(self, calls: Sequence[Call], run: Run, ttl: timedelta) -> None:
        """Note calls that are due."""
        with self._memory.lock:
            self._require_token(run)
            for call in calls:
                self._note(call, ttl, begun=0)

    def begin(self, call: Call, run: Run, ttl: timedelta) -> Call:
        """Commit the intent."""
        with self._memory.lock:
            self._require_token(run)
            return self._note(call, ttl, begun=1)

    def answer(self, call: Call, run: Run, result: CallResult) -> None:
        """Keep the first result."""
        self._change(call, run, {"result": result, "trouble": None})

    def leave(self, call: Call, run: Run, trouble: str) -> None:
        """Note why there is none."""
        self._change(call, run, {"trouble": trouble})

    def of(self, run: RunId) -> list[Call]:
        """Return the calls of a run."""
        with self._memory.lock:
            return [call for call in self._present() if call.run == run]

    def left(self, sync: str) -> list[Call]:
        """Return what runs that are over have left."""
        with self._memory.lock:
            runs = self._memory.runs
            over = {run.id for run in runs.values() if run.status in FINAL_RUN_STATUSES}
            without = [call for call in self._present() if call.sync == sync and call.result is None]
            return [call for call in without if call.run in over or call.run not in runs]

    def _require_token(self, run: Run) -> None:
        held = self._memory.run(run.id).token
        if held != run.token:
            raise Fenced(f"run {run.id} holds token {held}, not {run.token}", token=held)

    def _present(self) -> list[Call]:
        now = self._memory.clock.now()
        return [call for call, expires_at in self._memory.calls.values() if expires_at > now]

    def _note(self, call: Call, ttl: timedelta, *, begun: int) -> Call:
        now = self._memory.clock.now()
        held, expires_at = self._memory.calls.get(call.key, (None, now))
        if held is None or expires_at <= now:
            self._memory.calls.pop(call.key, None)
            held, expires_at = call, now + ttl
        if held.result is None:
            held = held.model_copy(update={"begun": held.begun + begun})
        self._memory.calls[call.key] = held, expires_at
        return held

    def _change(self, call: Call, run: Run, update: dict[str, object]) -> None:
        with self._memory.lock:
            self._require_token(run)
            held, expires_at = self._memory.calls[call.key]
            if held.result is None:
                self._memory.calls[call.key] = held.model_copy(update=update), expires_at
