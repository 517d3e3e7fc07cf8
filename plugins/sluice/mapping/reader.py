"""Declared fields and a record's raw bytes come in; the exact values of the fields, or all that is wrong with them, come out.

There are two ways, and they agree. `fast` decodes with a type compiled once from the fields, takes what arrives in the
form that was declared, and gives up on anything else. `examine` takes the record apart token by token: it reads the other
forms a value may have, names every problem, and copes with records that are not even JSON.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Final

import msgspec
from msgspec import Raw
from msgspec.structs import astuple

from sluice.mapping import tokens
from sluice.mapping.exact import ExactType, exact_field
from sluice.mapping.tokens import Unbalanced
from sluice.mapping.values import value_of
from sluice.mapping.violation import MALFORMED, NOT_AN_OBJECT, REQUIRED, TYPE, Violation, shown_token
from sluice.model.fields import FieldSpec

MISSES: Final = (msgspec.MsgspecError, Violation, RecursionError)
"""What `fast` raises where it gives up."""

_MEMBERS: Final = msgspec.json.Decoder(dict[str, Raw])
_UNNAMEABLE: Final = re.compile(r'[\x00-\x1f"\\]')
"""Keys with one of these no compiled type can have."""
_Tree = dict[str, Any]
_Members = Mapping[str, Raw | bytes]
_Parts = dict[tuple[str, ...], _Members]


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with a record; without a field, with all of it."""

    field: str | None
    error: str
    message: str


class Reader:
    """Reads some declared fields of records."""

    def __init__(self, fields: Sequence[FieldSpec], required: Iterable[str] = ()) -> None:
        """Read `fields`; those named in `required` may not be null, whatever they say themselves."""
        demanded = set(required)
        self.kinds = [exact_field(field) for field in fields]
        self._fields = [(field, kind, field.required or field.name in demanded) for field, kind in self._paired(fields)]
        self._required = [index for index, (_, _, is_required) in enumerate(self._fields) if is_required]
        self._narrowing = [(index, kind.narrow) for index, kind in enumerate(self.kinds) if kind.narrow]
        self._is_fast = not any(_UNNAMEABLE.search(key) for field in fields for key in field.keys)
        leaves = [(field.keys, kind) for field, kind in self._paired(fields)] if self._is_fast else []
        self._layers, places = _compile(leaves)
        self._pick: Callable[[list[Any]], Iterable[Any]] = (
            itemgetter(*places) if len(places) > 1 else lambda flat: (flat[places[0]],)
        )

    def _paired(self, fields: Sequence[FieldSpec]) -> Iterable[tuple[FieldSpec, ExactType]]:
        return zip(fields, self.kinds, strict=True)

    def fast(self, record: Raw) -> list[Any]:
        """Return the values in the order of the fields; raise one of `MISSES` if it takes `examine` to tell them."""
        if not self._is_fast:
            raise Violation(TYPE, "has to be examined")
        flat: list[Any] = []
        for decoder, nodes in self._layers:
            flat.extend(astuple(decoder.decode(record)))
            for place, nothing in nodes:
                node = flat[place]
                flat.extend(nothing if node is None else astuple(node))
        values = list(self._pick(flat))
        for index, narrow in self._narrowing:
            if (value := values[index]) is not None:
                values[index] = narrow(value)
        for index in self._required:
            if values[index] is None:
                raise Violation(REQUIRED, "is missing")
        return values

    def examine(self, record: bytes) -> tuple[list[Any], list[Problem]]:
        """Return the values, null where there is a problem, and the problems."""
        values: list[Any] = [None] * len(self._fields)
        try:
            parts: _Parts = {(): _members(record)}
        except Violation as violation:
            return values, [Problem(None, violation.error, violation.message)]
        problems = []
        for index, (field, kind, is_required) in enumerate(self._fields):
            try:
                token = _find(parts, field.keys)
                values[index] = None if token is None else value_of(kind, token)
            except Violation as violation:
                problems.append(Problem(field.name, violation.error, violation.message))
            else:
                if is_required and values[index] is None:
                    problems.append(Problem(field.name, REQUIRED, "is missing" if token is None else "is null"))
        return values, problems


def _compile(leaves: Sequence[tuple[tuple[str, ...], ExactType]]) -> tuple[list[tuple[Any, Any]], list[int]]:
    """Return the decoders to run one after the other, and where in their flattened answers each leaf stands.

    One decoder will do, unless a path leads to or through another leaf: then they share the paths between them.
    """
    forests: list[tuple[_Tree, list[tuple[str, ...]]]] = []
    for index, (keys, kind) in enumerate(leaves):
        tree, taken = next((forest for forest in forests if not _is_crossed(keys, forest[1])), ({}, []))
        if not taken:
            forests.append((tree, taken))
        taken.append(keys)
        for key in keys[:-1]:
            tree = tree.setdefault(key, {})
        tree[keys[-1]] = (index, kind)
    layers = []
    places = [0] * len(leaves)
    base = 0
    for tree, _ in forests:
        nodes, base = _lay_out(tree, base, places)
        layers.append((msgspec.json.Decoder(_struct(tree)), nodes))
    return layers, places


def _is_crossed(keys: tuple[str, ...], taken: list[tuple[str, ...]]) -> bool:
    return any(keys[: len(other)] == other or other[: len(keys)] == keys for other in taken)


def _struct(tree: _Tree) -> Any:
    """Return the msgspec type of one object: first its leaves, then the objects below it; all of them may be absent."""
    parts: list[Any] = []
    for key, part in _ordered(tree):
        wire = _struct(part) if isinstance(part, dict) else part[1].wire
        parts.append((f"part{len(parts)}", wire if wire is Raw else wire | None, None, key))
    return msgspec.defstruct(
        "Record", [part[:3] for part in parts], rename={part[0]: part[3] for part in parts}, frozen=True, gc=False
    )


def _lay_out(tree: _Tree, base: int, places: list[int]) -> tuple[list[tuple[int, tuple[None, ...]]], int]:
    """Note where each leaf comes to stand, breadth first from `base`; return the objects to unfold and the next base."""
    nodes = []
    queue = [tree]
    while queue:
        level = queue.pop(0)
        for place, (_, part) in enumerate(_ordered(level), base):
            if isinstance(part, dict):
                nodes.append((place, (None,) * len(part)))
                queue.append(part)
            else:
                places[part[0]] = place
        base += len(level)
    return nodes, base


def _ordered(tree: _Tree) -> list[tuple[str, Any]]:
    return sorted(tree.items(), key=lambda item: isinstance(item[1], dict))


def _members(text: bytes) -> _Members:
    if tokens.opens(text) != b"{":
        raise Violation(NOT_AN_OBJECT, f"{shown_token(text)} is not an object")
    try:
        return _MEMBERS.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        pass
    try:
        return {key: text[start:end] for key, (start, end) in tokens.members(text).items()}
    except Unbalanced:
        raise Violation(MALFORMED, f"{shown_token(text)} is not JSON") from None


def _find(parts: _Parts, keys: tuple[str, ...]) -> bytes | None:
    """Return the token at a path; `parts` holds the objects that have been taken apart so far."""
    above = keys[:-1]
    for depth in range(1, len(keys)):
        path = keys[:depth]
        if path not in parts:
            token = bytes(parts[path[:-1]].get(path[-1], b"null"))
            if token == b"null":
                parts[path] = {}
            elif tokens.opens(token) != b"{":
                raise Violation(TYPE, f"{'.'.join(path)} is not an object but {shown_token(token)}")
            else:
                parts[path] = _members(token)
    found = parts[above].get(keys[-1])
    return None if found is None else bytes(found)
