"""Short names for bytes, and what an approval is of: a run's staged set and diff under its spec, in one sha-256."""

import hashlib
from collections.abc import Iterable

import xxhash

from sluice.model.artifact import Pointer
from sluice.model.run import Run


def content_digest(data: bytes) -> str:
    """Return what sets the artifact of these bytes apart from others of its ref.

    So a worker that lost its run or shard does not overwrite what its successor has committed; the sha-256 of the pointer would
    tell if it did.
    """
    return xxhash.xxh3_64_hexdigest(data)


def review_digest(run: Run, diff: Pointer, staged: Iterable[Pointer], shards_failed: int, told: Iterable[str]) -> str:
    """Return the digest of what was `staged` and its diff, under a spec whose policy is part of it, and of what is told.

    That is the reasons, which are what checks have found, and what would be done to the table itself.

    The same diff of more shards is another one: a shard that came in late and changed nothing has been reviewed then, too.
    """
    parts = [run.id, run.spec_hash, str(run.transformer_version), diff.sha256, str(shards_failed), *told]
    parts += [f"{pointer.ref.kind} {pointer.ref.shard} {pointer.ref.seq} {pointer.sha256}" for pointer in staged]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
