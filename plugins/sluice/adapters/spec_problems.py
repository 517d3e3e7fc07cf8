"""Pydantic's errors in; the same in words for the person who wrote the YAML out, each with the place it is about."""

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from sluice.adapters.yaml_positions import Path, Problem, describe
from sluice.model.auth import CODE_PATTERN
from sluice.model.paging import DOTTED_PATTERN
from sluice.model.scalars import as_written
from sluice.model.sharding import NAME_PATTERN
from sluice.model.source import HOST_PATTERN, PATH_PATTERN
from sluice.model.spec import STAGE_PATTERN

_PATTERNS: Final = {
    NAME_PATTERN: "has to begin with a lower-case letter and go on with lower-case letters, digits or _, at most 63 in all",
    STAGE_PATTERN: "has to begin with a lower-case letter and go on with lower-case letters, digits or -, at most 63 in all",
    DOTTED_PATTERN: "has to be keys joined by single dots, and have no quotes, backslashes or control signs",
    f"^$|{DOTTED_PATTERN}": "has to be keys joined by single dots, and have no quotes, backslashes or control signs, or empty",
    CODE_PATTERN: "has to be a dotted path: module.name",
    HOST_PATTERN: "has to be a host, `name` or `name:port`, without scheme and path",
    PATH_PATTERN: "has to begin with / and hold no ?, # or control sign: parameters belong under query",
}
_EXPECTED: Final = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "dict_type": "a mapping",
    "tuple_type": "a list",
    "list_type": "a list",
}
_BOUNDS: Final = {
    "greater_than": ("gt", "more than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "less than"),
    "less_than_equal": ("le", "at most"),
}
_TAG_ERRORS: Final = frozenset({"union_tag_invalid", "union_tag_not_found"})


def problems_of(model: type[BaseModel], error: ValidationError, texts: Mapping[Path, str]) -> list[Problem]:
    """Return what `error` says of a value for `model`; `texts` are the scalars as written."""
    problems: list[Problem] = []
    for detail in error.errors():
        place = _Place.of(model, detail["loc"])
        path = (*place.path, "kind") if detail["type"] in _TAG_ERRORS else place.path
        problems.append(Problem(path, _words(detail, place, texts)))
    return problems


def suggest(name: str, known: Iterable[str], word: str) -> str:
    """Return `did you mean …? allowed: …`, where `word` stands for "allowed"."""
    names = list(known)
    near = get_close_matches(name, [other for other in names if other != name], n=1, cutoff=0.6)
    return (f"did you mean {near[0]!r}? " if near else "") + f"{word}: {', '.join(names) or 'none'}"


class _Place:
    """Where an error is: the path in the YAML, and what the model declares there."""

    def __init__(self, path: Path, owner: type[BaseModel] | None, declared: FieldInfo | None, annotation: Any) -> None:
        self.path = path
        self.owner = owner
        self.declared = declared
        self.annotation = annotation

    @property
    def key(self) -> str:
        """The last part of the path."""
        return str(self.path[-1]) if self.path else ""

    @classmethod
    def of(cls, model: type[BaseModel], location: tuple[str | int, ...]) -> "_Place":
        """Follow pydantic's location through the model; the tags of unions in it are no keys of the YAML."""
        path: list[str | int] = []
        owner: type[BaseModel] | None = None
        declared: FieldInfo | None = None
        current: Any = model
        for part in location:
            current = _plain(current)
            if get_origin(current) in (Union, UnionType):
                current = next((arm for arm in get_args(current) if part in _kinds(arm)), None)
                continue
            path.append(part)
            owner, declared = None, None
            if isinstance(current, type) and issubclass(current, BaseModel):
                owner = current
                declared = current.model_fields.get(str(part))
                current = declared.annotation if declared else None
            else:
                current = (get_args(current) or (None,))[-1 if get_origin(current) is dict else 0]
        return cls(tuple(path), owner, declared, _plain(current))


def _plain(annotation: Any) -> Any:
    """Return an annotation without what does not change the shape of its YAML: metadata and the possibility of null."""
    while True:
        if get_origin(annotation) is Annotated:
            annotation = get_args(annotation)[0]
            continue
        if get_origin(annotation) in (Union, UnionType):
            arms = [arm for arm in get_args(annotation) if arm is not NoneType]
            if len(arms) == 1:
                annotation = arms[0]
                continue
        return annotation


def _kinds(arm: Any) -> tuple[Any, ...]:
    kind = getattr(_plain(arm), "model_fields", {}).get("kind")
    return get_args(kind.annotation) if kind is not None and get_origin(kind.annotation) is Literal else ()


def _words(detail: ErrorDetails, place: _Place, texts: Mapping[Path, str]) -> str:
    kind, given, context = detail["type"], detail["input"], detail.get("ctx", {})
    if kind in _EXPECTED:
        return _expected(_EXPECTED[kind], given, texts.get(place.path))
    if kind in _BOUNDS:
        name, words = _BOUNDS[kind]
        return f"is {given}, but has to be {words} {context[name]}"
    if kind in _WORDINGS:
        return _WORDINGS[kind](given, place, context)
    return detail["msg"][:1].lower() + detail["msg"][1:]


def _missing(_: Any, place: _Place, __: Mapping[str, Any]) -> str:
    described = place.declared.description if place.declared else None
    return "missing" + (f": {described}" if described else "")


def _unknown_key(_: Any, place: _Place, __: Mapping[str, Any]) -> str:
    return f"unknown key; {suggest(place.key, place.owner.model_fields if place.owner else (), 'allowed')}"


def _not_a_mapping(given: Any, place: _Place, _: Mapping[str, Any]) -> str:
    keys = getattr(place.annotation, "model_fields", {})
    return f"has to be a mapping with the keys {', '.join(keys)}, not {describe(given)}"


def _off_pattern(given: Any, _: _Place, context: Mapping[str, Any]) -> str:
    return f"{given!r} {_PATTERNS.get(context['pattern'], 'has to match ' + context['pattern'])}"


_WORDINGS: Final[Mapping[str, Callable[[Any, _Place, Mapping[str, Any]], str]]] = {
    "missing": _missing,
    "extra_forbidden": _unknown_key,
    "model_type": _not_a_mapping,
    "string_pattern_mismatch": _off_pattern,
    "string_too_short": lambda *_: "may not be empty",
    "too_short": lambda *_: "may not be empty",
    "value_error": lambda _, __, context: str(context["error"]),
    "literal_error": lambda given, place, _: _unknown_value(given, get_args(place.annotation)),
    "union_tag_invalid": lambda _, __, context: _unknown_value(
        context["tag"], [tag.strip(" '") for tag in context["expected_tags"].split(",")]
    ),
    "union_tag_not_found": lambda *_: "missing: says which sort of thing this is",
}


def _unknown_value(given: Any, allowed: Iterable[Any]) -> str:
    return f"unknown value {as_written(given)}; {suggest(str(given), [str(value) for value in allowed], 'allowed')}"


def _expected(what: str, given: Any, written: str | None) -> str:
    mend = f": write '{written}' in quotes" if what == "text" and written and not isinstance(given, str) else ""
    return f"has to be {what}, not {describe(given)}{mend}"
