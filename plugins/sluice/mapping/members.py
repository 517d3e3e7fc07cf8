"""A record's bytes, sound or not, come in; the tokens that stand at paths of it go out."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw

from sluice.mapping import tokens
from sluice.mapping.compiled import leading_keys
from sluice.mapping.tokens import Unbalanced
from sluice.mapping.values import items_of
from sluice.mapping.violation import ENCODING, MALFORMED, NOT_AN_OBJECT, TYPE, Violation, shown_token
from sluice.model.paths import EACH, Path, spell_path

_MEMBERS: Final = msgspec.json.Decoder(dict[str, Raw])
_NULL: Final = b"null"

Taken = dict[str, Any]
"""A tree of keys that are taken: below each a tree, or None for all that it holds."""


class Members:
    """The members of one record, taken apart as far as somebody asks."""

    def __init__(self, record: bytes) -> None:
        """Raise `Violation` if the record is no object."""
        self._record = record
        self._parts: dict[tuple[str, ...], Mapping[str, Raw | bytes]] = {(): _object(record, (), NOT_AN_OBJECT)}

    def find(self, path: Path) -> bytes | None:
        """Return the token at a path, None if nothing stands there; raise `Violation` if the way to it leads nowhere."""
        keys = leading_keys(path)
        token = self._at(keys)
        return token if len(keys) == len(path) else _below(token, path, keys)

    def rest(self, taken: Taken) -> bytes:
        """Return an object with all that is not taken."""
        return rest_of(self._record, taken)

    def _at(self, keys: tuple[str, ...]) -> bytes | None:
        above = keys[:-1]
        if above not in self._parts:
            token = self._at(above)
            self._parts[above] = {} if token is None or token == _NULL else _object(token, above)
        found = self._parts[above].get(keys[-1])
        return None if found is None else bytes(found)


def taken_by(paths: Iterable[Path]) -> Taken:
    """Return what some paths take of a record: nothing where they lead through arrays."""
    taken: Taken = {}
    for path in paths:
        keys, tree = leading_keys(path), taken
        if len(keys) < len(path):
            continue
        for key in keys[:-1]:
            below = tree.setdefault(key, {})
            if below is None:
                break
            tree = below
        else:
            tree[keys[-1]] = None
    return taken


def rest_of(record: bytes, taken: Taken) -> bytes:
    """Return an object with the members of a record that are not taken, their tokens as they stand.

    An object of which members are taken stays with the others, or not at all if there are none.
    """
    parts = []
    for key, token in _object_with_all(record).items():
        below = taken.get(key)
        if below is None and key in taken:
            continue
        text = bytes(token)
        if below is not None:
            text = rest_of(text, below) if tokens.opens(text) == b"{" else b"{}" if text == _NULL else text
            if text == b"{}":
                continue
        parts.append(msgspec.json.encode(key) + b":" + text)
    return b"{" + b",".join(parts) + b"}"


def _below(token: bytes | None, path: Path, keys: tuple[str, ...]) -> bytes | None:
    depth, at = len(keys), keys
    if EACH not in path:
        return _down(token, path[depth:], at)
    first = path.index(EACH)
    array = _down(token, path[depth:first], at)
    if array is None or array == _NULL:
        return None
    return b"[" + b",".join(_each(array, path[first:], path[:first])) + b"]"


def _down(token: bytes | None, steps: Path, at: Path) -> bytes | None:
    """Return the token at some steps, none of them to each item, below a token that stands at a place."""
    for step in steps:
        if token is None or token == _NULL:
            return None
        if isinstance(step, int):
            items = _array(token, at)
            token = items[step] if step < len(items) else None
        else:
            found = _object(token, at).get(step)
            token = None if found is None else bytes(found)
        at = (*at, step)
    return token


def _each(token: bytes | None, steps: Path, at: Path) -> Iterator[bytes]:
    """Yield the tokens at some steps below a token; of an array that is not there, none."""
    if EACH not in steps:
        yield _down(token, steps, at) or _NULL
        return
    first = steps.index(EACH)
    array = _down(token, steps[:first], at)
    if array is None or array == _NULL:
        return
    place = (*at, *steps[:first])
    for number, item in enumerate(_array(array, place)):
        yield from _each(item, steps[first + 1 :], (*place, number))


def _object(token: bytes, at: Path, error: str = TYPE) -> Mapping[str, Raw | bytes]:
    if tokens.opens(token) != b"{":
        raise Violation(error, f"{spell_path(at)} is not an object but {shown_token(token)}" if at else _no_object(token))
    try:
        return _MEMBERS.decode(token)
    except (msgspec.MsgspecError, RecursionError):
        pass
    try:
        return {key: token[start:end] for key, (start, end) in tokens.members(token).items()}
    except Unbalanced:
        raise Violation(MALFORMED, f"{shown_token(token)} is not JSON") from None


def _object_with_all(token: bytes) -> Mapping[str, Raw | bytes]:
    """Return the members of an object; raise `Violation` if one has a key that is no text."""
    try:
        return _MEMBERS.decode(token)
    except (msgspec.MsgspecError, RecursionError):
        pass
    members = _object(token, ())
    for key, _, _ in tokens.items(token):
        try:
            msgspec.json.decode(key, type=str)
        except msgspec.MsgspecError:
            raise Violation(ENCODING, f"the key {shown_token(key)} is no text") from None
    return members


def _no_object(token: bytes) -> str:
    return f"{shown_token(token)} is not an object"


def _array(token: bytes, at: Path) -> list[bytes]:
    if tokens.opens(token) != b"[":
        raise Violation(TYPE, f"{spell_path(at)} is not an array but {shown_token(token)}")
    return items_of(token)
