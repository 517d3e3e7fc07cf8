"""Rejects come in; the lines of their artifact, compressed, go out, and the other way round, one at a time."""

import io
from collections.abc import Iterable, Iterator
from typing import Final

import xxhash
import zstandard
from msgspec import Raw
from pydantic import ValidationError

from sluice.errors import ArtifactCorrupt
from sluice.model.reject import Reject

_MAGIC: Final = zstandard.FRAME_HEADER
_LEVEL: Final = 3


def bytes_hash(record: Raw | bytes) -> str:
    """Return what tells a record's bytes from others, however they are read."""
    return xxhash.xxh3_128_hexdigest(record)


def written(rejects: Iterable[Reject]) -> bytes:
    """Return the artifact of some rejects, a line each."""
    lines = b"".join(reject.model_dump_json().encode() + b"\n" for reject in rejects)
    return zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True).compress(lines)


def read(data: bytes) -> Iterator[Reject]:
    """Yield the rejects of an artifact; older releases did not compress it. Raises `ArtifactCorrupt`."""
    stream: io.BufferedIOBase = io.BytesIO(data)
    if data.startswith(_MAGIC):
        stream = io.BufferedReader(zstandard.ZstdDecompressor().stream_reader(data))
    try:
        for line in stream:
            yield Reject.model_validate_json(line)
    except (ValidationError, zstandard.ZstdError) as exc:
        raise ArtifactCorrupt("the lines of a rejects artifact cannot be read") from exc
