"""What people do by hand to runs, shards and leases, and the trail of all that they and policy have done."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Protocol

from pydantic import JsonValue

from sluice.model.audit import Act, Actor, AuditEntry
from sluice.model.base import RunId, ShardKey
from sluice.model.lease import Lease
from sluice.model.run import Run
from sluice.model.shard import Shard


class AuditStore(Protocol):
    """The audit trail. What stores do for people and policy, they note by themselves, in the same transaction."""

    def note(self, act: Act, by: Actor, sync: str | None, facts: Mapping[str, JsonValue], run: RunId | None = None) -> None:
        """Note an act that no single transaction has done, or that asks for a run: then that one, as it begins, notes none."""

    def of(self, sync: str | None, run: RunId | None, limit: int) -> list[AuditEntry]:
        """Return the newest entries first; those of a sync or a run alone, where one is given."""


class ByHandStore(Protocol):
    """Acts of people upon runs, shards and leases.

    Each is one transaction, with its event and its entry in the audit trail; the same act again changes nothing, and leaves no
    second entry. `guard.by_hand` says what may be done: what may not raises `IllegalTransition`, and says what may instead.
    Raises `NotFound` for what is not there.
    """

    def reset_shard(self, run: RunId, shard: ShardKey, by: Actor) -> Shard:
        """Let the shard begin again from its first page, `pending`, in a new epoch; what was made of it counts no more."""

    def skip_shard(self, run: RunId, shard: ShardKey, by: Actor) -> Shard:
        """Let the run do without the shard."""

    def stop_shard(self, run: RunId, shard: ShardKey, by: Actor) -> Shard:
        """Let the shard fail where it stands; nobody claims it until it is reset, or its DagRun is cleared."""

    def cancel_run(self, run: RunId, by: Actor) -> Run:
        """End the run, reject its reviews that wait, and release its flight; nobody enters it until its DagRun is cleared.

        One that is cancelled already, and whose DagRun was cleared since, is ended once more.
        """

    def leases(self) -> list[Lease]:
        """Return all leases, by sync and key."""

    def release_lease(self, key: str, heartbeat: Callable[[str], timedelta], by: Actor) -> Lease | None:
        """Take a request's flight back from a run that works no more; whoever works in it all the same is fenced.

        Returns the lease as it was; None if nobody has the flight. Refused if its owner has shown life within two of the
        heartbeats that its stage has.
        """

    def note_clearing(self, run: RunId, times: int) -> None:
        """Note how often the run's DagRun has been cleared; what was ended by hand before its last clearing may go on."""


class DagRuns(Protocol):
    """The DagRuns of runs that a person has ended."""

    def end(self, run: Run) -> bool:
        """Let Airflow end the DagRun of a run that was cancelled; return whether it has ended.

        Never raises: a DagRun that is left to itself enters no step of its run any more.
        """
