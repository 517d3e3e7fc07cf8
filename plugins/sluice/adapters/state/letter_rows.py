"""Rows of dead letters, and of the rest beside them, come in; what they stand for goes out."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from psycopg.rows import DictRow
from psycopg.types.multirange import Int4Multirange
from psycopg.types.range import Int4Range

from sluice.adapters.state.columns import storable
from sluice.model.base import ObjectKey, RunId, ShardKey
from sluice.model.reject import Cause, DeadLetter, DeadLetterLines, DeadLetterStatus, RawAddress, Reject
from sluice.model.run import Redrive

_LARGEST: Final = 2**63 - 1
"""What a column of numbers holds: no letter has a larger one."""


def dead_letter_from_row(row: DictRow) -> DeadLetter:
    """Return the dead letter a row stands for."""
    return DeadLetter(
        id=row["id"],
        sync=row["sync"],
        run=RunId(row["run"]),
        shard=ShardKey(row["shard"]),
        reject=Reject(
            key=ObjectKey(row["object_key"]) if row["object_key"] is not None else None,
            address=RawAddress(artifact=row["raw_artifact"], frame=row["raw_frame"], index=row["raw_index"]),
            error=row["error"],
            field=row["field"],
            message=row["message"],
            raw_hash=row["raw_hash"].hex() if row["raw_hash"] is not None else None,
        ),
        transformer_version=row["transformer_version"],
        attempts=row["attempts"],
        status=DeadLetterStatus(row["status"]),
        first_seen=row["first_seen"],
        last_seen=row["last_seen"],
        delivered_at=row["delivered_at"] or row["first_seen"],
        redriven_by=tuple(map(RunId, row["redriven_by"])),
        ended_at=row["ended_at"],
        ended_by=row["ended_by"],
        reason=row["reason"],
    )


def lines_from_row(row: DictRow) -> DeadLetterLines:
    """Return the objects without a letter of their own that a row stands for."""
    return DeadLetterLines(
        id=row["id"],
        sync=row["sync"],
        cause=Cause(error=row["error"], field=row["field"]),
        message=row["message"],
        run=RunId(row["run"]),
        shard=ShardKey(row["shard"]),
        artifact=row["artifact"],
        raw_artifact=row["raw_artifact"],
        lines=_spans(row["lines"]),
        taken=_spans(row.get("taken_by_run") or ()),
        status=DeadLetterStatus(row["status"]),
        delivered_at=row["delivered_at"],
        seen_at=row["seen_at"],
    )


def selection(sync: str, redrive: Redrive) -> dict[str, Any]:
    """Return what the statements that select letters are told."""
    cause = Cause.named(storable(redrive.cause)) if redrive.cause is not None else None
    return {
        "sync": sync,
        "ids": [min(letter, _LARGEST) for letter in redrive.letters],
        "error": cause.error if cause is not None else None,
        "field": cause.field if cause is not None else None,
    }


def hash_bytes(raw_hash: str | None) -> bytes | None:
    """Return a hash as its column holds it."""
    return None if raw_hash is None else bytes.fromhex(raw_hash)


def multirange(lines: Iterable[int]) -> Int4Multirange:
    """Return lines, in order, as the spans that they are."""
    spans: list[list[int]] = []
    for line in lines:
        if spans and spans[-1][1] == line:
            spans[-1][1] = line + 1
        else:
            spans.append([line, line + 1])
    return Int4Multirange(Int4Range(start, end) for start, end in spans)


def _spans(found: Sequence[Any]) -> tuple[tuple[int, int], ...]:
    return tuple((span.lower, span.upper) for span in found)
