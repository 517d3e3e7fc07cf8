"""The layout of raw chunks, and what damage to it looks like."""

import struct
from contextlib import suppress

import msgspec
import pytest
import xxhash
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from sluice.adapters.artifacts.codec import ZstdChunkCodec
from sluice.errors import ArtifactCorrupt

CODEC = ZstdChunkCodec()


@given(pages=st.lists(st.binary(max_size=60), min_size=1, max_size=4), place=st.integers(0), bit=st.integers(0, 7))
def test_a_flipped_bit_never_yields_other_pages(pages: list[bytes], place: int, bit: int) -> None:
    """One flipped bit anywhere is an error, or harmless; it never gives wrong pages."""
    data = bytearray(CODEC.pack(pages, 1))
    data[place % len(data)] ^= 1 << bit
    with suppress(ArtifactCorrupt):
        assert list(CODEC.pages(bytes(data))) == pages


@given(pages=st.lists(st.binary(max_size=60), max_size=4), cut=st.integers(0))
def test_a_cut_is_always_noticed(pages: list[bytes], cut: int) -> None:
    """A chunk of which only the beginning is there is `ArtifactCorrupt`, wherever it ends."""
    data = CODEC.pack(pages, 1)
    with pytest.raises(ArtifactCorrupt):
        list(CODEC.pages(data[: cut % len(data)]))


@given(st.binary(max_size=200))
def test_anything_else_is_corrupt(data: bytes) -> None:
    """Bytes that are no chunk are `ArtifactCorrupt`, whatever they are."""
    for start in (b"", b"SLUICE\n", b"SLUICE\n\x01"):
        with pytest.raises(ArtifactCorrupt):
            list(CODEC.pages(start + data))


def chunk(index: object, frames: bytes, layout: int = 1) -> bytes:
    """A chunk with any index, its digest right."""
    head = msgspec.json.encode(index)
    return struct.pack(">7sBIQ", b"SLUICE\n", layout, len(head), xxhash.xxh64_intdigest(head)) + head + frames


def frame(page: bytes) -> bytes:
    """A page as one zstd frame."""
    return zstandard.ZstdCompressor().compress(page)


BOMB = frame(bytes(50_000_000))
SIZELESS = zstandard.ZstdCompressor(write_content_size=False).compress(b"page")
HASH = xxhash.xxh64_intdigest(b"page")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (chunk([], b"", layout=2), "has layout 2; this release of Sluice reads layout 1"),
        (chunk({"a": 1}, b""), "index of a raw chunk cannot be read"),
        (chunk([[0, 4, 4, HASH, 5]], b"page"), "index of a raw chunk cannot be read"),
        (chunk([[1, 3, 4, HASH]], b"page"), "wrong about frame 0"),
        (chunk([[0, -4, 4, HASH]], b""), "wrong about frame 0"),
        (chunk([[0, 4, 4, HASH]], b"page more"), "9 bytes of frames where its index declares 4"),
        (chunk([[0, 4, 4, HASH]], b"page"), "frame 0 of a raw chunk cannot be decompressed"),
        (chunk([[0, len(BOMB), 4, HASH]], BOMB), "frame 0 of a raw chunk is not as long as its index declares"),
        (chunk([[0, len(SIZELESS), 4, HASH]], SIZELESS), "frame 0 of a raw chunk is not as long as its index declares"),
        (chunk([[0, len(frame(b"rage")), 4, HASH]], frame(b"rage")), "does not hold the page that was stored"),
    ],
)
def test_damage_is_named(data: bytes, message: str) -> None:
    """What is wrong with a layout is said, and nothing larger than declared is unpacked."""
    with pytest.raises(ArtifactCorrupt, match=message):
        list(CODEC.pages(data))


def test_pages_before_the_damage_are_readable() -> None:
    """Pages are read one by one, so those before a damaged frame still come."""
    data = bytearray(CODEC.pack([b"good page", b"bad page"], 1))
    data[-1] ^= 1
    pages = CODEC.pages(bytes(data))
    assert next(pages) == b"good page"
    with pytest.raises(ArtifactCorrupt, match="frame 1"):
        next(pages)


def test_a_higher_level_makes_a_chunk_smaller() -> None:
    """What a stage declares as `compression` is what its chunks are compressed with."""
    page = b"".join(b'{"id": %d, "city": "city of %d", "stars": %d}' % (n, n * 7919 % 1009, n % 5) for n in range(3000))
    assert len(CODEC.pack([page], 19)) < len(CODEC.pack([page], 1))
