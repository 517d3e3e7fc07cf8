"""Templates of a source: the spec's path and query in, with what a request is for; the path and query to ask for out."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, Final
from urllib.parse import quote

from jinja2 import StrictUndefined, Template, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from sluice.errors import SpecInvalid
from sluice.model.source import RestSource
from sluice.ports import PageRequest

_DOT_PARTS: Final = (".", "..")


def _quoted(value: object) -> str:
    return quote(str(value), safe="")


_QUERY: Final = ImmutableSandboxedEnvironment(undefined=StrictUndefined, autoescape=False)
_PATH: Final = ImmutableSandboxedEnvironment(undefined=StrictUndefined, autoescape=False, finalize=_quoted)


class RequestTemplates:
    """The compiled templates of one source."""

    def __init__(self, source: RestSource) -> None:
        """Compile them; raise `SpecInvalid` with all that cannot be used."""
        problems: list[str] = []
        self._path = _compiled(_PATH, "source.path", source.path, problems)
        self._query = {name: _compiled(_QUERY, f"source.query.{name}", text, problems) for name, text in source.query.items()}
        if problems:
            raise SpecInvalid(problems)

    def path(self, request: PageRequest) -> str:
        """Return the path, each value in it quoted, so that no value can lead elsewhere."""
        path = _rendered("source.path", self._path, request)
        if any(part in _DOT_PARTS for part in path.split("/")):
            raise SpecInvalid([f"source.path: becomes {path!r}, and a part `.` or `..` leads elsewhere"])
        return path

    def query(self, request: PageRequest) -> dict[str, str]:
        """Return the parameters that do not come out empty."""
        rendered = {name: _rendered(f"source.query.{name}", template, request) for name, template in self._query.items()}
        return {name: value for name, value in rendered.items() if value}


def _compiled(environment: ImmutableSandboxedEnvironment, place: str, text: str, problems: list[str]) -> Template:
    try:
        return environment.from_string(text)
    except TemplateError as exc:
        problems.append(f"{place}: is no valid template: {exc}")
        return environment.from_string("")


def _rendered(place: str, template: Template, request: PageRequest) -> str:
    values: dict[str, Any] = {
        "shard": SimpleNamespace(**request.shard),
        "window": SimpleNamespace(start=_instant(request.window_start), end=_instant(request.window_end)),
        "watermark": request.watermark or "",
    }
    try:
        return template.render(values)
    except (TemplateError, TypeError, ValueError, ArithmeticError) as exc:
        known = [*(f"shard.{name}" for name in request.shard), "window.start", "window.end", "watermark"]
        raise SpecInvalid([f"{place}: cannot be rendered: {exc}; known: {', '.join(known)}"]) from exc


def _instant(instant: datetime | None) -> str:
    return "" if instant is None else instant.astimezone(UTC).isoformat().replace("+00:00", "Z")
