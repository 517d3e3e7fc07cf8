"""The text of a query in; the first template that stands where no value can be sent out: in quotes, or in a comment."""

import re
from typing import Final

_CLOSED: Final = re.compile(
    r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/|(\$(?:[A-Za-z_]\w*)?\$).*?\1",
    re.DOTALL,
)
_EXPRESSION: Final = re.compile(r"\{\{.*?\}\}", re.DOTALL)
_BLOCK: Final = re.compile(r"\{%.*?%\}|\{#.*?#\}", re.DOTALL)
_LONGEST_SHOWN: Final = 60


def misplaced(text: str, mark: str) -> str | None:
    """Return the quoted text or comment that has a mark in it; None if none has."""
    for match in _CLOSED.finditer(text):
        if mark in match[0]:
            return match[0].replace(mark, "…")[:_LONGEST_SHOWN]
    return None


def misplaced_template(query: str) -> str | None:
    """Return the quoted text or comment that has a template in it, as far as can be told without rendering it."""
    return misplaced(_EXPRESSION.sub("\0", _BLOCK.sub("", query)), "\0")


def complaint(place: str) -> str:
    """Return what is wrong with a template there."""
    return (
        f"{place} has a template in quotes or in a comment: leave the quotes out, since a template is a parameter of the "
        "statement, and no part of its text"
    )
