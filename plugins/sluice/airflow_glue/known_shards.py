"""What the shards of a run were in; the shards that the form of the next run can offer to choose from, out.

Shards that a supplier lists are known when a run has planned them: they are kept in an Airflow Variable, since a form is made
where DAG files are parsed, which may be another machine, without a database of ours. See docs/adr/021.
"""

import json
from collections.abc import Sequence
from typing import Final

import structlog
from airflow.sdk import Variable, get_parsing_context

from sluice import log_events
from sluice.model.base import ShardKey
from sluice.model.run import SYNC_MODES, Run
from sluice.model.sharding import ListedShards, ShardingSpec
from sluice.model.spec import SyncSpec

log: Final = structlog.get_logger()

MOST_LISTED: Final = 200
"""More shards than that are no list to choose from."""


def shards_to_choose_from(spec: SyncSpec) -> tuple[ShardKey, ...]:
    """Return the shards the form lists: those that the spec declares, or a supplier listed last; none if they are many."""
    if spec.sharding is None:
        return ()
    if spec.sharding.number is not None:
        return spec.sharding.shard_keys if spec.sharding.number <= MOST_LISTED else ()
    # A task runs with what its form was filled in with, and needs no choice: only the form itself is worth the question.
    is_form = get_parsing_context().dag_id is None
    return _remembered(spec.sync) if is_form and _is_remembered(spec.sharding) else ()


def remember_shards(spec: SyncSpec, run: Run, shards: Sequence[ShardKey]) -> None:
    """Keep the shards of a run that has looked for all of them. Nothing fails for it."""
    asked_for_all = run.mode in SYNC_MODES and not run.shards and run.window is None
    if not asked_for_all or not _is_remembered(spec.sharding):
        return
    known = tuple(sorted(shards)) if len(shards) <= MOST_LISTED else ()
    if known == _remembered(spec.sync):
        return
    try:
        Variable.set(_variable(spec.sync), json.dumps(known), f"The shards of {spec.sync} that its form offers; kept by Sluice")
    except Exception:
        log.exception(log_events.SHARDS_UNREMEMBERED)


def _is_remembered(sharding: ShardingSpec | None) -> bool:
    """Whether shards come and go now and then. Where each run has others, each would make a new version of the DAG."""
    return isinstance(sharding, ListedShards)


def _remembered(sync: str) -> tuple[ShardKey, ...]:
    """Return what the Variable holds, unless it is nothing that Sluice has written; none where it cannot be read."""
    try:
        kept = json.loads(Variable.get(_variable(sync), default="[]"))
    except Exception:
        log.exception(log_events.SHARDS_UNREMEMBERED)
        return ()
    if not isinstance(kept, list) or len(kept) > MOST_LISTED:
        return ()
    return tuple(ShardKey(key) for key in kept if isinstance(key, str))


def _variable(sync: str) -> str:
    return f"sluice_shards_{sync}"
