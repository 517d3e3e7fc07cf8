"""Runs in memory."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from sluice.errors import Fenced
from sluice.guard import flight, takeover
from sluice.model.artifact import ArtifactKind
from sluice.model.audit import Actor, act_of_request
from sluice.model.base import RunId, Token
from sluice.model.journal import Subject
from sluice.model.lifecycle import (
    FINAL_RUN_STATUSES,
    RUN_TRANSITIONS,
    RunEvent,
    RunStatus,
    ShardStatus,
    Step,
    advance,
)
from sluice.model.run import LEFT_UNFINISHED, SYNC_MODES, Failure, Mode, Run, Window
from sluice.model.shard import Shard
from sluice.model.stage import StagePolicy
from tests.unit.fakes.memory import Memory


class MemoryRunStore:
    """The port `RunStore`."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def open(self, run: Run, policy: StagePolicy, by: Actor | None = None) -> Run:
        """Insert the run or look at it again, as `guard.flight` decides."""
        memory = self._memory
        with memory.lock:
            if run.id in memory.runs and flight.is_decided(memory.runs[run.id]):
                return memory.runs[run.id]
            if run.id not in memory.runs:
                memory.runs[run.id] = run.model_copy(update={"status": RunStatus.PENDING, "token": memory.next_token()})
                memory.state_ttls[run.id] = policy.state_ttl
                if by is not None:
                    self._note_request(run, by)
                memory.tell(run.id, Subject.RUN, run.id, "open", RunStatus.PENDING)
            present = memory.runs[run.id]
            around = self._surroundings(present)
            match flight.decide(present, around, policy):
                case flight.Own():
                    self._work(present, around, policy)
                case flight.Follow(owner):
                    self._follow(self._readmitted(present), owner)
                case flight.End(event, follows, failure):
                    ending = self._readmitted(present)
                    ended = self._keep(ending, advance(RUN_TRANSITIONS, ending.status, event), failure)
                    memory.runs[run.id] = ended.model_copy(update={"follows": follows})
            return memory.runs[run.id]

    def _note_request(self, run: Run, by: Actor) -> None:
        asked = act_of_request(run)
        if asked is None or any(entry.run == run.id for entry in self._memory.audit):
            return
        act, subject, facts = asked
        told: dict[str, Any] = dict(facts)
        self._memory.note_act(act, by, sync=run.sync, run=run.id, subject=subject, **told)

    def get(self, run: RunId) -> Run:
        """Return the run."""
        with self._memory.lock:
            return self._memory.run(run)

    def enter(self, run: RunId, step: Step, lease_ttl: timedelta) -> Run:
        """Put the run at `step`."""
        memory = self._memory
        with memory.lock:
            present = memory.run(run)
            if present.status is RunStatus.SUCCEEDED:
                return present
            event = RunEvent.REOPEN if present.status in FINAL_RUN_STATUSES else RunEvent.ENTER
            status = advance(RUN_TRANSITIONS, present.status, event)
            memory.take_flight(present, lease_ttl)
            memory.lease_ttls[run] = lease_ttl
            memory.follows_since.pop(run, None)
            memory.tell(run, Subject.RUN, run, event, status, step=step)
            entered = present.model_copy(update={"follows": None})
            return self._keep(entered, status, None, step=step, token=memory.next_token())

    def end(self, run: Run, event: RunEvent, failure: Failure | None = None) -> Run:
        """Let `event` happen to the run."""
        memory = self._memory
        with memory.lock:
            present = memory.run(run.id)
            if present.token != run.token:
                raise Fenced(f"run {run.id} holds token {present.token}, not {run.token}", token=present.token)
            status = advance(RUN_TRANSITIONS, present.status, event)
            lease = memory.leases.get(run.request_key)
            if lease and lease.owner == run.id:
                del memory.leases[run.request_key]
            told = {"error": failure.error, "message": failure.message} if failure else {}
            memory.tell(run.id, Subject.RUN, run.id, event, status, **told)
            if status in FINAL_RUN_STATUSES:
                self._end_shards(run.id, failure or LEFT_UNFINISHED)
            return self._keep(present, status, failure)

    def _end_shards(self, run: RunId, failure: Failure) -> None:
        memory = self._memory
        for shard in memory.of_run(run):
            if shard.status is ShardStatus.RUNNING:
                ended = {"status": ShardStatus.FAILED, "failure": failure, "token": memory.next_token()}
                memory.shards[run, shard.key] = shard.model_copy(update=ended)

    def renew(self, run: Run, lease_ttl: timedelta) -> bool:
        """Extend the flight."""
        with self._memory.lock:
            self._memory.still_run(run.id, run.token, lease_ttl)
            return self._memory.keep(run.id)

    def next_token(self, run: Run) -> Run:
        """Exchange the token."""
        memory = self._memory
        with memory.lock:
            if memory.run(run.id).status is not RunStatus.RUNNING:
                raise Fenced(f"run {run.id} was ended meanwhile", run=run.id)
            memory.still_run(run.id, run.token)
            memory.runs[run.id] = memory.runs[run.id].model_copy(update={"token": memory.next_token()})
            return memory.runs[run.id]

    def reach(self, run: Run, step: Step) -> None:
        """Let `step` be next."""
        memory = self._memory
        with memory.lock:
            if memory.run(run.id).status is not RunStatus.RUNNING:
                raise Fenced(f"run {run.id} was ended meanwhile", run=run.id)
            memory.still_run(run.id, run.token)
            memory.runs[run.id] = memory.runs[run.id].model_copy(update={"step": step})

    def fetched_within(self, sync: str, window: Window) -> list[Run]:
        """Return the runs that have asked the supplier, oldest first."""
        with self._memory.lock:
            return [run for run in self._fetched(sync) if window.start <= run.created_at < window.end]

    def asked_within(self, sync: str, span: Window, modes: Sequence[Mode]) -> list[Run]:
        """Return the runs whose windows lie within, the newest first."""
        with self._memory.lock:
            found = [
                run
                for run in self._memory.runs.values()
                if run.sync == sync
                and run.mode in modes
                and run.window is not None
                and span.start <= run.window.start
                and run.window.end <= span.end
            ]
            return found[::-1]

    def newer_than(self, run: Run) -> list[RunId]:
        """Return the runs whose data is newer, or of unknown age."""
        with self._memory.lock:
            own = self._age(self._memory.run(run.id))
            ages = {
                other.id: self._age(other)
                for other in self._memory.runs.values()
                if other.sync == run.sync and other.mode is not Mode.ROLLBACK and other.follows is None and other.id != run.id
            }
            return sorted(other for other, age in ages.items() if own is None or age is None or age > own)

    def _fetched(self, sync: str) -> list[Run]:
        return [
            run for run in self._memory.runs.values() if run.sync == sync and run.mode in SYNC_MODES and run.follows is None
        ]

    def _age(self, run: Run) -> int | None:
        """Return the place, in order of admission, of the newest run that has fetched the data."""
        order = list(self._memory.runs)
        if run.mode is not Mode.REPLAY:
            return order.index(run.id)
        if run.replays is not None:
            return order.index(run.replays) if run.replays in order else None
        return (
            max((order.index(other.id) for other in self.fetched_within(run.sync, run.window)), default=None)
            if run.window
            else None
        )

    def recent(self, sync: str | None, statuses: Sequence[RunStatus], limit: int, before: RunId | None = None) -> list[Run]:
        """Return the newest runs first."""
        with self._memory.lock:
            runs = list(self._memory.runs.values())
            found = [
                run
                for run in (runs if before is None else runs[: [one.id for one in runs].index(before)])
                if (sync is None or run.sync == sync) and (not statuses or run.status in statuses)
            ]
            return found[::-1][:limit]

    def followed_by(self, run: RunId, limit: int) -> list[Run]:
        """Return the runs that follow it."""
        with self._memory.lock:
            return [one for one in reversed(self._memory.runs.values()) if one.follows == run][:limit]

    def _keep(
        self, run: Run, status: RunStatus, failure: Failure | None, step: Step | None = None, token: Token | None = None
    ) -> Run:
        finished_at = self._memory.clock.now() if status in FINAL_RUN_STATUSES else None
        kept = run.model_copy(
            update={
                "status": status,
                "failure": failure,
                "step": step or run.step,
                "token": token or run.token,
                "finished_at": finished_at,
                "expires_at": finished_at + self._memory.state_ttls[run.id] if finished_at else None,
            }
        )
        self._memory.runs[run.id] = kept
        return kept

    def _surroundings(self, run: Run) -> flight.Surroundings:
        memory = self._memory
        rival = memory.rival(run.request_key, run.id)
        at_work = [r for r in memory.runs.values() if r.request_key == run.request_key and r.id != run.id and r.follows is None]
        newest = at_work[-1] if at_work else None
        now = memory.clock.now()
        return flight.Surroundings(
            now=now,
            waited=now - memory.follows_since.get(run.id, now),
            holder=rival.owner if rival else None,
            followed=memory.runs[run.follows] if run.follows else None,
            newest=newest,
            is_outrun=newest is not None and self._is_outrun(newest),
        )

    def _readmitted(self, run: Run) -> Run:
        """Return the run, pending again if it has ended as a follower."""
        if run.status is RunStatus.PENDING or run.is_following:
            return run
        return self._readmit(run)

    def _readmit(self, run: Run) -> Run:
        self._memory.follows_since.pop(run.id, None)
        status = advance(RUN_TRANSITIONS, run.status, RunEvent.READMIT)
        return self._keep(run.model_copy(update={"follows": None}), status, None, token=self._memory.next_token())

    def _work(self, run: Run, around: flight.Surroundings, policy: StagePolicy) -> None:
        """Let the run have the flight, and go on from what is left of its request."""
        memory = self._memory
        owner = run if run.status is RunStatus.PENDING else self._readmit(run)
        memory.take_flight(owner, policy.lease_ttl)
        memory.lease_ttls[owner.id] = policy.lease_ttl
        others = [
            other for other in memory.runs.values() if (other.request_key, other.id != owner.id) == (run.request_key, True)
        ]
        dead = [self._end_dead(other, owner.id) for other in others if other.status in ("pending", "running")]
        donor = memory.runs[around.newest.id] if around.newest else None
        if donor is not None and not around.is_outrun and takeover.is_due(donor, owner, dead):
            self._adopt(donor.id, owner.id, policy.takeover)

    def _follow(self, run: Run, owner: RunId) -> None:
        memory = self._memory
        memory.follows_since.setdefault(run.id, memory.clock.now())
        status = advance(RUN_TRANSITIONS, run.status, RunEvent.FOLLOW)
        memory.runs[run.id] = run.model_copy(update={"status": status, "follows": owner})

    def _end_dead(self, run: Run, successor: RunId) -> Run:
        memory = self._memory
        failure = takeover.taken_over_by(successor)
        for shard in memory.of_run(run.id):
            failed = {"status": ShardStatus.FAILED, "failure": failure} if shard.status is ShardStatus.RUNNING else {}
            memory.shards[run.id, shard.key] = shard.model_copy(update={"token": memory.next_token(), **failed})
        for follower in [other for other in memory.runs.values() if other.is_following and other.follows == run.id]:
            self._follow(follower, successor)
        status = advance(RUN_TRANSITIONS, run.status, RunEvent.FAIL)
        return self._keep(run, status, failure, token=memory.next_token())

    def _is_outrun(self, run: Run) -> bool:
        """Whether a run of the sync has published since this one did, or came as far as it has."""
        runs = list(self._memory.runs.values())
        place = [other.id for other in runs].index(run.id)
        for index, other in enumerate(runs):
            has_published = other.status in ("running", "succeeded", "partial") and other.step in (Step.PUBLISH, Step.SETTLE)
            if other.sync != run.sync or other.id == run.id or not has_published:
                continue
            if run.status is not RunStatus.SUCCEEDED:
                if index > place:
                    return True
            elif other.finished_at is None or run.finished_at is None or other.finished_at > run.finished_at:
                return True
        return False

    def _adopt(self, donor: RunId, run: RunId, fresh: timedelta) -> None:
        memory = self._memory
        plan = memory.of_run(donor)
        going_on = {s.key for s in plan if s.progress_at is not None and s.progress_at > memory.clock.now() - fresh}
        for shard in plan if going_on else []:
            pending = {"run": run, "status": ShardStatus.PENDING, "token": Token(0)}
            if shard.key not in going_on:
                kept = shard.model_dump(include={"key", "params", "watermark"})
                memory.shards[run, shard.key] = Shard.model_validate({**kept, **pending})
                continue
            status = shard.status if shard.status is ShardStatus.SUCCEEDED else ShardStatus.PENDING
            anew = {**pending, "status": status, "failure": None, "attempt": 0}
            memory.shards[run, shard.key] = shard.model_copy(update=anew)
            for pointer in list(memory.pointers.values()):
                ref = pointer.ref
                of_shard = ref.kind in (ArtifactKind.RAW, ArtifactKind.ROWS, ArtifactKind.REJECTS)
                if of_shard and (ref.run, ref.shard) == (donor, shard.key):
                    memory.put(pointer.model_copy(update={"ref": ref.model_copy(update={"run": run})}))
