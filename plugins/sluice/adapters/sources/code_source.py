"""A class of the team's own as a source: which pages are wanted in; its pages out, once they are what pages have to be."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any, Final, TypeVar

import xxhash
from pydantic import JsonValue

from sluice.adapters.sources.telling import told
from sluice.adapters.sources.transport.secrecy import Secrets
from sluice.adapters.user_code import is_of_connection, load, where_raised
from sluice.errors import (
    AnswerTooLarge,
    AnswerUnusable,
    CodeFailed,
    CursorStuck,
    SluiceError,
    SpecInvalid,
    SupplierUnavailable,
)
from sluice.guard.restraint import Restraint
from sluice.guard.retries import patiently
from sluice.mapping.pages import PageSplitter
from sluice.model import source as declared
from sluice.model.stage import StagePolicy
from sluice.ports import ConnectionInfo, Page, PageRequest, SourceContext

T = TypeVar("T")

_LONGEST_CURSOR: Final = 4096
"""Bytes; a cursor stands in the shard's row."""
_LONGEST_SHOWN: Final = 60


class CodeSource:
    """Asks an instance of the class, a new one for each reading. What it raises that is no error of ours is a `CodeFailed`."""

    def __init__(
        self,
        source: declared.CodeSource,
        info: ConnectionInfo | None,
        policy: StagePolicy,
        restraint_of: Callable[[str], Restraint],
        include: Path,
    ) -> None:
        """Import the class; raise `SpecInvalid` if there is none, or if it has no `pages`. Nothing is asked of it yet."""
        self._source = source
        self._policy = policy
        self._restraint = restraint_of(_address_of(info) or source.code)
        self._class = load(source.code, include, "source.code")
        if not isinstance(self._class, type) or not callable(getattr(self._class, "pages", None)):
            raise SpecInvalid([f"source.code: {source.code} is no class with a method `pages`: see the protocol Source"])
        self._secrets = Secrets((info.password if info else None) or "", others=_texts(dict(info.extra)) if info else ())
        self._context = SourceContext(info, source.options, policy, self._ask)
        self._splitter = PageSplitter(source.stored_records)

    def now(self) -> datetime | None:
        """Return the supplier's own time; None if the class has no `now`, or that does not tell."""
        with self._named():
            now = getattr(self._class(self._context), "now", None)
            return None if now is None else self._aware(now(), "`now` has returned")

    def pages(self, request: PageRequest) -> Iterator[Page]:
        """Yield the pages behind `request.cursor`, in order, until nothing follows.

        Each is checked before it is yielded: a cursor that would lead back raises `CursorStuck`.
        """
        with self._named():
            yield from self._checked(request)

    def _checked(self, request: PageRequest) -> Iterator[Page]:
        pages = self._class(self._context).pages(request)
        seen = {_mark_of(self._spelled(request.cursor))}
        with closing(pages) if hasattr(pages, "close") else nullcontext():
            following = iter(pages)
            for page in following:
                self._check(page)
                if page.cursor is None:
                    if next(following, None) is not None:
                        raise self._wrong("a page follows one without a cursor, which has to be the last: nothing could go on")
                    yield page
                    return
                cursor = self._spelled(page.cursor)
                if _mark_of(cursor) in seen:
                    raise CursorStuck(f"{self._source.code}: the cursor {cursor[:_LONGEST_SHOWN]} has been there before")
                seen.add(_mark_of(cursor))
                yield page

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Give what the class raises a name, so that it is the shard's failure and stops no other."""
        try:
            yield
        except SluiceError:
            raise
        except (Exception, SystemExit) as exc:  # noqa: BLE001  only the team could say which there are
            raise CodeFailed(f"{self._source.code} failed at {where_raised(exc)}: {self._told(exc)}") from None

    def _told(self, error: BaseException) -> str:
        """Return what an error says. It is shown without itself: its message and its causes may hold a secret."""
        return self._secrets.hide(f"{type(error).__name__}: {error}")

    def _ask(self, call: Callable[[], T]) -> T:
        def once() -> T:
            with told("CALL", self._source.code):
                try:
                    return call()
                except SluiceError:
                    raise
                except Exception as exc:
                    if not is_of_connection(exc):
                        raise
                    raise SupplierUnavailable(f"{self._source.code}: {self._told(exc)}") from None

        within = min(self._policy.timeouts.step, self._policy.no_progress_timeout)
        return patiently(lambda: self._restraint.ask(once), self._policy.retry, within)

    def _check(self, page: Any) -> None:
        """See that a page is one."""
        if not isinstance(page, Page) or not isinstance(page.body, bytes):
            raise self._wrong(
                f"`pages` has yielded {type(page).__name__}, and no Page with bytes: make one with Page.of(records)"
            )
        if len(page.body) > self._policy.max_body:
            raise AnswerTooLarge(
                f"{self._source.code}: a page has {len(page.body)} bytes, and max_body of the stage is {self._policy.max_body}"
            )
        try:
            records = len(self._splitter.split(page.body).records)
        except AnswerUnusable as exc:
            raise self._wrong(f"a page has to be a JSON array of records: {exc.message}") from exc
        if records != page.records:
            raise self._wrong(f"a page says that it has {page.records} records, and has {records}")
        self._aware(page.supplied_at, "a page has the time")

    def _spelled(self, cursor: JsonValue) -> str:
        """Return a cursor as JSON; it has to come back from state as it was."""
        try:
            text = json.dumps(cursor, allow_nan=False, sort_keys=True)
            is_fit = json.loads(text) == cursor and "\\u0000" not in text and len(text.encode()) <= _LONGEST_CURSOR
        except (TypeError, ValueError, RecursionError):
            is_fit = False
        if not is_fit:
            raise self._wrong(
                f"the cursor {str(cursor)[:_LONGEST_SHOWN]!r} is nothing that JSON has (lists, no tuples), or has a NUL or "
                f"more than {_LONGEST_CURSOR} bytes"
            )
        return text

    def _aware(self, moment: Any, what: str) -> datetime | None:
        if moment is None or (isinstance(moment, datetime) and moment.tzinfo is not None):
            return moment
        raise self._wrong(f"{what} {str(moment)[:_LONGEST_SHOWN]}, and no datetime with a time zone")

    def _wrong(self, what: str) -> AnswerUnusable:
        return AnswerUnusable(f"{self._source.code}: {what}")


def _address_of(info: ConnectionInfo | None) -> str | None:
    """Return who is asked, as the other sources call it; None if no connection says."""
    if info is None or not info.host:
        return None
    return f"{info.host}:{info.port}" if info.port else info.host


def _texts(value: JsonValue) -> Iterator[str]:
    """Yield the texts of an extra, each of which may be a secret, however deep it stands."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from chain.from_iterable(map(_texts, value.values()))
    elif isinstance(value, list):
        yield from chain.from_iterable(map(_texts, value))


def _mark_of(cursor: str) -> bytes:
    """Return what is remembered of a cursor, which may be long."""
    return xxhash.xxh3_128_digest(cursor.encode())
