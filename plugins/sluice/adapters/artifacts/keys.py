"""Keys in the object store: in goes an `ArtifactRef`, out comes where its bytes are, always the same, and safe anywhere.

    <prefix>/<sync>/<run>/<kind>/<shard>/<seq>[-<variant>].<extension>

Names from outside keep letters, digits, `_`, `-` and inner dots; any other byte becomes `=XX`. So no part is empty, `.` or
`..`, and different refs never share a key. A name too long for a part is cut, and told apart by its digest.
"""

import hashlib
import re
from typing import Final

from sluice.errors import ConnectionInvalid
from sluice.model.artifact import ArtifactKind, ArtifactRef

NO_SHARD: Final = "-"
LONGEST_NAME: Final = 160
"""Bytes of one encoded name; stores allow 255 a part and 1024 a key."""

_PLAIN: Final = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.")
_EXTENSIONS: Final = {
    ArtifactKind.SPEC: "json",
    ArtifactKind.RUN: "json",
    ArtifactKind.RAW: "chunk",
    ArtifactKind.ROWS: "parquet",
    ArtifactKind.REJECTS: "json",
    ArtifactKind.DIFF: "parquet",
    ArtifactKind.UNDO: "parquet",
    ArtifactKind.CONFLICTS: "json",
    ArtifactKind.EVIDENCE: "json",
    ArtifactKind.REPORT: "html",
}


def key_of(ref: ArtifactRef, prefix: str = "") -> str:
    """Return the key of an artifact below `prefix`."""
    shard = NO_SHARD if ref.shard is None else encode(ref.shard)
    variant = f"-{encode(ref.variant)}" if ref.variant else ""
    name = f"{ref.seq:06d}{variant}.{_EXTENSIONS[ref.kind]}"
    parts = [encode(ref.sync), encode(ref.run), ref.kind.value, shard, name]
    return "/".join([prefix, *parts] if prefix else parts)


def encode(name: str) -> str:
    """Return a name as one part of a key: safe characters only, never empty, reversible unless it is cut."""
    raw = name.encode("utf-8", "surrogatepass")
    encoded = "".join(
        chr(byte) if byte in _PLAIN and not (byte == ord(".") and place == 0) else f"={byte:02X}"
        for place, byte in enumerate(raw)
    )
    if encoded == NO_SHARD:
        return f"={ord(NO_SHARD):02X}"
    if not encoded:
        return "=="
    if len(encoded) <= LONGEST_NAME:
        return encoded
    # `==` appears in no encoded name, so what is cut cannot meet what is not.
    digest = hashlib.sha256(raw).hexdigest()
    return f"{encoded[: LONGEST_NAME - len(digest) - 2]}=={digest}"


def checked_prefix(conn_id: str, prefix: object) -> str:
    """Return the prefix of a connection without outer slashes; raise `ConnectionInvalid` if it makes no safe key."""
    text = prefix.strip("/") if isinstance(prefix, str) else None
    if text == "":
        return text
    if (
        text is None
        or len(text) > LONGEST_NAME
        or not re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*(/[A-Za-z0-9_-][A-Za-z0-9_.-]*)*", text)
    ):
        raise ConnectionInvalid(
            f"connection {conn_id}: `prefix` in the extra must be names of letters, digits, `_`, `-` and inner dots, "
            f"joined by single slashes, at most {LONGEST_NAME} characters"
        )
    return text
