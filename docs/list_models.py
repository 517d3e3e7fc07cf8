"""`python docs/list_models.py` writes spec.md and stages.md of docs/reference from the models, so that they cannot drift."""

import re
import types
import typing
from collections.abc import Iterable, Iterator
from datetime import timedelta
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import AwareDatetime
from pydantic.fields import FieldInfo
from typing_extensions import TypeAliasType

from sluice.model.base import Frozen
from sluice.model.fields import ARRAYS, FieldType, LiteralText, TypeName
from sluice.model.paths import FieldPath
from sluice.model.paths import Path as RecordPath
from sluice.model.scalars import Limit, Share, Size, ZoneName
from sluice.model.spec import SyncSpec
from sluice.model.stage import StagePolicy

FOLDER: Final = Path(__file__).with_name("reference")

_SPEC: Final = """\
# Spec

All keys of `include/syncs/NAME.yaml`, as its models declare them. A key that is not here is refused by `sluice validate`, with
file, line, and what is allowed. What the keys are for is told in [Sources](../sources.md), [Fields](../fields.md),
[Review](../review.md), [Transforms](../transforms.md) and [the guide](../guide.md).

"""

_STAGES: Final = """\
# Stages

All keys of a stage in `include/stages.yaml`. They stand under `defaults`, for every stage, or under `stages: {NAME: …}`, for
one, which writes down only what it wants otherwise. `sluice validate` refuses what contradicts itself, such as a `heartbeat` of
a third of `lease_ttl` or more.

"""

_VALUES: Final = """\
## Values

| | is written |
| --- | --- |
| duration | a number and a unit: `90s`, `15m`, `24h`, `7d` |
| size | a number of bytes, or with a unit: `512kB`, `16MB`, `1GB` (a kB is 1,000 bytes) |
| share | a percentage above nothing: `50%`, `2.5%` |
| limit | a number of objects, a share, or both, of which the stricter counts: `0`, `500`, `0.5%`, `{{count: 500, share: 5%}}` |
| path | keys joined by dots: `location.lat`, `rooms[0].code`, `rooms[*].code`; or a list of steps |
| type | one of Postgres's: {types}, `numeric(p,s)`; and arrays of all but json: `text[]` |
| time zone | its name: `Europe/Berlin` |
""".format(types=", ".join(f"`{name}`" for name in TypeName if name not in ARRAYS))

_NAMED: Final = ((Size, "size"), (Share, "share"), (ZoneName, "time zone"), (FieldPath, "path"), (RecordPath, "path"))
"""Aliases of plain types that mean more than these."""
_PLAIN: Final[dict[Any, str]] = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "`true` or `false`",
    timedelta: "duration",
    Decimal: "share",
    AwareDatetime: "time with its zone",
    Limit: "limit",
    FieldType: "type",
    LiteralText: "`{ text: … }`",
    Any: "text, number, `true`, `false` or `null`",
}
_BOUNDS: Final = (("ge", "at least {}"), ("gt", "more than {}"), ("le", "at most {}"))


def pages() -> dict[Path, str]:
    """Return the text of each page."""
    return {
        FOLDER / "spec.md": _SPEC + "\n".join(_sections(SyncSpec)) + "\n" + _VALUES,
        FOLDER / "stages.md": _STAGES + "\n".join(_sections(StagePolicy)) + "\n" + _VALUES,
    }


def _sections(root: type[Frozen]) -> Iterator[str]:
    """Yield a section for each model of a file, from its root on."""
    titles: dict[type[Frozen], str] = {}
    _name(root, "", titles)
    titles[root] = "Keys"
    for model, title in titles.items():
        hints = typing.get_type_hints(model, include_extras=True)
        names = sorted(model.model_fields, key=lambda name: name != "kind")
        rows = [_row(model, name, hints[name], titles) for name in names]
        table = ["| key | is | default | what it says |", "| --- | --- | --- | --- |", *rows]
        yield "\n".join([f"## {title}\n", f"{_prose(model)}\n", *table, ""])


def _name(model: type[Frozen], title: str, titles: dict[type[Frozen], str]) -> None:
    """Name a model after the first place of the file in which it stands, and then those below it."""
    if model in titles:
        return
    titles[model] = title
    for name, field in model.model_fields.items():
        place = f"{title.split(' ', maxsplit=1)[0]}.{name}".lstrip(".")
        below = _models(field.annotation)
        for each in below:
            _name(each, f"{place} ({_kind(each)})" if len(below) > 1 else place, titles)


def _prose(model: type[Frozen]) -> str:
    paragraphs = re.split(r"\n\s*\n", model.__doc__ or "")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def _row(model: type[Frozen], name: str, hint: Any, titles: dict[type[Frozen], str]) -> str:
    field = model.model_fields[name]
    cells = (f"`{name}`", _type(hint, titles), _default(field), _meaning(model, name, field, is_size=hint == Size))
    return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"


def _meaning(model: type[Frozen], name: str, field: FieldInfo, *, is_size: bool) -> str:
    if name == "kind":
        return "which kind"
    words = field.description
    if words is None and len(below := _models(field.annotation)) == 1:
        words = _prose(below[0]).split(". ")[0].rstrip(".")
        words = words[0].lower() + words[1:]
    if words is None:
        raise ValueError(f"{model.__name__}.{name} has neither a description nor a model of its own that says what it is")
    is_number = field.annotation in (int, float, int | None, float | None) and not is_size
    bounds = [text.format(getattr(each, key)) for each in field.metadata for key, text in _BOUNDS if hasattr(each, key)]
    return "; ".join([words, *([", ".join(bounds)] if bounds and is_number else [])])


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True, validated_data={})
    if value is None or value in ((), {}, "") or isinstance(value, Frozen):
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _type(hint: Any, titles: dict[type[Frozen], str]) -> str:
    """Return what a key takes, in words; models as links to their sections."""
    if isinstance(hint, TypeAliasType):
        return "any value"
    for alias, words in _NAMED:
        if hint == alias:
            return words
    if hint in _PLAIN:
        return _PLAIN[hint]
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return _choice(hint)
    if hint in titles:
        return f"[{_kind(hint) if titles[hint].endswith(')') else titles[hint]}](#{_anchor(titles[hint])})"
    return _made_of(hint, titles)


def _made_of(hint: Any, titles: dict[type[Frozen], str]) -> str:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        return _type(arguments[0], titles)
    if origin is Literal:
        return _choice(arguments)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(dict.fromkeys(_type(each, titles) for each in arguments if each is not type(None)))
    if origin is tuple:
        return f"list of {_type(arguments[0], titles)}"
    if origin is dict:
        return f"mapping of {_type(arguments[1], titles)}"
    raise TypeError(f"nobody has said how to call {hint}")


def _choice(values: Iterable[object]) -> str:
    return " or ".join(f"`{value}`" for value in values)


def _models(hint: Any) -> list[type[Frozen]]:
    """Return the models below a type that have sections of their own."""
    if isinstance(hint, type) and typing.get_origin(hint) is None:
        return [hint] if issubclass(hint, Frozen) and hint not in _PLAIN else []
    if isinstance(hint, TypeAliasType) or typing.get_origin(hint) is Literal:
        return []
    return [model for argument in typing.get_args(hint) for model in _models(argument)]


def _kind(model: type[Frozen]) -> str:
    return str(typing.get_args(model.model_fields["kind"].annotation)[0])


def _anchor(title: str) -> str:
    return re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower())


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
