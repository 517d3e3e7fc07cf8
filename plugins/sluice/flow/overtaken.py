"""Dead letters that a later delivery has overtaken: a redrive in; the objects that it must leave alone out.

What a redrive takes up is as old as the run that fetched it. Where an object says its version, the ledger tells which delivery
is the newer one. Where it does not, the time of the runs does: what a later run has published of the object stays. Nor is an
object touched whose letter has ended since it was taken up: it came right in a later delivery, or a person has given it up.
An object without a letter of its own, or whose letter has no key, is known by its bytes: they are read where there is doubt.
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from sluice.errors import ArtifactCorrupt, NotFound, StateUnreadable
from sluice.flow.damage import intact
from sluice.flow.record_hashes import record_hashes
from sluice.flow.rows_artifacts import rows_artifacts
from sluice.mapping.places import Place, places_by_key
from sluice.mapping.reject_lines import read
from sluice.model.artifact import ArtifactKind
from sluice.model.base import ObjectKey, RunId, ShardKey
from sluice.model.reject import DeadLetter, DeadLetterLines, DeadLetterStatus
from sluice.model.run import Mode, Run
from sluice.model.spec import SyncSpec
from sluice.ports import Services


def overtaken(services: Services, run: Run, spec: SyncSpec, shards: Container[ShardKey]) -> list[ObjectKey]:
    """Return the objects that a redrive leaves alone, in key order; other runs leave none."""
    return sorted(_Taken(services, run, spec).overtaken(shards)) if run.mode is Mode.REDRIVE else []


def close_redriven(services: Services, run: Run, spec: SyncSpec, shards: set[ShardKey]) -> None:
    """Close the dead letters that a redrive has taken up in these shards and not rejected again."""
    late = _Taken(services, run, spec).overtaken(shards)
    hashes = sorted({raw_hash for raw_hash in late.values() if raw_hash is not None})
    services.redrives.close(run, sorted(shards), sorted(late), hashes)


class _Doubtful(NamedTuple):
    """An object of which something may be newer than what a redrive brings."""

    raw_hash: str | None
    published: datetime | None
    """When the run was admitted that has published it last; None: that does not count."""


class _Source(NamedTuple):
    """What a redrive has taken up of the same bytes."""

    delivered: datetime
    has_ended: bool


@dataclass
class _Taken:
    """What a redrive has taken up, and what has become of it since."""

    services: Services
    run: Run
    spec: SyncSpec
    letters: Sequence[DeadLetter] = ()
    rest: Sequence[DeadLetterLines] = ()
    admitted: dict[RunId, datetime | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.letters = self.services.redrives.taken(self.run.id)
        self.rest = self.services.redrives.taken_lines(self.run.id)

    def overtaken(self, shards: Container[ShardKey]) -> dict[ObjectKey, str | None]:
        """Return the objects to be left alone, each with the hash of its bytes where these tell which letter it is of."""
        named = {letter.reject.key: letter.delivered_at for letter in self.letters if letter.reject.key is not None}
        late: dict[ObjectKey, str | None] = {
            letter.reject.key: None for letter in self.letters if letter.reject.key is not None and self._has_ended(letter)
        }
        doubtful: dict[ObjectKey, _Doubtful] = {}
        for chunk, places in self._chunks(shards):
            published = self._published(places)
            late.update({key: None for key, at in published.items() if key in named and at > named[key]})
            unnamed = places.keys() - named.keys()
            looked_at = {key: places[key] for key in (unnamed if self._has_lost else unnamed & published.keys())}
            hashes = self._hashes(*chunk, looked_at)
            doubtful.update({key: _Doubtful(hashes.get(place), published.get(key)) for key, place in looked_at.items()})
        return {**late, **dict(self._late(doubtful))}

    def _late(self, doubtful: Mapping[ObjectKey, _Doubtful]) -> Iterator[tuple[ObjectKey, str | None]]:
        """Yield those of which something newer is published, or that have ended; what is not found has come again since."""
        sources = self._sources({each.raw_hash for each in doubtful.values()}) if doubtful else {}
        for key, each in doubtful.items():
            source = sources.get(each.raw_hash or "")
            has_ended = source.has_ended if source is not None else each.published is not None
            if has_ended or (source is not None and each.published is not None and each.published > source.delivered):
                yield key, each.raw_hash

    @property
    def _has_lost(self) -> bool:
        """Whether something has ended of what has no letter of its own, or one without a key."""
        letters = any(letter.reject.key is None and self._has_ended(letter) for letter in self.letters)
        return letters or any(rest.status is DeadLetterStatus.DISCARDED for rest in self.rest)

    def _has_ended(self, letter: DeadLetter) -> bool:
        return letter.status is not DeadLetterStatus.OPEN and letter.ended_by != self.run.id

    def _chunks(self, shards: Container[ShardKey]) -> Iterator[tuple[tuple[ShardKey, int], dict[ObjectKey, Place]]]:
        for (shard, seq), pointer in rows_artifacts(self.services, self.run.id).items():
            if shard in shards:
                with intact(self.services, pointer, self.run) as rows:
                    yield (shard, seq), places_by_key(rows)

    def _hashes(self, shard: ShardKey, seq: int, looked_at: Mapping[ObjectKey, Place]) -> dict[Place, str]:
        found: dict[Place, str] = {}
        for raw in self.services.pointers.of(self.run.id, ArtifactKind.RAW) if looked_at else ():
            if (raw.ref.shard, raw.ref.seq) == (shard, seq):
                found.update(record_hashes(self.services, self.run, self.spec, raw, set(looked_at.values())))
        return found

    def _published(self, keys: Mapping[ObjectKey, Place]) -> dict[ObjectKey, datetime]:
        """Return when the runs were admitted that have published these objects last, if the objects do not tell themselves."""
        if self.spec.object.version is not None:
            return {}
        known = self.services.ledger(self.spec).known(self.run.sync, sorted(keys))
        times = {key: self._admitted(held.last_changed_run) for key, held in known.items()}
        return {key: at for key, at in times.items() if at is not None}

    def _admitted(self, run: RunId) -> datetime | None:
        """Return when another run was admitted; None if that is so long ago that it is forgotten."""
        if run == self.run.id:
            return None
        if run not in self.admitted:
            try:
                self.admitted[run] = self.services.runs.get(run).created_at
            except (NotFound, StateUnreadable):
                self.admitted[run] = None
        return self.admitted[run]

    def _sources(self, wanted: Container[str | None]) -> dict[str, _Source]:
        """Return what was taken up of some bytes: the newest of it, and whether any of it has ended."""
        found: dict[str, _Source] = {}
        for raw_hash, source in (*self._of_letters(), *self._of_lines(wanted)):
            if raw_hash in wanted:
                held = found.get(raw_hash, source)
                found[raw_hash] = _Source(max(held.delivered, source.delivered), held.has_ended or source.has_ended)
        return found

    def _of_letters(self) -> Iterator[tuple[str, _Source]]:
        for letter in self.letters:
            if letter.reject.raw_hash is not None:
                yield letter.reject.raw_hash, _Source(letter.delivered_at, self._has_ended(letter))

    def _of_lines(self, wanted: Container[str | None]) -> Iterator[tuple[str, _Source]]:
        pointers = self.services.pointers.named(sorted({rest.artifact for rest in self.rest}))
        for rest in self.rest:
            try:
                lines = self.services.artifacts.get(pointers[rest.artifact])
            except (KeyError, ArtifactCorrupt):
                continue
            source = _Source(rest.delivered_at, rest.status is DeadLetterStatus.DISCARDED)
            for line, reject in enumerate(read(lines)):
                if reject.raw_hash is not None and reject.raw_hash in wanted and rest.holds(line):
                    yield reject.raw_hash, source
