"""Types that decode what stands at some places of a JSON document and skip the rest: dotted places in, the decoded out."""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import UNSET, Raw


def planted(tree: dict[str, Any], path: Sequence[str], kind: Any) -> None:
    """Let the tree decode the value at a path as that kind."""
    for key in path[:-1]:
        tree = tree.setdefault(key, {})
    if path:
        tree[path[-1]] = kind


def level(tree: dict[str, Any]) -> Any:
    """Return a struct type that decodes the members named in `tree` and skips all others."""
    names = {f"member_{place}": key for place, key in enumerate(tree)}
    kinds = {name: level(tree[key]) if isinstance(tree[key], dict) else tree[key] for name, key in names.items()}
    members = [(name, _optional(kind), UNSET) for name, kind in kinds.items()]
    return msgspec.defstruct("Level", members, rename=names, namespace={"names": {key: name for name, key in names.items()}})


def at(found: Any, path: Sequence[str]) -> Any:
    """Return what the path leads to: None where it is null, `UNSET` where it is absent or the path ends early."""
    for key in path:
        if found is UNSET or found is None:
            return UNSET
        found = getattr(found, type(found).names[key])
    return found


def _optional(kind: Any) -> Any:
    return kind | msgspec.UnsetType if kind is Raw else kind | None | msgspec.UnsetType
