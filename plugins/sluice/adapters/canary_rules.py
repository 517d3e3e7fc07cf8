"""The draft of a sync in; the rules that are broken between its canary and itself, since both fill one table, out."""

from collections.abc import Iterator
from typing import Final

from sluice.adapters.spec_draft import Draft, undeclared
from sluice.adapters.yaml_positions import Path, Problem

_FIELDS: Final[Path] = ("canary", "fields")


def broken_rules(draft: Draft) -> Iterator[Problem]:
    """Yield each rule that does not hold. A part that is wrong in itself is left alone."""
    canary = draft.raw.get("canary")
    if not isinstance(canary, dict):
        return
    if canary.get("version") == draft.raw.get("version", 1):
        yield Problem(("canary", "version"), "is the version of the spec itself: a canary is another one")
    if canary.get("fields"):
        yield from _fields(draft, Draft({**draft.raw, "fields": canary["fields"]}))


def _fields(draft: Draft, canary: Draft) -> Iterator[Problem]:
    """Check that the canary has the same fields of the same types, and tells objects apart as the spec does."""
    first: dict[str, int] = {}
    for index, item in enumerate(canary.fields):
        name = item.get("name")
        if not isinstance(name, str):
            continue
        if first.setdefault(name, index) != index:
            yield Problem((*_FIELDS, index, "name"), f"{name!r} stands twice; the first is fields[{first[name]}] of the canary")
        yield from undeclared(draft, (*_FIELDS, index, "name"), name)
        yield from _one_field(draft, canary, index, name)
    if missing := [name for name in reversed(draft.declared) if name not in canary.declared]:
        yield Problem(_FIELDS, f"{', '.join(missing)}: missing; both versions fill one table, so a canary has all fields")


def _one_field(draft: Draft, canary: Draft, index: int, name: str) -> Iterator[Problem]:
    ours, theirs = draft.declared.get(name), canary.declared.get(name)
    if ours is None or theirs is None:
        return
    if ours.type != theirs.type:
        yield Problem(
            (*_FIELDS, index, "type"),
            f"{name!r} is {theirs.type.sql} here and {ours.type.sql} in fields: both versions fill one table",
        )
    elif name in _telling(draft) and ours.model_copy(update={"description": theirs.description}) != theirs:
        yield Problem(
            (*_FIELDS, index),
            f"{name!r} says which object it is, or how old it is, and that is the same in all versions: write it as in fields",
        )


def _telling(draft: Draft) -> set[str | None]:
    """Return the fields that tell objects and their versions apart, and how far fetching has come."""
    named = (*draft.object.key, draft.object.version, draft.object.deleted) if draft.object else ()
    watermark = draft.source.watermark if draft.source else None
    return {*named, *(watermark.fields if watermark else ())}
