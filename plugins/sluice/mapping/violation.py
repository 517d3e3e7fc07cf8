"""Why a value or a record cannot be taken in, told so that a person can act on it."""

import json
from dataclasses import dataclass
from typing import Final

TYPE: Final = "type"
REQUIRED: Final = "required"
OUT_OF_RANGE: Final = "out-of-range"
PRECISION: Final = "precision"
ENCODING: Final = "encoding"
MALFORMED: Final = "malformed"
NOT_AN_OBJECT: Final = "not-an-object"
FUNCTION: Final = "function"
"""The team's function fails for the object."""
NOT_RETURNED: Final = "not-returned"
IDENTITY: Final = "identity"
"""The team's function has made it another object, or another version of it."""
LOCAL_TIME: Final = "local-time"
UNMAPPED: Final = "unmapped"
MINIMUM: Final = "minimum"
MAXIMUM: Final = "maximum"
PATTERN: Final = "pattern"
MIN_LENGTH: Final = "min-length"
MAX_LENGTH: Final = "max-length"
ALLOWED: Final = "allowed"

_SHOWN: Final = 60


class Violation(Exception):
    """A signal within the mapping: a value breaks a rule. It ends up in a `Reject`."""

    def __init__(self, error: str, message: str) -> None:
        super().__init__(message)
        self.error = error
        self.message = message


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with a record; without a field, with all of it."""

    field: str | None
    error: str
    message: str


def shown(text: str) -> str:
    """Return a value for a message: shortened, quoted, and in ASCII, whatever is in it."""
    return json.dumps(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")


def shown_token(token: bytes) -> str:
    """Return a JSON token for a message: as it stands if that is plain, else shortened and quoted."""
    text = token[: 4 * _SHOWN].decode(errors="backslashreplace")
    return text if len(text) <= _SHOWN and text.isascii() and text.isprintable() else shown(text)
