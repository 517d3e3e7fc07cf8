"""Requests to a JSON API: the spec's templates in, with which pages are wanted; the request to begin with out."""

from collections.abc import Mapping
from typing import Any

from pydantic import JsonValue

from sluice.adapters.sources.rest.templates import PathTemplate, TextTemplate, Values, values_of
from sluice.adapters.sources.transport.request import Request, is_header_value
from sluice.errors import SpecInvalid
from sluice.model.header_names import misnamed
from sluice.model.source import RestSource
from sluice.ports import PageRequest


class Requests:
    """The compiled templates of one source."""

    def __init__(self, source: RestSource) -> None:
        """Compile them; raise `SpecInvalid` with all that cannot be used."""
        problems = [f"source.headers.{name}: {problem}" for name in source.headers if (problem := misnamed(name)) is not None]
        self._method = source.method
        self._path = PathTemplate("source.path", source.path, problems)
        self._query = _texts("source.query", source.query, problems)
        self._headers = _texts("source.headers", source.headers, problems)
        self._body = None if source.body is None else _compiled("source.body", source.body, problems)
        if problems:
            raise SpecInvalid(problems)

    def first(self, request: PageRequest) -> Request:
        """Return the request for the first page. What comes out empty is left out; no header can break into another."""
        values = values_of(request)
        return Request(
            path=self._path.render(values),
            query=_rendered(self._query, values),
            headers={name: _sendable(name, value) for name, value in _rendered(self._headers, values).items()},
            method=self._method,
            body=None if self._body is None else _body(self._body, values),
        )


def _texts(place: str, texts: Mapping[str, str], problems: list[str]) -> dict[str, TextTemplate]:
    return {name: TextTemplate(f"{place}.{name}", text, problems) for name, text in texts.items()}


def _rendered(templates: Mapping[str, TextTemplate], values: Values) -> dict[str, str]:
    rendered = {name: template.render(values) for name, template in templates.items()}
    return {name: value for name, value in rendered.items() if value}


def _compiled(place: str, value: JsonValue, problems: list[str]) -> Any:
    """Return the same with templates in the place of texts."""
    match value:
        case str():
            return TextTemplate(place, value, problems)
        case dict():
            return {name: _compiled(f"{place}.{name}", below, problems) for name, below in value.items()}
        case list():
            return [_compiled(f"{place}[{index}]", below, problems) for index, below in enumerate(value)]
        case _:
            return value


def _body(compiled: Any, values: Values) -> Any:
    """Return the same with texts in the place of templates; a mapping goes without those that come out empty."""
    match compiled:
        case TextTemplate():
            return compiled.render(values)
        case dict():
            rendered = {name: _body(below, values) for name, below in compiled.items()}
            return {name: value for name, value in rendered.items() if value != ""}
        case list():
            return [_body(below, values) for below in compiled]
        case _:
            return compiled


def _sendable(name: str, value: str) -> str:
    if not is_header_value(value):
        raise SpecInvalid(
            [f"source.headers.{name}: becomes {value[:80]!r}, but a header is one line of Latin-1 without control characters"]
        )
    return value
