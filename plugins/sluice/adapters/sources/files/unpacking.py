"""A file's bytes in; the same without compression out, part by part, so that no bomb fills the memory."""

import zlib
from collections.abc import Iterator
from itertools import chain
from typing import Final, Literal

import zstandard

from sluice.errors import FileUnreadable

Compression = Literal["auto", "none", "gzip", "zstd"]

_PART: Final = 256 * 1024
_ZSTD_FED: Final = 256
"""So few bytes at a time: four may stand for 128 kB, and the library gives out all of them at once."""
_WIDEST_WINDOW: Final = 128 * 1024 * 1024
_GZIP_BITS: Final = 16 + zlib.MAX_WBITS
_GZIP: Final = b"\x1f\x8b"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"


def compression_of(head: bytes, declared: Compression) -> Compression:
    """Return how a file is compressed: as declared, or as its first bytes say."""
    if declared != "auto":
        return declared
    if head.startswith(_GZIP):
        return "gzip"
    return "zstd" if head.startswith(_ZSTD) else "none"


def unpacked(parts: Iterator[bytes], declared: Compression, name: str) -> tuple[Iterator[bytes], bool]:
    """Return the bytes as they were before they were compressed, and whether that is as they come."""
    head = b""
    while len(head) < len(_ZSTD) and (part := next(parts, b"")):
        head += part
    parts = chain([head], parts)
    match compression_of(head, declared):
        case "gzip":
            return _gunzipped(parts, name), False
        case "zstd":
            return _zstd_unpacked(parts, name), False
        case _:
            return parts, True


def _gunzipped(parts: Iterator[bytes], name: str) -> Iterator[bytes]:
    """Yield the content of all members, one after the other."""
    member: zlib._Decompress | None = zlib.decompressobj(_GZIP_BITS)
    try:
        for part in parts:
            rest = part
            while rest:
                if member is None:
                    rest = rest.lstrip(b"\0")  # what fills a tape's last block
                    member = zlib.decompressobj(_GZIP_BITS) if rest else None
                    continue
                if out := member.decompress(rest, _PART):
                    yield out
                rest = member.unused_data if member.eof else member.unconsumed_tail
                member = None if member.eof else member
        while member is not None and (out := member.decompress(member.unconsumed_tail, _PART)):
            yield out
            member = None if member.eof else member
    except zlib.error as exc:
        raise FileUnreadable(f"{name}: is no sound gzip file ({exc})", file=name) from exc
    if member is not None and not member.eof:
        raise FileUnreadable(f"{name}: the gzip file is cut short", file=name)


def _zstd_unpacked(parts: Iterator[bytes], name: str) -> Iterator[bytes]:
    """Yield the content of all frames, one after the other."""
    decompressor = zstandard.ZstdDecompressor(max_window_size=_WIDEST_WINDOW)
    frame = decompressor.decompressobj()
    try:
        for part in parts:
            for start in range(0, len(part), _ZSTD_FED):
                rest = part[start : start + _ZSTD_FED]
                while rest:
                    if frame.eof:
                        frame = decompressor.decompressobj()
                    if out := frame.decompress(rest):
                        yield out
                    rest = frame.unused_data if frame.eof else b""
    except zstandard.ZstdError as exc:
        raise FileUnreadable(f"{name}: is no sound zstd file ({exc})", file=name) from exc
    if not frame.eof:
        raise FileUnreadable(f"{name}: the zstd file is cut short", file=name)
