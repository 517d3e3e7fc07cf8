"""The draft of a sync in; the rules of its watermark that are broken out."""

from collections.abc import Iterator

from sluice.adapters.spec_draft import Draft, undeclared
from sluice.adapters.yaml_positions import Path, Problem
from sluice.model.fields import FieldSpec, TypeName
from sluice.model.watermark import WATERMARK_TYPES, WatermarkSpec, WatermarkType

_PLACE: Path = ("source", "watermark")


def broken_rules(draft: Draft) -> Iterator[Problem]:
    """Yield each rule that does not hold. A part that is wrong in itself is left alone."""
    mark = draft.source.watermark if draft.source else None
    if mark is None:
        return
    for name in mark.fields:
        yield from undeclared(draft, _PLACE, name)
        kind = draft.type_of(name)
        if kind is not None and kind not in WATERMARK_TYPES:
            yield Problem(_PLACE, f"{name!r} is {kind}, which does not order; allowed: {', '.join(sorted(WATERMARK_TYPES))}")
    fields = [field for name in mark.fields if (field := draft.declared.get(name)) is not None]
    if not fields or fields[0].type.name not in WATERMARK_TYPES:
        return
    first = fields[0]
    for other in fields[1:]:
        if (other.type.name, other.format) != (first.type.name, first.format):
            yield Problem(
                _PLACE, f"{other.name!r} is not of the type and format of {first.name!r}: their values do not compare"
            )
    yield from _of_values(mark, first)


def _of_values(mark: WatermarkSpec, first: FieldSpec) -> Iterator[Problem]:
    """Check what the values are said to be, and what is said of such values."""
    own, is_text = WATERMARK_TYPES[first.type.name], first.type.name is TypeName.TEXT
    of = mark.type or own
    if of is not own and not is_text:
        yield _useless("type", f"{first.name!r} is {first.type.name}, whose values are of type {own}")
    if mark.collation != "binary" and of is not WatermarkType.TEXT:
        yield _useless("collation", f"the values are of type {of}, and only texts have a collation")
    if mark.zone is not None and of is not WatermarkType.DATE and not (of is WatermarkType.INSTANT and is_text):
        told = "come with their offset" if of is WatermarkType.INSTANT else "tell no time"
        yield _useless("zone", f"the values of {first.name!r} {told}")
    if mark.margin and of not in (WatermarkType.INSTANT, WatermarkType.DATE):
        yield _useless("margin", f"the values are of type {of}, which tell no time")
    if mark.lookback is None:
        return
    if of is WatermarkType.TEXT:
        yield _useless("lookback", "nothing can be taken off a text")
    elif isinstance(mark.lookback, int) is not (of is WatermarkType.INTEGER):
        allowed = "a whole number" if of is WatermarkType.INTEGER else "a duration such as 15m"
        yield Problem((*_PLACE, "lookback"), f"the values are of type {of}, so this has to be {allowed}")


def _useless(key: str, why: str) -> Problem:
    return Problem((*_PLACE, key), f"{why}: leave this line out")
