"""Bodies of answers: a response that nobody has read in, its bytes without content encoding out, never more than allowed."""

import zlib
from typing import Final

import httpx2
import zstandard

from sluice.errors import AnswerNotJson, AnswerTooLarge, SupplierUnavailable

ACCEPTED_ENCODINGS: Final = "gzip, deflate, zstd"

_PEEK: Final = 16 * 1024
_GZIP: Final = 16 + zlib.MAX_WBITS
_ZLIB: Final = zlib.MAX_WBITS
_EITHER: Final = 32 + zlib.MAX_WBITS
_DEFLATE: Final = -zlib.MAX_WBITS
_ZSTD_WINDOW: Final = 8 << 20
"""The largest window of zstd as a content encoding (RFC 9659)."""
_ZSTD_SLICE: Final = 512
"""Bytes to unpack at once: zstd knows no bound on what comes out, and of so few no more than 16 MB can."""
_ONCE_DECOMPRESSED: Final = "it is larger once decompressed"


def read_body(response: httpx2.Response, limit: int, asked: str) -> bytes:
    """Return the whole body, as it was before it was encoded for the way.

    Raises `AnswerTooLarge` beyond `limit`, before or after decompression; a body that ends early is an error of the way
    (httpx2's, or `SupplierUnavailable` where the compressed stream has no end).
    """
    announced = response.headers.get("Content-Length", "")
    if announced.isascii() and announced.isdigit() and int(announced[:20]) > limit:
        raise _too_large(asked, limit, f"it announces {announced[:20]} bytes")
    parts: list[bytes] = []
    size = 0
    for part in response.iter_raw():
        size += len(part)
        if size > limit:
            raise _too_large(asked, limit, "more was received")
        parts.append(part)
    return _decoded(b"".join(parts), encoding_of(response), limit, asked)


def encoding_of(response: httpx2.Response) -> str:
    """Return how the body was encoded for the way, in lower case; nothing if it was not."""
    encoding: str = response.headers.get("Content-Encoding", "").strip().lower()
    return "" if encoding == "identity" else encoding


def peek(response: httpx2.Response) -> bytes:
    """Return the beginning of a body, to quote it in an error; nothing if that fails. The response is over then."""
    raw = b""
    try:
        for part in response.iter_raw():
            raw += part
            if len(raw) >= _PEEK:
                break
        match encoding_of(response):
            case "":
                return raw[:_PEEK]
            case "zstd":
                return _zstd_frame().decompress(raw[:_ZSTD_SLICE])[:_PEEK]
            case _:
                return zlib.decompressobj(_EITHER).decompress(raw, _PEEK)
    except (httpx2.HTTPError, OSError, zlib.error, zstandard.ZstdError):
        return b""
    finally:
        response.close()


def _decoded(raw: bytes, encoding: str, limit: int, asked: str) -> bytes:
    try:
        match encoding:
            case "":
                return raw
            case "gzip" | "x-gzip":
                return _inflated(raw, _GZIP, limit, asked)
            case "deflate":
                return _inflated(raw, _ZLIB if _has_zlib_header(raw) else _DEFLATE, limit, asked)
            case "zstd":
                return _expanded(raw, limit, asked)
            case _:
                raise AnswerNotJson(
                    f"{asked}: the body is encoded as {encoding[:40]!r}; accepted: {ACCEPTED_ENCODINGS}", url=asked
                )
    except (zlib.error, zstandard.ZstdError) as exc:
        raise AnswerNotJson(f"{asked}: the body cannot be decompressed from {encoding}", url=asked) from exc


def _inflated(raw: bytes, format_bits: int, limit: int, asked: str) -> bytes:
    """Decompress all members of zlib's formats; one byte beyond the limit is enough to know."""
    whole: list[bytes] = []
    room = limit + 1
    while raw:
        member = zlib.decompressobj(format_bits)
        part = member.decompress(raw, room)
        room -= len(part)
        if room <= 0:
            raise _too_large(asked, limit, _ONCE_DECOMPRESSED)
        if not member.eof:
            raise _cut_short(asked)
        whole.append(part)
        raw = member.unused_data
    return b"".join(whole)


def _expanded(raw: bytes, limit: int, asked: str) -> bytes:
    """Decompress all frames of zstd."""
    whole: list[bytes] = []
    room = limit
    rest = memoryview(raw)
    frame = _zstd_frame()
    while rest:
        part = frame.decompress(rest[:_ZSTD_SLICE])
        room -= len(part)
        if room < 0:
            raise _too_large(asked, limit, _ONCE_DECOMPRESSED)
        whole.append(part)
        rest = rest[min(len(rest), _ZSTD_SLICE) - len(frame.unused_data) :]
        if frame.eof and rest:
            frame = _zstd_frame()
    if raw and not frame.eof:
        raise _cut_short(asked)
    return b"".join(whole)


def _zstd_frame() -> "zstandard.ZstdDecompressionObj":  # a name of its stubs alone
    return zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW).decompressobj()


def _has_zlib_header(raw: bytes) -> bool:
    return len(raw) > 1 and raw[0] & 0x0F == zlib.DEFLATED and int.from_bytes(raw[:2], "big") % 31 == 0


def _cut_short(asked: str) -> SupplierUnavailable:
    return SupplierUnavailable(f"{asked}: the compressed body is cut short", url=asked)


def _too_large(asked: str, limit: int, why: str) -> AnswerTooLarge:
    return AnswerTooLarge(
        f"{asked}: the answer is larger than {limit} bytes ({why}): ask for smaller pages, or raise max_body of the stage",
        url=asked,
        limit=limit,
    )
