"""Templates of a source: the spec's texts in, with what a request is for; what to ask for out."""

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import lru_cache
from types import SimpleNamespace
from typing import Any, Final
from urllib.parse import quote

from jinja2 import StrictUndefined, Template, TemplateError, Undefined
from jinja2.sandbox import ImmutableSandboxedEnvironment

from sluice.errors import SpecInvalid
from sluice.model.scalars import spell_instant
from sluice.ports import PageRequest

Values = Mapping[str, Any]
"""What templates see, by name."""

_DOT_PARTS: Final = (".", "..")
_MOST_KEPT: Final = 256
"""Templates, of which a source has some."""


class Listed:
    """A JSON object as templates see it: members, and nothing else, whatever they are called."""

    def __init__(self, members: Mapping[str, Any]) -> None:
        self._members = members

    def __getitem__(self, name: str) -> Any:
        return self._members[name]


def _spelled(value: Any) -> Any:
    """Return a value as JSON spells it, where Python spells it otherwise. What is not there stays so, and is refused."""
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else value


def _quoted(value: Any) -> Any:
    return value if isinstance(value, Undefined) else quote(str(_spelled(value)), safe="")


def _told(value: Any) -> Any:
    """Return a value quoted; refuse one that tells nothing, without which a path leads to something else."""
    if isinstance(value, Undefined):
        return value
    if value is None or not str(value) or isinstance(value, Listed | list):
        raise ValueError("a value in it is no text or number, or empty")
    return _quoted(value)


_TEXT: Final = ImmutableSandboxedEnvironment(undefined=StrictUndefined, autoescape=False, finalize=_spelled)
_PATH: Final = ImmutableSandboxedEnvironment(undefined=StrictUndefined, autoescape=False, finalize=_quoted)
_WHOLE_PATH: Final = ImmutableSandboxedEnvironment(undefined=StrictUndefined, autoescape=False, finalize=_told)


class TextTemplate:
    """A text of the spec that is a template."""

    def __init__(self, place: str, text: str, problems: list[str]) -> None:
        """Compile it; what is wrong with it goes to `problems`."""
        self.place = place
        self._template = _compiled(_TEXT, place, text, problems)

    def render(self, values: Values) -> str:
        """Return what it becomes; raise `SpecInvalid` if it cannot be rendered."""
        return _rendered(self.place, self._template, values)


class PathTemplate:
    """A path of the spec, each value in it quoted, so that no value can lead elsewhere."""

    def __init__(self, place: str, text: str, problems: list[str], *, is_whole: bool = False) -> None:
        """Compile it; what is wrong with it goes to `problems`. A path that has to be whole takes no empty value."""
        self.place = place
        self._template = _compiled(_WHOLE_PATH if is_whole else _PATH, place, text, problems)

    def render(self, values: Values) -> str:
        """Return the path; raise `SpecInvalid` if it cannot be rendered, or leads elsewhere."""
        path = _rendered(self.place, self._template, values)
        if any(part in _DOT_PARTS for part in path.split("/")):
            raise SpecInvalid([f"{self.place}: becomes {path!r}, and a part `.` or `..` leads elsewhere"])
        return path


def values_of(request: PageRequest) -> Values:
    """Return what templates see of a request for pages."""
    return {
        "shard": SimpleNamespace(**request.shard),
        "window": SimpleNamespace(start=_instant(request.window_start), end=_instant(request.window_end)),
        "watermark": request.watermark or "",
        "until": request.until or "",
    }


def listed(record: bytes) -> Any:
    """Return what templates see of a record: texts, whole numbers, other numbers as they are spelled, lists, members."""
    return json.loads(record, object_hook=Listed, parse_float=str, parse_constant=str)


def _compiled(environment: ImmutableSandboxedEnvironment, place: str, text: str, problems: list[str]) -> Template:
    try:
        return _template(environment, text)
    except TemplateError as exc:
        problems.append(f"{place}: is no valid template: {exc}")
        return environment.from_string("")


@lru_cache(_MOST_KEPT)
def _template(environment: ImmutableSandboxedEnvironment, text: str) -> Template:
    """Return a text, compiled: each shard of a run asks for the same ones."""
    return environment.from_string(text)


def _rendered(place: str, template: Template, values: Values) -> str:
    try:
        return template.render(values)
    except (TemplateError, TypeError, ValueError, LookupError, ArithmeticError) as exc:
        raise SpecInvalid([f"{place}: cannot be rendered: {exc}; known: {', '.join(_names(values))}"]) from exc


def _names(values: Values) -> Iterator[str]:
    for name, value in values.items():
        yield from (f"{name}.{part}" for part in vars(value)) if isinstance(value, SimpleNamespace) else (name,)


def _instant(instant: datetime | None) -> str:
    return "" if instant is None else spell_instant(instant)
