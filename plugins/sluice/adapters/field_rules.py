"""The draft of a sync, and its scalars as they are written, in; what its fields say that contradicts itself out."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from sluice.adapters.field_values import broken_values
from sluice.adapters.spec_draft import Draft
from sluice.adapters.yaml_positions import Path, Problem
from sluice.model.fields import ARRAYS, FieldSpec, TypeName
from sluice.model.paths import EACH

Texts = Mapping[Path, str]

_SOURCES: Final = ("constant", "rest", "path", "coalesce", "concat")
"""The keys that say where a value comes from, those first that leave nothing else to say."""
_WITH_SOURCE: Final = {
    "constant": frozenset({"name", "type", "description", "constant"}),
    "rest": frozenset({"name", "type", "description", "rest"}),
}
_ORDERED: Final = (
    TypeName.INTEGER,
    TypeName.BIGINT,
    TypeName.NUMERIC,
    TypeName.DOUBLE,
    TypeName.DATE,
    TypeName.TIMESTAMPTZ,
)
_SCALARS: Final = tuple(name for name in TypeName if name not in ARRAYS | {TypeName.JSON})
_ALLOWED_TYPES: Final[Mapping[str, tuple[TypeName, ...]]] = {
    "rest": (TypeName.JSON,),
    "concat": _SCALARS,
    "lower": (TypeName.TEXT, TypeName.BOOLEAN),
    "map": _SCALARS,
    "minimum": _ORDERED,
    "maximum": _ORDERED,
    "pattern": (TypeName.TEXT,),
    "min_length": (TypeName.TEXT, *sorted(ARRAYS)),
    "max_length": (TypeName.TEXT, *sorted(ARRAYS)),
    "allowed": _SCALARS,
}
"""By key, the types it is of; a key that is not here is of all."""
_KEY_HAS_NO: Final = ("constant", "default")
_MARK_HAS_NO: Final = ("constant", "coalesce", "concat", "lower", "map", "default")


def broken_rules(draft: Draft, texts: Texts) -> Iterator[Problem]:
    """Yield each rule that does not hold. A field that is wrong in itself is left alone."""
    for place, listing in listings(draft):
        yield from _listed(listing, texts, place)


def listings(draft: Draft) -> Iterator[tuple[Path, Draft]]:
    """Yield the draft, and the same with the fields of its canary, each with the place of its fields."""
    yield ("fields",), draft
    canary = draft.raw.get("canary")
    if isinstance(canary, dict) and isinstance(canary.get("fields"), list):
        yield ("canary", "fields"), Draft({**draft.raw, "fields": canary["fields"]})


def _listed(draft: Draft, texts: Texts, place: Path) -> Iterator[Problem]:
    first_rest: int | None = None
    for index, (item, field) in enumerate(zip(draft.fields, draft.specs, strict=True)):
        if field is None:
            continue
        at = (*place, index)
        problems = [
            *(
                Problem((*at, key), "is null: leave this line out")
                for key in ("constant", "default")
                if key in item and item[key] is None
            ),
            *_sources(at, item),
            *_types(at, field, item),
            *_paths(at, field, item),
            *_bounds(at, field),
            *_roles(draft, at, field, item),
        ]
        if field.rest:
            if first_rest is not None:
                problems.append(Problem((*at, "rest"), f"stands twice; the first is fields[{first_rest}]"))
            first_rest = index if first_rest is None else first_rest
        # What a value has to be is only told where it is clear which keys count.
        yield from problems or broken_values(at, field, item, texts)


def _sources(at: Path, item: Mapping[str, Any]) -> Iterator[Problem]:
    """Check that a value comes from one place, and that nothing is said of what cannot come."""
    given = [key for key in _SOURCES if (key == "constant" and item.get(key) is not None) or item.get(key)]
    for key in given[1:]:
        yield Problem((*at, key), f"a value comes from one place, and {given[0]} says which: leave one of the two out")
    alone = _WITH_SOURCE.get(given[0]) if given else None
    if alone is not None:
        for key in item:
            if key not in alone and key not in given:
                yield Problem((*at, key), f"says nothing beside {given[0]}: leave this line out")
    elif item.get("default") is not None and item.get("required") is True:
        yield Problem((*at, "required"), "never rejects, since default stands in where there is no value: leave one out")


def _types(at: Path, field: FieldSpec, item: Mapping[str, Any]) -> Iterator[Problem]:
    for key, allowed in _ALLOWED_TYPES.items():
        if _is_absent(item.get(key)) or field.type.name in allowed:
            continue
        if key == "lower" and field.map is not None and field.type.name in _SCALARS:
            continue
        yield Problem((*at, key), f"is not of {field.type.name}; allowed: of {', '.join(allowed)}")


def _is_absent(value: Any) -> bool:
    """Whether a key is left out, or says no more than if it were; 0 is something."""
    return value is None or value is False


def _paths(at: Path, field: FieldSpec, item: Mapping[str, Any]) -> Iterator[Problem]:
    if field.concat is not None and not field.paths and field.constant is None and not field.rest:
        yield Problem((*at, "concat"), "has no path: what is the same for all records is a constant")
    if field.type.name in ARRAYS or field.type.name is TypeName.JSON:
        return
    key = next((key for key in ("path", "coalesce", "concat") if item.get(key)), "name")
    if any(EACH in path for path in field.paths):
        yield Problem((*at, key), f"{EACH} yields a list, and {field.type.sql} is none; allowed: of json and of arrays")


def _bounds(at: Path, field: FieldSpec) -> Iterator[Problem]:
    if field.min_length is not None and field.max_length is not None and field.min_length > field.max_length:
        yield Problem((*at, "min_length"), f"{field.min_length} is above max_length: {field.max_length}")
    if field.lower and field.map is not None:
        for text in field.map:
            # Letter by letter, as what comes is lowered: by itself Python looks at the letters beside a sigma, too.
            lowered = "".join(letter.lower()[0] for letter in text)
            if text != lowered:
                yield Problem((*at, "map", text), f"{text!r} never comes, since lower: true is done before: write {lowered!r}")


def _alone_may_say(draft: Draft, field: FieldSpec) -> str | None:
    """Return what a field is, and why nothing stands in for it; None: something may."""
    if draft.object is not None and field.name in draft.object.key:
        return "part of object.key: all objects without one would be the same"
    if draft.object is not None and field.name == draft.object.deleted:
        return "object.deleted: an object is gone only if its record says so"
    return None


def _roles(draft: Draft, at: Path, field: FieldSpec, item: Mapping[str, Any]) -> Iterator[Problem]:
    """Check that what tells objects apart, and how far fetching has come, is the supplier's own."""
    if (why := _alone_may_say(draft, field)) is not None:
        for key in _KEY_HAS_NO:
            if item.get(key) is not None:
                yield Problem((*at, key), f"{field.name!r} is {why}")
    mark = draft.source.watermark if draft.source is not None else None
    if mark is None or field.name not in mark.fields:
        return
    for key in _MARK_HAS_NO:
        if not _is_absent(item.get(key)):
            yield Problem((*at, key), f"{field.name!r} is the watermark, whose values go back to the supplier as they came")
    if field.is_patterned:
        problem = f"{field.name!r} is the watermark, which cannot be written by a pattern; allowed: epoch_s, epoch_ms, or none"
        yield Problem((*at, "format"), problem)
    if field.zone is not None:
        # In UTC it would go back; a supplier that goes by its own clocks would leave out hours.
        problem = f"{field.name!r} is the watermark: let it be text, with source.watermark type: instant and zone: {field.zone}"
        yield Problem((*at, "zone"), problem)
