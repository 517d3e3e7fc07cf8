"""Parameters of paging: a request and a value in; the request that carries it, in its address or its body, out."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from pydantic import JsonValue

from sluice.adapters.sources.transport.request import Request
from sluice.errors import SpecInvalid


def with_parameter(request: Request, into: Literal["query", "body"], name: str, value: float | str) -> Request:
    """Return the request with a parameter; a number in a body stays one. Raises `SpecInvalid` if the body has no such place."""
    if into == "query":
        return request.with_query(**{name: str(value)})
    return replace(request, body=_planted(request.body or {}, name.split("."), value, name))


def _planted(body: Mapping[str, JsonValue], path: Sequence[str], value: JsonValue, place: str) -> dict[str, JsonValue]:
    key, *below = path
    if below:
        inner = body.get(key) or {}
        if not isinstance(inner, dict):
            raise SpecInvalid([f"source.cursor: {place!r} leads through {key!r} of source.body, which is no object"])
        value = _planted(inner, below, value, place)
    return {**body, key: value}
