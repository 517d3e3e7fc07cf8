"""Paths, each with the msgspec type of what stands there, come in; a decoder of all of them at once goes out.

One pass over a record will do, unless a path leads to or through another one's value: then several passes share the paths. What
stands in an array is decoded out of the raw bytes of the outermost one, again in one pass for each path.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from operator import itemgetter
from typing import Any, Final

import msgspec
from msgspec import Raw
from msgspec.structs import astuple

from sluice.model.paths import EACH, Path

_UNNAMEABLE: Final = re.compile(r'[\x00-\x1f"\\]')
"""Keys with one of these no compiled type can have."""
_NULL: Final = Raw(b"null")

_Keys = tuple[str, ...]
_Tree = dict[str, Any]


class CompiledPaths:
    """Decodes what stands at some paths of records."""

    def __init__(self, leaves: Sequence[tuple[Path, Any]]) -> None:
        """Decode `leaves`, paths with the types of what stands there; `Raw` yields the token."""
        self.is_possible = not any(
            _UNNAMEABLE.search(step) for path, _ in leaves for step in path if isinstance(step, str) and step != EACH
        )
        """Whether there are such types; else nothing can be decoded."""
        whole: dict[tuple[_Keys, Any], int] = {}
        sources, self._below = [], []
        for index, (path, wire) in enumerate(leaves if self.is_possible else []):
            keys = leading_keys(path)
            if len(keys) < len(path):
                self._below.append((index, _below(path[len(keys) :], wire)))
                wire = Raw  # noqa: PLW2901 - the bytes of the array
            # Of one path, all that takes raw bytes is decoded once.
            sources.append(whole.setdefault((keys, Raw if wire is Raw else index), len(whole)))
        self._layers, places = _compile([(keys, Raw if wire is Raw else leaves[wire][1]) for keys, wire in whole])
        picked = [places[source] for source in sources]
        self._pick = _picker(picked)
        is_flat = len(self._layers) == 1 and not self._layers[0][1] and not self._below
        self._in_one: Callable[[Raw], Any] | None = self._layers[0][0].decode if is_flat else None
        """Decodes all of it at once, where everything stands at the top: so do most keys, versions and watermarks."""
        self._is_in_order = picked == list(range(len(whole)))
        """Whether that gives each value in its place."""

    def decode(self, record: Raw) -> list[Any]:
        """Return what stands at each path, None where nothing does; raise a `MsgspecError` where a type does not fit."""
        if self._in_one is not None:
            found = astuple(self._in_one(record))
            return list(found if self._is_in_order else self._pick(found))
        flat: list[Any] = []
        for decoder, nodes in self._layers:
            flat.extend(astuple(decoder.decode(record)))
            for place, nothing in nodes:
                node = flat[place]
                flat.extend(nothing if node is None else astuple(node))
        values = list(self._pick(flat))
        for index, below in self._below:
            if values[index] is not None:
                values[index] = below(values[index])
        return values

    def columns(self, records: Sequence[Raw]) -> list[Sequence[Any]]:
        """Return path by path what `decode` finds in one or more records; raise as it does."""
        if self._in_one is None:
            return list(zip(*map(self.decode, records), strict=True))
        found: list[Sequence[Any]] = list(zip(*map(astuple, map(self._in_one, records)), strict=True))
        return found if self._is_in_order else list(self._pick(found))


def leading_keys(path: Path) -> _Keys:
    """Return the keys with which a path begins, up to its first array."""
    keys: list[str] = []
    for step in path:
        if isinstance(step, int) or step == EACH:
            break
        keys.append(step)
    return tuple(keys)


def _picker(places: list[int]) -> Callable[[Sequence[Any]], Iterable[Any]]:
    if len(places) > 1:
        return itemgetter(*places)
    return lambda flat: [flat[place] for place in places]


def _compile(leaves: Sequence[tuple[_Keys, Any]]) -> tuple[list[tuple[Any, Any]], list[int]]:
    """Return the decoders to run one after the other, and where in their flattened answers each leaf stands."""
    forests: list[tuple[_Tree, list[_Keys]]] = []
    for index, (keys, wire) in enumerate(leaves):
        tree, taken = next((forest for forest in forests if not _is_crossed(keys, forest[1])), ({}, []))
        if not taken:
            forests.append((tree, taken))
        taken.append(keys)
        for key in keys[:-1]:
            tree = tree.setdefault(key, {})
        tree[keys[-1]] = (index, wire)
    layers = []
    places = [0] * len(leaves)
    base = 0
    # Without a leaf, it still has to be an object.
    for tree, _ in forests or [({}, [])]:
        nodes, base = _lay_out(tree, base, places)
        layers.append((_decoder(_struct(tree)), nodes))
    return layers, places


def _is_crossed(keys: _Keys, taken: list[_Keys]) -> bool:
    return any(keys[: len(other)] == other or other[: len(keys)] == keys for other in taken)


def _struct(tree: _Tree) -> Any:
    """Return the msgspec type of one object: first its leaves, then the objects below it; all of them may be absent."""
    parts: list[Any] = []
    for key, part in _ordered(tree):
        wire = _struct(part) if isinstance(part, dict) else part[1]
        parts.append((f"part{len(parts)}", _or_null(wire), None, key))
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


def _decoder(wire: Any) -> Any:
    """Return the decoder of a type; where that may be anything, numbers with a point or an exponent are exact."""
    return msgspec.json.Decoder(wire, float_hook=Decimal)


def _or_null(wire: Any) -> Any:
    return wire if wire is Raw else wire | None


def _below(steps: Path, wire: Any) -> Callable[[Raw], Any]:
    """Return what decodes the value at some steps below the token of an array."""
    if EACH not in steps:
        decoder = _decoder(_or_null(_nested(steps, wire)))
        return lambda token: _down(decoder.decode(token), steps)
    first = steps.index(EACH)
    arrays = _decoder(_or_null(_nested(steps, Raw)))
    found = None if wire is Raw else _decoder(wire)

    def gathered(token: Raw) -> Any:
        items = _down(arrays.decode(token), steps[:first])
        if items is None:
            return None
        text = b"[" + b",".join(_each(items, steps[first:])) + b"]"
        return Raw(text) if found is None else found.decode(text)

    return gathered


def _nested(steps: Path, wire: Any) -> Any:
    """Return the msgspec type of what stands at the beginning of some steps."""
    if not steps:
        return wire
    step, inner = steps[0], _or_null(_nested(steps[1:], wire))
    if isinstance(step, int) or step == EACH:
        return list[inner]  # type: ignore[valid-type]  # it is for msgspec, at run time
    return msgspec.defstruct("Below", [("below", inner, None)], rename={"below": step}, frozen=True, gc=False)


def _down(node: Any, steps: Path) -> Any:
    for step in steps:
        if node is None:
            return None
        node = (node[step] if step < len(node) else None) if isinstance(step, int) else node.below
    return node


def _each(node: Any, steps: Path) -> Iterator[Raw]:
    """Yield the tokens at some steps below a node; of an array that is not there, none."""
    if EACH not in steps:
        yield _down(node, steps) or _NULL
        return
    first = steps.index(EACH)
    for item in _down(node, steps[:first]) or ():
        yield from _each(item, steps[first + 1 :])
