"""Two versions of the transformation come in; what they make of the raw data of a run, and where that differs, goes out.

Nothing is written, and nobody's ledger is asked: both map the data in full, a chunk at a time.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sluice.errors import NotFound, RawDataGone, UsageInvalid
from sluice.mapping.mapper import MappedChunk, Mapper
from sluice.mapping.side_by_side import SideBySide, side_by_side
from sluice.model.artifact import ArtifactKind, Pointer
from sluice.model.base import ObjectKey, RunId, ShardKey
from sluice.model.comparison import Comparison, FieldDifference, RejectDifference, Sample
from sluice.model.evidence import cut
from sluice.model.lifecycle import RunStatus
from sluice.model.run import Mode, Run
from sluice.model.shard import some_of
from sluice.model.spec import SyncSpec
from sluice.ports import Services
from sluice.upkeep.tracing import pinned

_LOOKED_BACK = 1_000
"""A version that none of so many runs knew is not known any more."""


@dataclass(frozen=True)
class Asked:
    """Which versions are compared, over which raw data, and how many examples of each difference are wanted."""

    first: int
    second: int
    of: RunId | None = None
    shards: tuple[ShardKey, ...] = ()
    samples: int = 3


def compare(services: Services, spec: SyncSpec, asked: Asked, tell: Callable[[int, int], None]) -> Comparison:
    """Map the raw data of a run by both versions; `tell` hears after each chunk how many of how many are done.

    Raises `NotFound` for a version that nobody knows any more, or if there is no run, `UsageInvalid` for shards that the run
    does not have, and `RawDataGone` if what it has fetched of them is not kept.
    """
    if asked.first == asked.second:
        raise UsageInvalid(f"version {asked.first} would be compared with itself: name two")
    specs = (_meant(services, spec, asked.first), _meant(services, spec, asked.second))
    run = _run(services, spec, asked.of)
    raws = _raws(services, run, asked.shards)
    found = _Found(asked.samples)
    for done, raw in enumerate(raws, start=1):
        found.take(side_by_side(specs, _mapped(services, specs, raw)))
        tell(done, len(raws))
    return found.result(specs, run, raws)


def _meant(services: Services, spec: SyncSpec, version: int) -> SyncSpec:
    """Return what a version means: by the spec as it is, or else by the one that the newest run had which knew it."""
    if version in spec.versions:
        return spec.as_version(version)
    looked_at: set[str] = set()
    for run in services.runs.recent(spec.sync, [], _LOOKED_BACK):
        if run.spec_hash not in looked_at:
            looked_at.add(run.spec_hash)
            kept = pinned(services, run.id)
            if kept is not None and version in kept.versions:
                return kept.as_version(version)
    declared = " and ".join(map(str, spec.versions))
    raise NotFound(f"{spec.sync} declares version {declared}, and of no run is a spec kept that had version {version}")


def _run(services: Services, spec: SyncSpec, named: RunId | None) -> Run:
    """Return the run of that name, or the newest full one that succeeded."""
    if named is not None:
        run = services.runs.get(named)
        if run.sync != spec.sync:
            raise UsageInvalid(f"run {named} is one of {run.sync}, not of {spec.sync}")
        return run
    recent = services.runs.recent(spec.sync, [RunStatus.SUCCEEDED], _LOOKED_BACK)
    found = next((run for run in recent if run.mode is Mode.FULL and run.window is None and run.follows is None), None)
    if found is None:
        raise NotFound(f"no full run of {spec.sync} has succeeded: name one with --of whose raw data is to be compared")
    return found


def _raws(services: Services, run: Run, asked: Sequence[ShardKey]) -> list[Pointer]:
    """Return the raw chunks of the run's shards, or of those that are asked for."""
    shards = {shard.key: shard for shard in services.shards.of(run.worked_by)}
    if unknown := [key for key in asked if key not in shards]:
        raise UsageInvalid(f"run {run.id} has no shard {some_of(unknown)}; it has: {some_of(sorted(shards))}")
    wanted = [shard for key, shard in shards.items() if not asked or key in asked]
    raws = services.pointers.of(run.worked_by, ArtifactKind.RAW)
    kept = Counter(raw.ref.shard for raw in raws)
    if gone := [shard.key for shard in wanted if kept[shard.key] < shard.chunks]:
        raise RawDataGone(
            f"what run {run.id} has fetched of shard {some_of(gone)} is not kept any more: compare others (--shard)"
        )
    keys = {shard.key for shard in wanted}
    found = [raw for raw in raws if raw.ref.shard in keys]
    if not found:
        raise RawDataGone(f"run {run.id} has fetched nothing that could be compared: name another (--of)")
    return found


