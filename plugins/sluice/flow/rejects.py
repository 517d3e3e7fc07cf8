"""What could not be taken in: a chunk's rejects come in and are kept, as lines and as letters; a run's go out, one at a time.

Of a million rejects no more than those of one chunk are in memory at a time.
"""

from collections import defaultdict
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import Final

import structlog

from sluice import log_events
from sluice.errors import ArtifactCorrupt
from sluice.flow.damage import intact, note
from sluice.flow.rows_artifacts import rejects_artifacts, rows_artifacts
from sluice.mapping.columns import keys_of
from sluice.mapping.reject_lines import read, written
from sluice.model.artifact import ArtifactKind, ArtifactRef, Pointer
from sluice.model.base import ShardKey
from sluice.model.reject import Counted, DeadLetterLines, RawAddress, Reject, Seen, identity_of
from sluice.model.run import Mode, Run
from sluice.model.shard import Shard
from sluice.ports import Services

log: Final = structlog.get_logger()


def keep_rejects(services: Services, run: Run, shard: Shard, raw: Pointer, rejects: Sequence[Reject], *, variant: str) -> None:
    """Store a chunk's rejects for as long as the chunk itself, each as a dead letter. Doing so again changes nothing."""
    if not rejects:
        return
    ref = ArtifactRef(
        sync=run.sync, run=run.id, kind=ArtifactKind.REJECTS, shard=raw.ref.shard, seq=raw.ref.seq, variant=variant
    )
    pointer = services.artifacts.put(ref, written(rejects), records=len(rejects), expires_at=raw.expires_at)
    log.info(log_events.ARTIFACT_STORED, artifact=pointer.key, kind=str(ref.kind), bytes=pointer.bytes, records=len(rejects))
    services.pointers.add(pointer, shard.token)
    services.dead_letters.record(run, shard, rejects, pointer.key)


def keep_new_rejects(
    services: Services, run: Run, shard: Shard, raw: Pointer, rejects: Sequence[Reject], *, variant: str
) -> None:
    """Store those of a chunk's rejects that are not kept yet."""
    known: set[RawAddress] = set()
    for pointer in rejects_artifacts(services, run.id, {shard.key}) if rejects else ():
        if pointer.ref.seq == raw.ref.seq:
            with intact(services, pointer, run) as lines:
                known.update(reject.address for reject in read(lines))
    keep_rejects(services, run, shard, raw, [reject for reject in rejects if reject.address not in known], variant=variant)


def rejects_of(services: Services, run: Run, shards: Container[ShardKey]) -> Iterator[Reject]:
    """Yield what could not be taken in of some shards; raise `RedoNeeded` where it was lost."""
    for pointer in rejects_artifacts(services, run.id, shards):
        with intact(services, pointer, run) as lines:
            yield from read(lines)


def note_repeated(services: Services, run: Run, shards: Container[ShardKey], moved: Callable[[], None]) -> None:
    """Let objects that the run has rejected count where it has met them, and no more where they stood among the rest before."""

    def seen() -> Iterator[Seen]:
        for pointer in own:
            with intact(services, pointer, run) as lines:
                for line, reject in enumerate(read(lines)):
                    seen_here = Seen(reject.identity, reject.raw_hash, pointer.key, line, reject.address)
                    yield seen_here
                    if run.mode is Mode.REDRIVE and reject.key is not None:
                        # It may be that nobody could name it before.
                        yield seen_here._replace(identity=reject.model_copy(update={"key": None}).identity)
            moved()

    own = rejects_artifacts(services, run.id, shards)
    if own:
        _settle(services, run, seen, {pointer.key for pointer in own}, moved)


def close_letters(services: Services, run: Run, shards: Container[ShardKey], moved: Callable[[], None]) -> None:
    """Close the dead letters of objects that came right, whether that changed them or not; most syncs have none open."""
    delivered = [pointer for (shard, _), pointer in rows_artifacts(services, run.id).items() if shard in shards]
    if not delivered:
        return
    if open_keys := services.dead_letters.open_keys(run.sync):
        rejected = {reject.key for reject in rejects_of(services, run, shards) if reject.key in open_keys}
        for pointer in delivered:
            with intact(services, pointer, run) as rows:
                right = (keys_of(rows) & open_keys) - rejected
            if right:
                services.dead_letters.close(run, sorted(right))
            moved()

    def seen() -> Iterator[Seen]:
        for pointer in delivered:
            with intact(services, pointer, run) as rows:
                yield from (Seen(identity_of(key)) for key in keys_of(rows))
            moved()

    own = {pointer.key for pointer in rejects_artifacts(services, run.id, shards)}
    _settle(services, run, seen, own, moved)


def _settle(
    services: Services,
    run: Run,
    seen: Callable[[], Iterator[Seen]],
    own: Container[str],
    moved: Callable[[], None],
) -> None:
    """Hold what was seen against what stands in the artifacts of others; most syncs have nothing there."""
    others = [rest for rest in services.dead_letters.lines(run.sync) if rest.artifact not in own]
    if others:
        services.dead_letters.settle(run, seen(), _counted(services, others, moved))


def _counted(services: Services, others: Sequence[DeadLetterLines], moved: Callable[[], None]) -> Iterator[Counted]:
    """Yield the objects that stand in the artifacts of others; those of a lost artifact stay where they are counted."""
    by_artifact: Mapping[str, list[DeadLetterLines]] = defaultdict(list)
    for rest in others:
        by_artifact[rest.artifact].append(rest)
    for artifact, pointer in services.pointers.named(list(by_artifact)).items():
        try:
            lines = services.artifacts.get(pointer)
        except ArtifactCorrupt as error:
            note(services, pointer, error)
            continue
        for line, reject in enumerate(read(lines)):
            for rest in by_artifact[artifact]:
                if rest.holds(line):
                    yield Counted(rest.id, line, reject.identity, reject.raw_hash)
        moved()
