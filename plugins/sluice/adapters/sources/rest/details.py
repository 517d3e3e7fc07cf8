"""Pages of a list in; pages of the listed records, each fetched by itself, out."""

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from dataclasses import replace
from http import HTTPStatus
from typing import Any, Final

import msgspec
import structlog
from msgspec import Raw

from sluice import log_events
from sluice.adapters.sources.rest.not_json import not_json
from sluice.adapters.sources.rest.templates import PathTemplate, TextTemplate, Values, listed
from sluice.adapters.sources.transport.client import Answer
from sluice.adapters.sources.transport.endpoint import Endpoint
from sluice.adapters.sources.transport.request import Request
from sluice.errors import AnswerTooLarge, RecordsMissing, SpecInvalid, SupplierRefused
from sluice.mapping import tokens
from sluice.mapping.pages import PageSplitter
from sluice.model.source import DetailSpec
from sluice.ports import Page

_GONE: Final = (HTTPStatus.NOT_FOUND, HTTPStatus.GONE)
_WHOLE: Final = msgspec.json.Decoder(Raw)

Send = Callable[[Request], Answer]

log: Final = structlog.get_logger()


class Details:
    """Fetches what a list names. A stored page is a JSON array of what was received, byte for byte."""

    def __init__(self, detail: DetailSpec, records: str, endpoint: Endpoint, largest: int) -> None:
        """Compile the templates; raise `SpecInvalid` with all that cannot be used. `largest` bounds a page, in bytes."""
        problems: list[str] = []
        self._detail = detail
        self._endpoint = endpoint
        self._largest = largest
        self._path = PathTemplate("source.detail.path", detail.path, problems, is_whole=True)
        self._query = {name: TextTemplate(f"source.detail.query.{name}", text, problems) for name, text in detail.query.items()}
        if problems:
            raise SpecInvalid(problems)
        self._splitter = PageSplitter(records)
        self._record = tuple(detail.record.split(".")) if detail.record else ()

    def pages(self, lists: Iterator[Page], values: Values, send: Send, most: int | None = None) -> Iterator[Page]:
        """Yield a page for each page of the list, its records in the order of the list, and of each only the first `most`.

        A record that is gone (404 or 410) is left out, and told in the log. Another refusal fails the page.
        """
        with ThreadPoolExecutor(self._detail.at_once, "sluice-details") as executor:
            try:
                for page in lists:
                    yield replace(page, **self._fetched(page, values, send, executor, most))
            finally:
                executor.shutdown(wait=False, cancel_futures=True)

    def _fetched(
        self, page: Page, values: Values, send: Send, executor: ThreadPoolExecutor, most: int | None
    ) -> dict[str, Any]:
        split = self._splitter.split(page.body)
        bound = _Bound(self._largest)

        def fetch(index: int, record: bytes) -> bytes | None:
            # What is no JSON, or not UTF-8, is rejected by the mapping as it stands.
            return record if index in split.damaged else self._one(record, values, send, bound)

        asked = [
            # The threads log with the fields bound here.
            executor.submit(copy_context().run, fetch, index, bytes(record))
            for index, record in enumerate(split.records[:most])
        ]
        received = _all_of(asked)
        found = [one for one in received if one is not None]
        if len(found) < len(received):
            log.warning(log_events.RECORDS_GONE, gone=len(received) - len(found), listed=len(received))
        return {"body": b"[" + b",".join(found) + b"]", "records": len(found)}

    def _one(self, record: bytes, values: Values, send: Send, bound: "_Bound") -> bytes | None:
        """Return what is stored of a listed record; None if it is gone."""
        try:
            request = self._request({**values, "record": listed(record)})
        except (SpecInvalid, ValueError, RecursionError) as error:
            # A text is no object, so that the mapping rejects it, with what it says here, and no good record is stopped.
            return json.dumps(f"{error}; listed was {self._endpoint.snippet(record)}").encode()
        try:
            answer = send(request)
        except SupplierRefused as error:
            if error.facts.get("status") in _GONE:
                return None
            raise
        found = self._record_in(answer)
        bound.take(answer, len(found))
        return found

    def _request(self, values: Values) -> Request:
        query = {name: template.render(values) for name, template in self._query.items()}
        return Request(self._path.render(values), {name: value for name, value in query.items() if value})

    def _record_in(self, answer: Answer) -> bytes:
        """Return the record as it was received. One that is damaged inside passes: the mapping rejects it alone."""
        body = answer.body.strip()
        try:
            is_whole = tokens.opens(body) in (b"{", b"[") and tokens.end(body) == len(body)
            found = _at(body, self._record) if is_whole else None
        except tokens.Unbalanced:
            is_whole, found = False, None
        if not is_whole:
            raise not_json(answer, _complaint(body), self._endpoint)
        if found is None or found == b"null":
            raise self._no_record(answer)
        return found

    def _no_record(self, answer: Answer) -> RecordsMissing:
        return RecordsMissing(
            f"{answer.asked}: there is no record at `{self._detail.record}` (source.detail.record of the spec); the answer "
            f"begins: {self._endpoint.snippet(answer.body)}",
            url=answer.shown,
        )


class _Bound:
    """How many bytes a page may still take. Threads share it."""

    def __init__(self, largest: int) -> None:
        self._largest = largest
        self._taken = 0
        self._lock = threading.Lock()

    def take(self, answer: Answer, size: int) -> None:
        with self._lock:
            self._taken += size
            is_too_much = self._taken > self._largest
        if is_too_much:
            raise AnswerTooLarge(
                f"{answer.asked}: the records of one page of the list are larger than {self._largest} bytes together: ask for "
                "smaller pages, or raise max_body of the stage",
                url=answer.shown,
                limit=self._largest,
            )


def _all_of(asked: Sequence[Future[bytes | None]]) -> list[bytes | None]:
    """Return all results in order; if one fails, begin nothing more, and raise the first failure in that order."""
    wait(asked, return_when=FIRST_EXCEPTION)
    for one in asked:
        one.cancel()
    for one in asked:
        if not one.cancelled() and one.done() and one.exception() is not None:
            one.result()
    return [one.result() for one in asked]


def _at(body: bytes, path: Sequence[str]) -> bytes | None:
    """Return what stands at a path, as it is; None if it leads nowhere."""
    start, stop = 0, len(body)
    for key in path:
        span = tokens.members(body, start).get(key) if tokens.opens(body, start) == b"{" else None
        if span is None:
            return None
        start, stop = span
    return body[start:stop]


def _complaint(body: bytes) -> Exception:
    try:
        _WHOLE.decode(body)
    except (msgspec.MsgspecError, RecursionError) as exc:
        return exc
    return msgspec.DecodeError("it is a single value, and no record")
