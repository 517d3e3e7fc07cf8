"""Acts by hand: a run, a shard or a lease comes in, and who acts and why; how it stands then goes out.

Each is noted in the audit trail with the person and the reason, which is never empty. The same act again changes nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import structlog

from sluice import log_events
from sluice.errors import IllegalTransition, SluiceError
from sluice.model.audit import Act, Actor
from sluice.model.base import RunId, ShardKey
from sluice.model.lease import Lease
from sluice.model.ledger import Publication
from sluice.model.lifecycle import FINAL_RUN_STATUSES, RunStatus, Step
from sluice.model.run import Run
from sluice.model.shard import Shard
from sluice.ports import Ledger, Services

log: Final = structlog.get_logger()


@dataclass(frozen=True)
class Cancelled:
    """A run that is over, and what of it was published before anybody could stop it."""

    run: Run
    publication: Publication | None = None
    unknown: str | None = None
    """Why it cannot be told whether anything was."""


def reset_shard(services: Services, run: RunId, shard: ShardKey, by: Actor) -> Shard:
    """Let a shard begin again from its first page; who works on it begins again at once."""
    done = services.by_hand.reset_shard(run, shard, by.with_reason())
    _tell(Act.RESET_SHARD, by, run=run, shard=shard)
    return done


def skip_shard(services: Services, run: RunId, shard: ShardKey, by: Actor) -> Shard:
    """Let a run be published without a shard; nothing is deleted for its absence."""
    done = services.by_hand.skip_shard(run, shard, by.with_reason())
    _tell(Act.SKIP_SHARD, by, run=run, shard=shard)
    return done


def stop_shard(services: Services, run: RunId, shard: ShardKey, by: Actor) -> Shard:
    """Let a shard fail where it stands, and be left alone; what has come of it stays."""
    done = services.by_hand.stop_shard(run, shard, by.with_reason())
    _tell(Act.STOP_SHARD, by, run=run, shard=shard)
    return done


def cancel_run(services: Services, run: RunId, by: Actor, ledger_of: Callable[[Run], Ledger]) -> Cancelled:
    """End a run that is not over, whatever it is at: nothing of it is published. Its DagRun ends where Airflow can be asked.

    Raises `IllegalTransition` if it is published by now: then its publication can be taken back. `ledger_of` says where a run
    publishes to; that this cannot be asked is no reason to let the run go on.
    """
    present = services.runs.get(run)
    is_over = present.status in FINAL_RUN_STATUSES
    if not is_over and (publication := _published(services, present, ledger_of)[0]) is not None:
        raise IllegalTransition(
            f"run {run} is published already, as publication {publication.id}: let it end, and take that back "
            f"(`sluice rollback {publication.id}`)"
        )
    cancelled = services.by_hand.cancel_run(run, by.with_reason())
    _tell(Act.CANCEL_RUN, by, run=run)
    if cancelled.status is RunStatus.CANCELLED:
        services.dag_runs.end(cancelled)
    # Asked once more: the run may have published in between.
    return Cancelled(cancelled, *_published(services, cancelled, ledger_of))


def release_lease(services: Services, key: str, by: Actor) -> Lease | None:
    """Take the flight of a request back from a run that is dead; None if nobody has it. A run that is alive keeps it."""
    released = services.by_hand.release_lease(key, lambda stage: services.policy(stage).heartbeat, by.with_reason())
    if released is not None:
        _tell(Act.RELEASE_LEASE, by, run=released.owner, key=key)
    return released


def _published(services: Services, run: Run, ledger_of: Callable[[Run], Ledger]) -> tuple[Publication | None, str | None]:
    """Return the publication of a run that has come so far, and why it cannot be told whether there is one."""
    review = services.reviews.latest(run.id) if run.step in (Step.PUBLISH, Step.SETTLE) else None
    if review is None:
        return None, None
    try:
        return ledger_of(run).publication_of(review.id), None
    except SluiceError as error:
        return None, error.message


def _tell(act: Act, by: Actor, **about: str) -> None:
    log.info(log_events.ACTED_BY_HAND, act=act.value, by=by.name, via=by.via, **about)
