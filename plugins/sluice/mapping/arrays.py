"""How a type's values are read and written comes in; how one-dimensional arrays of them are, as Postgres spells them, goes out.

An array travels as a list of its items' values, null among them; where items may travel as pairs, as the pair of two lists.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from sluice.mapping.violation import TYPE, Violation, shown

_ITEM: Final = r'(?:"(?:[^"\\]++|\\.)*+"|[^{}",\\]++)'
_ARRAY: Final = re.compile(rf"\{{(?:{_ITEM}(?:,{_ITEM})*+)?\}}", re.DOTALL).fullmatch
_ITEMS: Final = re.compile(r'"((?:[^"\\]++|\\.)*+)"|([^{}",\\]++)', re.DOTALL).findall
_PLAIN: Final = re.compile(r'[^\s{}",\\]+').fullmatch
_NULL: Final = "NULL"


def paired(values: list[Any]) -> Any:
    """Return the array of some values: a list, or two where what is stored is not what tells values apart."""
    if not any(type(value) is tuple for value in values):
        return values
    pairs = [value if type(value) is tuple else (value, value) for value in values]
    return [stored for stored, _ in pairs], [apart for _, apart in pairs]


def narrowing(narrow: Callable[[Any], Any] | None) -> Callable[[list[Any]], Any] | None:
    """Return what turns a decoded list into the array; None: it is the array already."""
    if narrow is None:
        return None
    return lambda items: paired([None if item is None else narrow(item) for item in items])


def reading(from_text: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return what reads an array as Postgres spells it: in braces, what could be mistaken in quotes, null as NULL."""

    def read(text: str) -> Any:
        if not _ARRAY(text):
            raise Violation(TYPE, f"{shown(text)} is no array of one dimension that begins at 1")
        return paired([_item(quoted, bare, from_text) for quoted, bare in _ITEMS(text)])

    return read


def writing(to_text: Callable[[Any], str]) -> Callable[[Sequence[Any]], str]:
    """Return what writes an array so that Postgres reads it exactly."""
    return lambda values: "{" + ",".join(_NULL if value is None else _quoted(to_text(value)) for value in values) + "}"


def _item(quoted: str, bare: str, from_text: Callable[[str], Any]) -> Any:
    if bare == _NULL:
        return None
    return from_text(bare or re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL))


def _quoted(text: str) -> str:
    if _PLAIN(text) and text.upper() != _NULL:
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
