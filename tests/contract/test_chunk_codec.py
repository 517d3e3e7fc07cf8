"""What every `ChunkCodec` does, on the fake and on the real one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.adapters.artifacts.codec import ZstdChunkCodec
from sluice.errors import ArtifactCorrupt
from sluice.ports import ChunkCodec
from tests.unit.fakes.chunk_codec import PlainChunkCodec

both = pytest.mark.parametrize("codec", [PlainChunkCodec(), ZstdChunkCodec()], ids=["fake", "zstd"])


@both
@given(pages=st.lists(st.binary(max_size=300), max_size=8), level=st.integers(1, 19))
def test_pages_come_back(codec: ChunkCodec, pages: list[bytes], level: int) -> None:
    """Any pages, also empty ones and none at all, come back byte for byte and in order."""
    assert list(codec.pages(codec.pack(pages, level))) == pages


@both
def test_packing_is_repeatable(codec: ChunkCodec) -> None:
    """The same pages give the same bytes, on which keys may depend."""
    assert codec.pack([b"a" * 999, b""], 3) == codec.pack([b"a" * 999, b""], 3)


@both
def test_a_chunk_cut_short_is_corrupt(codec: ChunkCodec) -> None:
    """Missing bytes at the end, or additional ones, are `ArtifactCorrupt`."""
    data = codec.pack([b"first", b"second"], 1)
    for damaged in (data[:-1], data + b"x"):
        with pytest.raises(ArtifactCorrupt):
            list(codec.pages(damaged))
