"""Refusals of pages behind the first: an error and what was asked in; the same out, or what it means for the paging."""

import re
from collections.abc import Callable
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from sluice.adapters.sources.transport.request import Request
from sluice.errors import CursorExpired, PaginationLimit, SluiceError
from sluice.model.source import RestSource

_LIMITS: Final = frozenset({400, 403, 416, 422, 429})
_EXPIRIES: Final = frozenset({400, 404, 422})

_PLACE: Final = re.compile(r"paginat|offset|\bpages?\b|\bwindow\b|\bskip\b|first \d", re.IGNORECASE)
_SURE_PLACE: Final = re.compile(r"paginat|\boffset|\bskip\b", re.IGNORECASE)
"""What is left of it under 429: limits of manners speak of windows, and lead to pages, too."""
_BOUND: Final = re.compile(
    r"limit|exceed|too (large|high|deep|big|far|great)|maxim|\bmax\b|at most|less than|only the first", re.IGNORECASE
)
_PACE: Final = re.compile(r"\brate|\bquota|\bper (second|minute|hour|day)|too many requests", re.IGNORECASE)
_CURSOR: Final = re.compile(r"cursor|token|scroll|\bpage", re.IGNORECASE)
_GONE: Final = re.compile(r"expired|invalid|not (found|valid)|unknown|no longer|stale|gone", re.IGNORECASE)
_COUNTED: Final = re.compile(r"page|offset|start|skip|from", re.IGNORECASE)
"""What a parameter may be called that takes a page's number or offset."""

Judge = Callable[[SluiceError], SluiceError]


def judge_of(source: RestSource, request: Request) -> Judge:
    """Return what knows better what a refusal of a page behind the first one means."""
    kind = source.cursor.kind
    is_counted = kind in ("page", "offset") or (request.url is not None and _is_counted(request.url))
    has_cursor = kind in ("body", "header", "next_url", "link")

    def judged(error: SluiceError) -> SluiceError:
        status, said = error.facts.get("status"), str(error.facts.get("said", ""))
        what = f"{error.facts.get('url')}: the supplier answered {status}: {said}."
        if is_counted and status in _LIMITS and _is_limit(said, status):
            return PaginationLimit(
                f"{what} It serves no page so far behind the first: cut the sync into smaller shards (ranges, windows), or "
                "page by keyset or cursor",
                **error.facts,
            )
        if has_cursor and (status == HTTPStatus.GONE or (status in _EXPIRIES and _is_expiry(said))):
            return CursorExpired(f"{what} The cursor is not good any more, so the shard begins again", **error.facts)
        return error

    return judged


def _is_limit(said: str, status: int) -> bool:
    if not _BOUND.search(said):
        return False
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return bool(_SURE_PLACE.search(said)) and not _PACE.search(said)
    return bool(_PLACE.search(said))


def _is_expiry(said: str) -> bool:
    return bool(_CURSOR.search(said) and _GONE.search(said))


def _is_counted(url: str) -> bool:
    return any(value.isdigit() and _COUNTED.search(name) for name, value in parse_qsl(urlsplit(url).query))
