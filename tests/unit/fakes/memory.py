"""What the fakes of the state stores share, as the stores share a database: tables, tokens and flights."""

import threading
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count
from typing import Any

from pydantic import JsonValue

from sluice.errors import CalledOff, Fenced, FlightTaken, NotFound, StateUnreadable
from sluice.guard import takeover
from sluice.model.alert import Incident
from sluice.model.artifact import ArtifactRef, Pointer
from sluice.model.audit import Act, Actor, AuditEntry
from sluice.model.base import ReviewId, RunId, ShardKey, Token
from sluice.model.call import Call
from sluice.model.journal import JournalEvent, Subject
from sluice.model.lifecycle import RunStatus
from sluice.model.progress import Progress
from sluice.model.reject import DeadLetter, DeadLetterLines
from sluice.model.review import Review
from sluice.model.run import Run
from sluice.model.shard import Shard
from tests.unit.fakes.clock import FakeClock


@dataclass(frozen=True)
class Lease:
    """Who has a flight until when."""

    owner: RunId
    expires_at: datetime
    kept_until: datetime | None = None
    seen_at: datetime | None = None


@dataclass
class Memory:
    """The tables. A fake holds `lock` while it works, and changes nothing before it has checked everything."""

    clock: FakeClock = field(default_factory=FakeClock)
    lock: threading.RLock = field(default_factory=threading.RLock)
    runs: dict[RunId, Run] = field(default_factory=dict)
    lease_ttls: dict[RunId, timedelta] = field(default_factory=dict)
    state_ttls: dict[RunId, timedelta] = field(default_factory=dict)
    follows_since: dict[RunId, datetime] = field(default_factory=dict)
    leases: dict[str, Lease] = field(default_factory=dict)
    shards: dict[tuple[RunId, ShardKey], Shard] = field(default_factory=dict)
    pointers: dict[ArtifactRef, Pointer] = field(default_factory=dict)
    reviews: dict[ReviewId, Review] = field(default_factory=dict)
    dead_letters: list[DeadLetter] = field(default_factory=list)
    lines: dict[int, DeadLetterLines] = field(default_factory=dict)
    lines_taken: dict[tuple[int, RunId], tuple[tuple[int, int], ...]] = field(default_factory=dict)
    watermarks: dict[tuple[str, ShardKey], tuple[str, Token]] = field(default_factory=dict)
    calls: dict[str, tuple[Call, datetime]] = field(default_factory=dict)
    incidents: list[Incident] = field(default_factory=list)
    progress: dict[tuple[RunId, ShardKey], Progress] = field(default_factory=dict)
    journals: dict[RunId, list[JournalEvent]] = field(default_factory=dict)
    clearings: dict[RunId, int] = field(default_factory=dict)
    called_off: dict[RunId, int] = field(default_factory=dict)
    stopped: dict[tuple[RunId, ShardKey], int] = field(default_factory=dict)
    audit: list[AuditEntry] = field(default_factory=list)
    unreadable: set[tuple[str, str]] = field(default_factory=set)
    """Rows that make no sense, by table and name."""
    _tokens: "count[int]" = field(default_factory=lambda: count(1))

    def next_token(self) -> Token:
        """Return a token higher than every one before."""
        return Token(next(self._tokens))

    def run(self, run: RunId) -> Run:
        """Return the run, or raise `NotFound`."""
        if run not in self.runs:
            raise NotFound(f"there is no run {run}", run=run)
        self.require_readable("run", run, run=run)
        return self.runs[run]

    def shard(self, run: RunId, key: ShardKey) -> Shard:
        """Return the shard, or raise `NotFound`."""
        if (run, key) not in self.shards:
            raise NotFound(f"there is no shard {key} of run {run}", run=run, shard=key)
        self.require_readable("shard", key, run=run, shard=key)
        return self.shards[run, key]

    def of_run(self, run: RunId) -> list[Shard]:
        """Return the run's shards, by key."""
        return [self.shard(*place) for place in sorted(self.shards) if place[0] == run]

    def require_readable(self, table: str, name: str, **facts: str) -> None:
        """Raise `StateUnreadable` if a test wants the row to make no sense."""
        if (table, name) in self.unreadable:
            raise StateUnreadable(f"{table} {name} cannot be read", table=table, **facts)

    def note_act(
        self, act: Act, by: Actor, *, sync: str | None, run: RunId | None = None, subject: str | None = None, **facts: Any
    ) -> None:
        """Note what somebody has done."""
        number, at = len(self.audit) + 1, self.clock.now()
        entry = AuditEntry(id=number, at=at, act=act, by=by, sync=sync, run=run, subject=subject, facts=facts)
        self.audit.append(entry)

    def rival(self, request_key: str, run: RunId) -> Lease | None:
        """Return the lease of another run that has not run out."""
        lease = self.leases.get(request_key)
        return lease if lease and lease.owner != run and lease.expires_at > self.clock.now() else None

    def take_flight(self, run: Run, ttl: timedelta | None = None) -> None:
        """Give the run the flight of its request, or raise `FlightTaken`; `Fenced` if it is over for good."""
        if self.called_off.get(run.id) == self.clearings.get(run.id, 0):
            raise CalledOff(f"run {run.id} is over", run=run.id)
        if rival := self.rival(run.request_key, run.id):
            raise FlightTaken(f"run {rival.owner} of the same request is alive", owner=rival.owner, expires_at=rival.expires_at)
        if run.failure is not None and takeover.is_taken_over(run):
            raise Fenced(f"run {run.id} is over: {run.failure.message}", run=run.id)
        ttl = self.lease_ttls[run.id] if ttl is None else ttl
        held = self.leases.get(run.request_key)
        kept_until = held.kept_until if held and held.owner == run.id else None
        expires_at = self.clock.now() + ttl
        lasts_until = max(expires_at, kept_until or expires_at)
        self.leases[run.request_key] = Lease(run.id, lasts_until, kept_until, seen_at=self.clock.now())

    def hold_out(self, run: RunId, silence: timedelta) -> None:
        """Keep the flight of a run for so long, whatever is said of it meanwhile."""
        key = self.run(run).request_key
        until = self.clock.now() + silence
        held = self.leases[key]
        self.leases[key] = Lease(run, max(held.expires_at, until), max(held.kept_until or until, until), held.seen_at)

    def still_run(self, run: RunId, token: Token, ttl: timedelta | None = None) -> None:
        """Extend the flight, or raise `Fenced` if it or the run is somebody else's."""
        present = self.run(run)
        self._still(present, present.token, token, ttl)

    def keep(self, run: RunId) -> bool:
        """Give the flight back unless the run runs; return whether it does."""
        present = self.run(run)
        if present.status is RunStatus.RUNNING:
            return True
        del self.leases[present.request_key]
        return False

    def still_shard(self, run: RunId, key: ShardKey, token: Token, ttl: timedelta | None = None) -> None:
        """Extend the flight, or raise `Fenced` if it or the shard is somebody else's."""
        present = self.run(run)
        self._still(present, self.shard(run, key).token, token, ttl)

    def tell(self, run: RunId, subject: Subject, name: str, event: str, status: str, **facts: JsonValue) -> None:
        """Append an event to the run's journal."""
        journal = self.journals.setdefault(run, [])
        told = {"run": run, "seq": len(journal) + 1, "at": self.clock.now(), "subject": subject, "name": name}
        journal.append(JournalEvent(**told, event=event, status=status, facts=facts))

    def put(self, pointer: Pointer) -> None:
        """Record a pointer under its ref, unless it is there with the same bytes."""
        held = self.pointers.get(pointer.ref)
        if held is None or (held.key, held.sha256) != (pointer.key, pointer.sha256):
            self.pointers[pointer.ref] = pointer

    def require_place(self, ref: ArtifactRef) -> None:
        """Raise `NotFound` unless the ref's run and shard are there."""
        self.run(ref.run)
        if ref.shard is not None:
            self.shard(ref.run, ref.shard)

    def _still(self, run: Run, held: Token, token: Token, ttl: timedelta | None) -> None:
        if rival := self.rival(run.request_key, run.id):
            raise Fenced(f"run {rival.owner} works on the request of run {run.id} now", owner=rival.owner)
        if held != token:
            raise Fenced(f"somebody holds token {held}, not {token}", token=held)
        self.take_flight(run, ttl)