def _mapped(services: Services, specs: tuple[SyncSpec, SyncSpec], raw: Pointer) -> tuple[MappedChunk, MappedChunk]:
    """Return what both make of a chunk, whatever the ledger remembers of it."""
    data, shard = services.artifacts.get(raw), ShardKey(raw.ref.shard or "")

    def by(spec: SyncSpec) -> MappedChunk:
        mapper = Mapper(spec, function=services.transform(spec, shard))
        return mapper.map_chunk(services.codec.pages(data), raw.key, lambda _: {})

    return by(specs[0]), by(specs[1])


@dataclass
class _Found:
    """What has been found so far: numbers, and of each kind of difference some examples."""

    limit: int
    made_by_both: int = 0
    differing: int = 0
    rejected_by_both: int = 0
    fields: "Counter[str]" = field(default_factory=Counter)
    samples: dict[str, list[Sample]] = field(default_factory=lambda: defaultdict(list))
    rejects: "Counter[tuple[int, str, str | None]]" = field(default_factory=Counter)
    rejected: dict[tuple[int, str, str | None], list[tuple[ObjectKey | None, str]]] = field(
        default_factory=lambda: defaultdict(list)
    )

    def take(self, chunk: SideBySide) -> None:
        """Count the objects of one chunk."""
        self.made_by_both += chunk.made_by_both
        self.rejected_by_both += chunk.rejected_by_both
        self.differing += len(chunk.differing)
        for one in chunk.differing:
            self.fields.update(one.fields.keys())
            for name, (before, after) in one.fields.items():
                if len(self.samples[name]) < self.limit:
                    self.samples[name].append((one.key, cut(before), cut(after)))
        for side, rejects in enumerate(chunk.rejected_by_one):
            for reject in rejects:
                cause = (side, reject.error, reject.field)
                self.rejects[cause] += 1
                if len(self.rejected[cause]) < self.limit:
                    self.rejected[cause].append((reject.key, cut(reject.message) or ""))

    def result(self, specs: tuple[SyncSpec, SyncSpec], run: Run, raws: Sequence[Pointer]) -> Comparison:
        """Return all of it."""
        names = [[declared.name for declared in spec.fields] for spec in specs]
        versions = (specs[0].version, specs[1].version)
        return Comparison(
            sync=run.sync,
            first=versions[0],
            second=versions[1],
            run=run.id,
            shards=len({raw.ref.shard for raw in raws}),
            chunks=len(raws),
            objects=self.made_by_both + self.rejected_by_both + self.rejects.total(),
            equal=self.made_by_both - self.differing,
            differing=self.differing,
            rejected_by_both=self.rejected_by_both,
            only_in_first=tuple(name for name in names[0] if name not in names[1]),
            only_in_second=tuple(name for name in names[1] if name not in names[0]),
            fields=tuple(
                FieldDifference(field=name, objects=objects, samples=tuple(self.samples[name]))
                for name, objects in self.fields.most_common()
            ),
            rejects=tuple(
                RejectDifference(
                    version=versions[cause[0]],
                    error=cause[1],
                    field=cause[2],
                    objects=objects,
                    samples=tuple(self.rejected[cause]),
                )
                for cause, objects in self.rejects.most_common()
            ),
        )
