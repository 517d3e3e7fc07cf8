"""A query as the spec has it in, with what it is asked for; the query with parameters, and their values, out."""

from datetime import datetime
from decimal import Decimal
from types import SimpleNamespace
from typing import Any, Final

from jinja2 import StrictUndefined, TemplateError, pass_context
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

from sluice.adapters.sources.sql.fragments import MARK, Fragment, Value
from sluice.adapters.sources.sql.quoting import complaint, misplaced
from sluice.errors import SpecInvalid
from sluice.model.scalars import spell_instant
from sluice.ports import PageRequest

_COLLECTED: Final = "the values of the parameters"
"""What templates cannot call anything."""


@pass_context
def _collect(context: Context, value: Any) -> str:
    """Keep the value of a template for the parameter that stands in its place."""
    if isinstance(value, StrictUndefined):
        str(value)  # raises, naming what is not known
    if value is not None and not isinstance(value, str | int | float | Decimal):
        raise ValueError(f"a parameter is a text or a number, not {type(value).__name__}")
    if isinstance(value, str) and MARK in value:
        raise ValueError("a parameter can hold neither NUL characters nor other parameters")
    context[_COLLECTED].append(str(value) if isinstance(value, str) else value)
    return MARK


_ENVIRONMENT: Final = ImmutableSandboxedEnvironment(undefined=StrictUndefined, autoescape=False, finalize=_collect)
_ENVIRONMENT.globals.clear()


class QueryTemplate:
    """The compiled query of one source."""

    def __init__(self, query: str) -> None:
        """Compile it; raise `SpecInvalid` if it is no template."""
        try:
            self._template = _ENVIRONMENT.from_string(query)
        except TemplateError as exc:
            raise SpecInvalid([f"source.query: is no valid template: {exc}"]) from exc

    def rendered(self, request: PageRequest) -> Fragment:
        """Return the query for a request. What is not known is null there, and false in an `if`."""
        values: list[Value] = []
        known = {
            "shard": SimpleNamespace(**request.shard),
            "window": SimpleNamespace(start=_instant(request.window_start), end=_instant(request.window_end)),
            "watermark": request.watermark,
            "until": request.until,
        }
        try:
            text = self._template.render({**known, _COLLECTED: values})
        except (TemplateError, TypeError, ValueError, ArithmeticError) as exc:
            names = [*(f"shard.{name}" for name in request.shard), "window.start", "window.end", "watermark", "until"]
            raise SpecInvalid([f"source.query: cannot be rendered: {exc}; known: {', '.join(names)}"]) from exc
        if (place := misplaced(text, MARK)) is not None:
            raise SpecInvalid([f"source.query: {complaint(place)}"])
        if text.count(MARK) != len(values):
            raise SpecInvalid(["source.query: blocks that filter or repeat what templates yield cannot be used"])
        return Fragment(text.rstrip().removesuffix(";"), tuple(values))


def _instant(instant: datetime | None) -> str | None:
    return None if instant is None else spell_instant(instant)
