"""Why a value or a record cannot be taken in, told so that a person can act on it."""

import json
from typing import Final

TYPE: Final = "type"
REQUIRED: Final = "required"
OUT_OF_RANGE: Final = "out-of-range"
PRECISION: Final = "precision"
ENCODING: Final = "encoding"
MALFORMED: Final = "malformed"
NOT_AN_OBJECT: Final = "not-an-object"

_SHOWN: Final = 60


class Violation(Exception):
    """A signal within the mapping: a value breaks a rule. It ends up in a `Reject`."""

    def __init__(self, error: str, message: str) -> None:
        super().__init__(message)
        self.error = error
        self.message = message


def shown(text: str) -> str:
    """Return a value for a message: shortened, quoted, and in ASCII, whatever is in it."""
    return json.dumps(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")


def shown_token(token: bytes) -> str:
    """Return a JSON token for a message: as it stands if that is plain, else shortened and quoted."""
    text = token[: 4 * _SHOWN].decode(errors="backslashreplace")
    return text if len(text) <= _SHOWN and text.isascii() and text.isprintable() else shown(text)
