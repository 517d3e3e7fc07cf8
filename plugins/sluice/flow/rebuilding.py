"""Rebuilding: a row of state that no release can read comes in; the row goes out again, made of what artifacts know.

A run's row is made of what admission stored of it, a shard begins again from its first page, in a new epoch, and a review is
removed, so that it is made again. Whatever was under way then does what is missing: hence `RedoNeeded`. Rows of a newer release
are not touched: it can read them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import structlog
from pydantic import ValidationError

from sluice import log_events
from sluice.errors import RedoNeeded, StateUnreadable
from sluice.flow.pinned_spec import pinned_spec
from sluice.flow.shard_plans import all_shards, by_version, question_of
from sluice.model import metric
from sluice.model.artifact import ArtifactKind
from sluice.model.base import ReviewId, RunId, ShardKey
from sluice.model.run import Run
from sluice.model.shard import ShardPlan
from sluice.ports import Services

log: Final = structlog.get_logger()


@contextmanager
def rebuilding(services: Services) -> Iterator[None]:
    """Rebuild the row that the block could not read, and raise `RedoNeeded`; where that cannot be done, say why."""
    try:
        yield
    except StateUnreadable as error:
        rebuild(services, error)
        log.warning(log_events.STATE_ROW_REBUILT, **error.facts, message=error.message)
        services.metrics.count(metric.STATE_REBUILT, table=error.facts["table"])
        services.metrics.count(metric.REBUILDS, reason=metric.RebuildReason.ROW_UNREADABLE)
        raise RedoNeeded(f"{error.message}; it was written anew, and what is missing is done again", **error.facts) from error


def rebuild(services: Services, error: StateUnreadable) -> None:
    """Write anew what could not be read, or raise the error that says why not."""
    match error.facts:
        case {"table": "run", "run": run}:
            services.rebuilds.run(_admitted(services, run, error))
        case {"table": "shard", "run": run, "shard": shard}:
            services.rebuilds.shard(run, _plan(services, run, shard, error))
        case {"table": "review", "run": run, "review": review}:
            services.rebuilds.review(run, ReviewId(review))
        case _:
            raise error


def _admitted(services: Services, run: RunId, error: StateUnreadable) -> Run:
    pointers = services.pointers.of(run, ArtifactKind.RUN)
    if not pointers:
        raise StateUnreadable(f"{error.message}; no copy of it was stored when it was admitted", **error.facts) from error
    try:
        return Run.model_validate_json(services.artifacts.get(pointers[-1]))
    except ValidationError:
        raise StateUnreadable(f"{error.message}; nor can {pointers[-1].key}", **error.facts) from error


def _plan(services: Services, run: RunId, shard: ShardKey, error: StateUnreadable) -> ShardPlan:
    with rebuilding(services):
        stored = services.runs.get(run)
    spec = pinned_spec(services, stored)
    for plan in by_version(spec, all_shards(services, spec, question_of(services, stored))):
        if plan.key == shard:
            return plan
    raise StateUnreadable(f"{error.message}; nor does the pinned spec lead to it any more", **error.facts) from error
