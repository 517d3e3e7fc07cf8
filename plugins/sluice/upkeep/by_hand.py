"""Acts by hand: a run, a shard or a lease comes in, and who acts and why; how it stands then goes out.

Each is noted in the audit trail with the person and the reason, which is never empty. The same act again changes nothing.
"""

from contextlib import suppress
from typing import Final

import structlog

from sluice import log_events
from sluice.errors import IllegalTransition, SpecInvalid, TargetUnavailable
from sluice.model.audit import Act, Actor
from sluice.model.base import RunId, ShardKey
from sluice.model.lease import Lease
from sluice.model.ledger import Publication
from sluice.model.lifecycle import FINAL_RUN_STATUSES, RunStatus, Step
from sluice.model.run import Run
from sluice.model.shard import Shard
from sluice.ports import Services

log: Final = structlog.get_logger()


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


def cancel_run(services: Services, run: RunId, by: Actor) -> Run:
    """End a run that is not over, whatever it is at: nothing of it is published. Its DagRun ends where Airflow can be asked.

    Raises `IllegalTransition` if it is published by now: then its publication can be taken back.
    """
    present = services.runs.get(run)
    if present.status not in FINAL_RUN_STATUSES and (publication := _published(services, present)) is not None:
        raise IllegalTransition(
            f"run {run} is published already, as publication {publication.id}: let it end, and take that back "
            f"(`sluice rollback {publication.id}`)"
        )
    cancelled = services.by_hand.cancel_run(run, by.with_reason())
    _tell(Act.CANCEL_RUN, by, run=run)
    if cancelled.status is RunStatus.CANCELLED:
        services.dag_runs.end(cancelled)
    return cancelled


def release_lease(services: Services, key: str, by: Actor) -> Lease | None:
    """Take the flight of a request back from a run that is dead; None if nobody has it. A run that is alive keeps it."""
    released = services.by_hand.release_lease(key, lambda stage: services.policy(stage).heartbeat, by.with_reason())
    if released is not None:
        _tell(Act.RELEASE_LEASE, by, run=released.owner, key=key)
    return released


def _published(services: Services, run: Run) -> Publication | None:
    """Return the publication of a run that has come so far; a target that cannot be asked tells of none."""
    review = services.reviews.latest(run.id) if run.step in (Step.PUBLISH, Step.SETTLE) else None
    if review is not None:
        with suppress(TargetUnavailable, SpecInvalid):
            return services.ledger(services.spec(run.sync)).publication_of(review.id)
    return None


def _tell(act: Act, by: Actor, **about: str) -> None:
    log.info(log_events.ACTED_BY_HAND, act=act.value, by=by.name, via=by.via, **about)
