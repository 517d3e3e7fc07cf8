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
from sluice.model.base import RunId

NO_SHARD: Final = "-"
LONGEST_NAME: Final = 160
"""Bytes of one encoded name; stores allow 255 a part and 1024 a key."""

_PARTS: Final = 5
_DIGITS: Final = 6
_ESCAPED: Final = re.compile(rb"=([0-9A-F]{2})")
_PLAIN: Final = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.")
_EXTENSIONS: Final[dict[str, str]] = {
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


def owner_of(key: str, prefix: str) -> tuple[str, RunId] | None:
    """Return the sync and the run of an artifact's key; None for any other key, or if a name of it was cut.

    `prefix` is what stands before the sync, the slash included.
    """
    parts = key.removeprefix(prefix).split("/")
    if not key.startswith(prefix) or len(parts) != _PARTS or not _is_artifact(parts[2], parts[4]):
        return None
    sync, run = decoded(parts[0]), decoded(parts[1])
    return None if sync is None or run is None else (sync, RunId(run))


def decoded(name: str) -> str | None:
    """Return what `encode` was given to return this; None if that cannot be told."""
    try:
        raw = _ESCAPED.sub(lambda found: bytes([int(found[1], 16)]), name.encode("ascii")) if name != "==" else b""
        plain = raw.decode("utf-8", "surrogatepass")
    except UnicodeError:
        return None
    return plain if encode(plain) == name else None


def _is_artifact(kind: str, name: str) -> bool:
    number, _, extension = name.partition(".") if "-" not in name else (name.partition("-")[0], "", name.rpartition(".")[2])
    return _EXTENSIONS.get(kind) == extension and len(number) >= _DIGITS and number.isdecimal()


def checked_prefix(conn_id: str, prefix: object, name: str = "prefix") -> str:
    """Return a prefix in the extra of a connection without outer slashes; raise `ConnectionInvalid` if it makes no safe key."""
    text = prefix.strip("/") if isinstance(prefix, str) else None
    if text == "":
        return text
    if (
        text is None
        or len(text) > LONGEST_NAME
        or not re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*(/[A-Za-z0-9_-][A-Za-z0-9_.-]*)*", text)
    ):
        raise ConnectionInvalid(
            f"connection {conn_id}: `{name}` in the extra must be names of letters, digits, `_`, `-` and inner dots, "
            f"joined by single slashes, at most {LONGEST_NAME} characters"
        )
    return text
