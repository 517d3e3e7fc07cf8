"""The layout of a raw chunk: in go the bodies of consecutive pages, out comes one artifact, and back.

    magic 7 bytes | layout version 1 | length of the index 4 | xxh64 of the index 8 | index | one zstd frame a page

Numbers are big-endian. The index is JSON: for each frame its offset behind the index, its stored length, and the length and the
xxh64 of the page. So a page can be read without its neighbours, no page can come out longer than declared, and damage anywhere
is noticed even where the sha-256 of the whole is not at hand.
"""

import struct
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
import xxhash
import zstandard

from sluice.errors import ArtifactCorrupt

MAGIC: Final = b"SLUICE\n"
LAYOUT: Final = 1
_PREFIX: Final = struct.Struct(">7sBIQ")


class _Frame(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    offset: int
    stored: int
    length: int
    xxh64: int


_INDEX: Final = msgspec.json.Decoder(list[_Frame])


class ZstdChunkCodec:
    """Packs pages into one artifact, one zstd frame a page."""

    def pack(self, pages: Sequence[bytes], level: int) -> bytes:
        """Return one artifact that holds the pages; `level` is zstd's."""
        compressor = zstandard.ZstdCompressor(level=level, write_content_size=True)
        frames: list[bytes] = []
        index: list[_Frame] = []
        offset = 0
        for page in pages:
            frame = compressor.compress(page)
            frames.append(frame)
            index.append(_Frame(offset, len(frame), len(page), xxhash.xxh64_intdigest(page)))
            offset += len(frame)
        head = msgspec.json.encode(index)
        return b"".join([_PREFIX.pack(MAGIC, LAYOUT, len(head), xxhash.xxh64_intdigest(head)), head, *frames])

    def pages(self, data: bytes) -> Iterator[bytes]:
        """Yield the pages, in order; raise `ArtifactCorrupt` if the layout is broken."""
        start, index = _read_index(data)
        view = memoryview(data)
        decompressor = zstandard.ZstdDecompressor()
        for number, frame in enumerate(index):
            stored = view[start + frame.offset : start + frame.offset + frame.stored]
            yield _read_page(decompressor, number, frame, stored)


def _read_index(data: bytes) -> tuple[int, list[_Frame]]:
    if len(data) < _PREFIX.size:
        raise ArtifactCorrupt("a raw chunk is cut short within its first bytes")
    magic, layout, length, digest = _PREFIX.unpack_from(data)
    if magic != MAGIC:
        raise ArtifactCorrupt("these bytes are no raw chunk: the magic number is missing")
    if layout != LAYOUT:
        raise ArtifactCorrupt(f"a raw chunk has layout {layout}; this release of Sluice reads layout {LAYOUT}")
    start = _PREFIX.size + length
    head = data[_PREFIX.size : start]
    if len(head) != length or xxhash.xxh64_intdigest(head) != digest:
        raise ArtifactCorrupt("the index of a raw chunk is damaged")
    try:
        index = _INDEX.decode(head)
    except msgspec.DecodeError as exc:
        raise ArtifactCorrupt("the index of a raw chunk cannot be read") from exc
    end = 0
    for number, frame in enumerate(index):
        if frame.offset != end or frame.stored < 0:
            raise ArtifactCorrupt(f"the index of a raw chunk is wrong about frame {number}", frame=number)
        end += frame.stored
    if start + end != len(data):
        raise ArtifactCorrupt(f"a raw chunk has {len(data) - start} bytes of frames where its index declares {end}")
    return start, index


def _read_page(decompressor: zstandard.ZstdDecompressor, number: int, frame: _Frame, stored: memoryview) -> bytes:
    try:
        # What the frame itself declares is what would be allocated, so it is compared first.
        if zstandard.frame_content_size(stored) != frame.length:
            raise ArtifactCorrupt(f"frame {number} of a raw chunk is not as long as its index declares", frame=number)
        page = decompressor.decompress(stored, max_output_size=frame.length, allow_extra_data=False)
    except zstandard.ZstdError as exc:
        raise ArtifactCorrupt(f"frame {number} of a raw chunk cannot be decompressed", frame=number) from exc
    if len(page) != frame.length or xxhash.xxh64_intdigest(page) != frame.xxh64:
        raise ArtifactCorrupt(f"frame {number} of a raw chunk does not hold the page that was stored", frame=number)
    return page
