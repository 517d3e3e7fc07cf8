"""Dead letters that a later delivery has overtaken: a redrive in; the objects that it must leave alone out.

What a redrive takes up is as old as the run that fetched it. Where an object says its version, the ledger tells which delivery
is the newer one. Where it does not, the time of the runs does: what a later run has published of the object stays. Nor is an
object touched whose letter has ended since it was taken up: it came right in a later delivery, or a person has given it up.
"""

from collections.abc import Container, Iterator, Sequence
from datetime import datetime

from sluice.errors import NotFound, StateUnreadable
from sluice.flow.damage import intact
from sluice.flow.rows_artifacts import rows_artifacts
from sluice.mapping.columns import keys_of
from sluice.model.base import ObjectKey, RunId, ShardKey
from sluice.model.run import Mode, Run
from sluice.model.spec import SyncSpec
from sluice.ports import Services


def overtaken(services: Services, run: Run, spec: SyncSpec, shards: Container[ShardKey]) -> list[ObjectKey]:
    """Return the objects that a redrive leaves alone, in key order; other runs leave none."""
    if run.mode is not Mode.REDRIVE:
        return []
    ended = set(services.redrives.overtaken(run.id))
    if spec.object.version is None:
        ended |= set(_outdated(services, run, spec, shards))
    return sorted(ended)


def _outdated(services: Services, run: Run, spec: SyncSpec, shards: Container[ShardKey]) -> Iterator[ObjectKey]:
    """Yield the objects of which a run that came later than their letters' bytes has published something."""
    taken = services.redrives.taken(run.id)
    admitted: dict[RunId, datetime | None] = {}
    for (shard, _), pointer in rows_artifacts(services, run.id).items():
        if shard not in shards:
            continue
        with intact(services, pointer, run) as rows:
            keys: Sequence[ObjectKey] = sorted(keys_of(rows))
        for key, held in services.ledger(spec).known(run.sync, keys).items():
            writer, delivered = held.last_changed_run, taken.get(key, taken.get(None))
            if writer == run.id or delivered is None:
                continue
            if writer not in admitted:
                admitted[writer] = _admitted(services, writer)
            if (at := admitted[writer]) is not None and at > delivered:
                yield key


def _admitted(services: Services, run: RunId) -> datetime | None:
    """Return when a run was admitted; None if that is so long ago that it is forgotten."""
    try:
        return services.runs.get(run).created_at
    except (NotFound, StateUnreadable):
        return None
