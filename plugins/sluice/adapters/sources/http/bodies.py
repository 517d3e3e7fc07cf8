"""Bodies of answers: a response that nobody has read in, its bytes without content encoding out, never more than allowed."""

import zlib
from typing import Final

from urllib3 import BaseHTTPResponse
from urllib3.exceptions import HTTPError

from sluice.errors import AnswerNotJson, AnswerTooLarge, SupplierUnavailable

ACCEPTED_ENCODINGS: Final = "gzip, deflate"

_PART: Final = 256 * 1024
_PEEK: Final = 16 * 1024
_GZIP: Final = 16 + zlib.MAX_WBITS
_ZLIB: Final = zlib.MAX_WBITS
_EITHER: Final = 32 + zlib.MAX_WBITS
_DEFLATE: Final = -zlib.MAX_WBITS


def read_body(response: BaseHTTPResponse, limit: int, shown: str) -> bytes:
    """Return the whole body, as it was before it was encoded for the way.

    Raises `AnswerTooLarge` beyond `limit`, before or after decompression; a body that ends early is an error of the way
    (urllib3's, or `SupplierUnavailable` where the compressed stream has no end).
    """
    announced = response.headers.get("Content-Length", "")
    if announced.isascii() and announced.isdigit() and int(announced[:20]) > limit:
        raise _too_large(shown, limit, f"it announces {announced[:20]} bytes")
    parts: list[bytes] = []
    size = 0
    while part := response.read(_PART, decode_content=False):
        size += len(part)
        if size > limit:
            raise _too_large(shown, limit, "more was received")
        parts.append(part)
    return _decoded(b"".join(parts), response.headers.get("Content-Encoding", "").strip().lower(), limit, shown)


def peek(response: BaseHTTPResponse) -> bytes:
    """Return the beginning of a body, to quote it in an error; nothing if that fails."""
    try:
        raw = response.read(_PEEK, decode_content=False)
        encoding = response.headers.get("Content-Encoding", "").strip().lower()
        return raw if encoding in ("", "identity") else zlib.decompressobj(_EITHER).decompress(raw, _PEEK)
    except (HTTPError, OSError, zlib.error):
        return b""


def _decoded(raw: bytes, encoding: str, limit: int, shown: str) -> bytes:
    if encoding in ("", "identity"):
        return raw
    try:
        match encoding:
            case "gzip" | "x-gzip":
                return _inflated(raw, _GZIP, limit, shown)
            case "deflate":
                return _inflated(raw, _ZLIB if _has_zlib_header(raw) else _DEFLATE, limit, shown)
            case _:
                raise AnswerNotJson(
                    f"GET {shown}: the body is encoded as {encoding[:40]!r}; accepted: {ACCEPTED_ENCODINGS}", url=shown
                )
    except zlib.error as exc:
        raise AnswerNotJson(f"GET {shown}: the body cannot be decompressed from {encoding}", url=shown) from exc


def _inflated(raw: bytes, format_bits: int, limit: int, shown: str) -> bytes:
    """Decompress all members; one byte beyond the limit is enough to know."""
    whole: list[bytes] = []
    room = limit + 1
    while raw:
        member = zlib.decompressobj(format_bits)
        part = member.decompress(raw, room)
        room -= len(part)
        if room <= 0:
            raise _too_large(shown, limit, "it is larger once decompressed")
        if not member.eof:
            raise SupplierUnavailable(f"GET {shown}: the compressed body is cut short", url=shown)
        whole.append(part)
        raw = member.unused_data
    return b"".join(whole)


def _has_zlib_header(raw: bytes) -> bool:
    return len(raw) > 1 and raw[0] & 0x0F == zlib.DEFLATED and int.from_bytes(raw[:2], "big") % 31 == 0


def _too_large(shown: str, limit: int, why: str) -> AnswerTooLarge:
    return AnswerTooLarge(
        f"GET {shown}: the answer is larger than {limit} bytes ({why}): ask for smaller pages, or raise max_body of the stage",
        url=shown,
        limit=limit,
    )
