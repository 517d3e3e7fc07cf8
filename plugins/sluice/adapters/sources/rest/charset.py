"""A body in whatever charset in; the same in UTF-8, without a byte order mark, out, as far as that can be told."""

import json
import re
from email.message import Message
from typing import Final

from sluice.mapping.utf8 import is_utf8

_UTF8: Final = ("utf-8", "utf-8-sig")
_BOM: Final = b"\xef\xbb\xbf"
_KNOWN: Final = re.compile(
    r"(utf[-_]?(16|32)([-_]?[lb]e)?|iso[-_]?8859[-_]?\d+|latin[-_]?\d|(windows|cp)[-_]?\d+|koi8[-_][ru]|shift[-_]jis|"
    r"euc[-_](jp|kr)|gb(k|2312|18030)|big5|mac[-_]?roman)",
    re.IGNORECASE,
)
"""Charsets of texts; what else Python can decode, such as punycode, is none, and may take its time."""


def as_utf8(body: bytes, content_type: str) -> bytes:
    """Return the body in UTF-8.

    JSON is UTF-8 (RFC 8259, 8.1), whatever a server declares by habit: what is declared counts only where the bytes are not.
    Bytes that are neither come back as they are: whoever splits the page finds the records that are damaged.
    """
    encoding: str = json.detect_encoding(body)
    if encoding in _UTF8:
        body = body.removeprefix(_BOM)
        if is_utf8(body):
            return body
        encoding = _declared(content_type)
    try:
        return body.decode(encoding).removeprefix("\ufeff").encode() if _KNOWN.fullmatch(encoding) else body
    except (LookupError, UnicodeError):
        return body


def _declared(content_type: str) -> str:
    header = Message()
    header["Content-Type"] = " ".join(content_type.split())
    return header.get_content_charset("")
