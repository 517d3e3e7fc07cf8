"""What a person decides by: the diffing session of a run comes in; changes, samples, profile, drift and shard counts go out."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Final

from sluice.checks.drift import drifts_between
from sluice.errors import NotFound, StateTooNew, StateUnreadable
from sluice.flow.damage import intact
from sluice.flow.entering import Entry
from sluice.flow.packet import evidence_of
from sluice.flow.rows_artifacts import rows_artifacts
from sluice.model.base import ShardKey
from sluice.model.evidence import Drift, Evidence, Profile, ShardCount
from sluice.model.run import Mode, Run
from sluice.model.shard import Shard
from sluice.model.spec import SyncSpec
from sluice.ports import Diffing, Services

_FULL_RUNS: Final = 10
"""What a shard delivered is laid beside what it delivered in so many runs."""
_MOST_SHARDS: Final = 50
_LOOKED_BACK: Final = 20
"""Behind more rollbacks than that in a row there is nothing to compare with."""


def gather(services: Services, diffing: Diffing, entry: Entry, spec: SyncSpec, arrived: Mapping[ShardKey, Shard]) -> Evidence:
    """Return what there is to say about the comparison the session has made; raise `RedoNeeded` where rows were lost."""
    inspecting = diffing.inspecting()
    artifacts = rows_artifacts(services, entry.run.id)
    for shard, seq in inspecting.needed():
        with intact(services, artifacts[shard, seq], entry.run) as rows:
            inspecting.load_rows(shard, seq, rows)
        entry.pulse.moved()
    changes, samples = inspecting.differences()
    entry.pulse.moved()
    baseline = _baseline(services, spec)
    profile = inspecting.profile(baseline, [expected.field for expected in spec.review.block.expect])
    entry.pulse.moved()
    return Evidence(
        changes=changes,
        samples=samples,
        profile=profile,
        baseline=baseline,
        drifts=_telling(drifts_between(profile, baseline), spec),
        shards=_shard_counts(services, entry.run, arrived),
        shards_in_all=len(arrived),
    )


def _telling(drifts: Sequence[Drift], spec: SyncSpec) -> tuple[Drift, ...]:
    """Return the drifts without those of version and watermark: these grow with every change, and tell nothing."""
    growing = (spec.object.version, *(spec.watermark.fields if spec.watermark else ()))
    return tuple(drift for drift in drifts if drift.field not in growing)


def _baseline(services: Services, spec: SyncSpec) -> Profile | None:
    """Return what the sync's last publication left; None where nobody can say any more.

    A rollback says nothing of the supplier: what counts is the last one that was neither taken back nor took another back.
    """
    published = services.ledger(spec).publications(spec.sync, _LOOKED_BACK)
    last = next((made for made in published if made.undoes is None and made.rolled_back_by is None), None)
    if last is None:
        return None
    try:
        kept = evidence_of(services, services.reviews.get(last.review))
    except (NotFound, StateTooNew, StateUnreadable):
        return None
    return None if kept is None else kept.profile


def _shard_counts(services: Services, run: Run, arrived: Mapping[ShardKey, Shard]) -> tuple[ShardCount, ...]:
    """Return what the shards delivered, those first that are furthest from their median; a part of a run has no history."""
    is_whole = run.mode is Mode.FULL and run.window is None
    before = services.shards.delivered(run.sync, _FULL_RUNS) if is_whole else {}
    counts = [ShardCount(shard=key, objects=shard.records, before=before.get(key, ())) for key, shard in arrived.items()]
    return tuple(sorted(counts, key=lambda count: (-_distance(count), count.shard))[:_MOST_SHARDS])


def _distance(count: ShardCount) -> float:
    """Return how far a shard is from its median, as a share of it."""
    if not count.before:
        return 0.0
    usual = median(count.before)
    return abs(count.objects - usual) / max(usual, 1)
