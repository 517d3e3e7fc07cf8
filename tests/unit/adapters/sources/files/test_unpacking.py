"""unpacking: what was compressed comes out as it was, in bounded parts, and never less of it unnoticed."""

import gzip
import tracemalloc

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from sluice.adapters.sources.files.unpacking import unpacked
from sluice.errors import FileUnreadable

PACKERS = {
    "gzip": gzip.compress,
    "zstd": zstandard.ZstdCompressor().compress,
    "zstd without its size": lambda data: zstandard.ZstdCompressor(write_content_size=False).compress(data),
}


def through(content: bytes, part: int = 1000, declared: str = "auto") -> bytes:
    """Return what comes out."""
    parts = iter([content[place : place + part] for place in range(0, len(content), part)])
    return b"".join(unpacked(parts, declared, "file")[0])  # type: ignore[arg-type]


@given(members=st.lists(st.binary(max_size=300), max_size=4), part=st.integers(1, 50), packer=st.sampled_from(list(PACKERS)))
def test_all_members_come_out(members: list[bytes], part: int, packer: str) -> None:
    """Several compressed files, one behind the other, are one, whatever the parts."""
    packed = b"".join(PACKERS[packer](member) for member in members)
    assert through(packed, part) == b"".join(members)
    if members:  # nothing at all is no compressed file
        assert through(packed, part, packer[:4]) == b"".join(members)


@given(content=st.binary(max_size=100), part=st.integers(1, 9))
def test_what_is_not_compressed_stays(content: bytes, part: int) -> None:
    """Bytes that do not begin as compressed ones do pass as they are."""
    plain = b"{" + content
    assert through(plain, part) == plain
    packed = gzip.compress(plain)
    assert through(packed, part, "none") == packed


@pytest.mark.parametrize("packer", list(PACKERS))
def test_a_cut_is_noticed(packer: str) -> None:
    """Wherever a compressed file is cut, it is not taken for whole."""
    packed = PACKERS[packer](b"hotels " * 100)
    for end in range(len(packed)):
        with pytest.raises(FileUnreadable, match="cut short"):
            through(packed[:end], 7, packer[:4])


@pytest.mark.parametrize(
    ("content", "declared"), [(b"hotels", "gzip"), (b"hotels", "zstd"), (gzip.compress(b"x", mtime=0) + b"hotels", "auto")]
)
def test_what_is_no_such_file_is_named(content: bytes, declared: str) -> None:
    """Something else, or something behind the last member, is refused."""
    with pytest.raises(FileUnreadable, match="is no sound"):
        through(content, declared=declared)


def test_padding_behind_the_last_member_is_none() -> None:
    """Zeros that fill a block are no member, be they cut or not."""
    assert [through(gzip.compress(b"hotels") + b"\0" * 50, part) for part in (1, 7, 1000)] == [b"hotels"] * 3


@pytest.mark.parametrize("packer", list(PACKERS))
def test_a_bomb_fills_no_memory(packer: str) -> None:
    """A few kilobytes that stand for 300 MB come out in parts that are dealt with one after the other."""
    if packer == "gzip":
        member = gzip.compress(bytes(10_000_000))
        bomb = member * 30
    else:
        bomb = PACKERS[packer](bytes(300_000_000))
    tracemalloc.start()
    try:
        total = sum(map(len, unpacked(iter([bomb]), "auto", "file")[0]))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert total == 300_000_000
    assert peak < 50_000_000
