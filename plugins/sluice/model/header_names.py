"""The name of a header in; why a spec may not set it, if so, out."""

import re
from typing import Annotated, Final

from pydantic import AfterValidator

_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")

_TRAVEL: Final = frozenset(
    {"host", "connection", "content-length", "transfer-encoding", "te", "trailer", "upgrade", "expect", "accept-encoding"}
)
"""Headers that say how bytes travel: those are set by who sends them."""


def is_header_name(text: str) -> bool:
    """Whether this may name a header (RFC 9110, 5.1)."""
    return _NAME.fullmatch(text) is not None


def misnamed(name: str) -> str | None:
    """Return the reason for which a spec may give no header this name; None if it may."""
    if not is_header_name(name):
        return "is no name of a header"
    return "is set by who sends the request: leave it out" if name.lower() in _TRAVEL else None


def _named(name: str) -> str:
    if (problem := misnamed(name)) is not None:
        raise ValueError(f"{name!r} {problem}")
    return name


HeaderName = Annotated[str, AfterValidator(_named)]
"""The name of a header that a spec may set."""
