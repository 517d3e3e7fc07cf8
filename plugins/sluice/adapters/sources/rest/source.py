"""A JSON API as a source: which pages are wanted in, the pages out, one after the other, as they were received."""

import json
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from datetime import datetime
from typing import Final

import xxhash
from pydantic import JsonValue

from sluice.adapters.sources.rest.acceptance import Acceptance
from sluice.adapters.sources.rest.ahead import AnswersAhead
from sluice.adapters.sources.rest.answers import AnswerReader
from sluice.adapters.sources.rest.details import Details
from sluice.adapters.sources.rest.judging import judge_of
from sluice.adapters.sources.rest.paging.pager import pager_of
from sluice.adapters.sources.rest.paging.placing import with_parameter
from sluice.adapters.sources.rest.paging.repeats import Repeats
from sluice.adapters.sources.rest.paging.stops import stuck
from sluice.adapters.sources.rest.reading import Reading
from sluice.adapters.sources.rest.requests import Requests
from sluice.adapters.sources.rest.templates import values_of
from sluice.adapters.sources.transport.auth import Auth
from sluice.adapters.sources.transport.client import Answer, HttpClient
from sluice.adapters.sources.transport.endpoint import Endpoint
from sluice.adapters.sources.transport.request import Request
from sluice.errors import AnswerUnusable, CursorStuck
from sluice.guard.restraint import Restraint
from sluice.model import source as declared
from sluice.model.stage import StagePolicy
from sluice.ports import ConnectionInfo, Page, PageRequest

_LED_ON: Final = ("body", "header", "next_url", "link")
"""Ways of paging in which each answer says what to ask with next."""


class RestSource:
    """Reads pages, by whatever way of paging the spec declares."""

    def __init__(
        self,
        source: declared.RestSource,
        info: ConnectionInfo,
        policy: StagePolicy,
        restraint_of: Callable[[str], Restraint],
        auth_of: Callable[[Endpoint], Auth],
    ) -> None:
        """Check spec and connection, and look up what holds requests to its host back; nothing is asked for yet."""
        self._source = source
        self._endpoint = Endpoint.of(info)
        self._restraint = restraint_of(self._endpoint.host)
        self._auth = auth_of(self._endpoint)
        self._policy = policy
        self._requests = Requests(source)
        self._reader = AnswerReader(source, self._endpoint)
        self._pager = pager_of(source, self._endpoint)
        self._acceptance = Acceptance(source.error, self._endpoint)
        self._details = Details(source.detail, source.records, self._endpoint, policy.max_body) if source.detail else None

    def now(self) -> datetime | None:
        """Return the supplier's own time; None if it does not tell. Asks without a template, and for no body."""
        fixed, _, _ = self._source.path.partition("{")
        with HttpClient(self._endpoint, self._policy, self._restraint, self._auth) as client:
            return client.date(Request(fixed, method="HEAD"))

    def pages(self, request: PageRequest) -> Iterator[Page]:
        """Yield the pages behind `request.cursor`, in order, until nothing follows.

        A page whose cursor would lead back is not yielded: `CursorStuck` is raised in its place.
        """
        with (
            HttpClient(self._endpoint, self._policy, self._restraint, self._auth, self._source.allow_hosts) as client,
            closing(self._listed(request, client)) as pages,
        ):
            if self._details is None:
                yield from pages
                return
            headers = self._requests.first(request).headers

            def send(one: Request) -> Answer:
                return client.send(one.with_headers(headers), accepted=self._acceptance.accept)

            yield from self._details.pages(pages, values_of(request), send, request.most)

    def _listed(self, request: PageRequest, client: HttpClient) -> Generator[Page]:
        first = self._sized(self._requests.first(request))
        cursor = request.cursor
        trail = {_mark_of(cursor)}
        repeats = Repeats()
        with AnswersAhead(self._asking(client), getattr(self._source.cursor, "at_once", 1)) as answers:
            while True:
                asked = self._pager.request(first, cursor)
                answer, is_early = answers.to(asked, is_first=cursor is None)
                reading = self._reader.read(answer)
                following = self._pager.after(cursor, reading)
                if following is None and is_early:
                    # What has moved to the end since then may not be there: an end counts if it was asked for last.
                    answer, _ = answers.to(asked, is_first=False)
                    reading = self._reader.read(answer)
                    following = self._pager.after(cursor, reading)
                self._require_no_secret(reading, following)
                if following is not None and _mark_of(following) in trail:
                    raise self._stuck(reading, following, is_same=following == cursor)
                if following is not None and self._source.cursor.kind in _LED_ON and repeats.are_endless(reading):
                    raise self._ignored(reading)
                yield Page(answer.body, len(reading.records), following, answer.supplied_at)
                if following is None:
                    return
                cursor = following
                trail.add(_mark_of(cursor))
                answers.expect(self._ahead(first, cursor))

    def _require_no_secret(self, reading: Reading, cursor: JsonValue) -> None:
        """Let no credential into the shard's row, which keeps the cursor."""
        if self._endpoint.secrets.are_in(cursor if isinstance(cursor, str) else json.dumps(cursor)):
            raise AnswerUnusable(
                f"{reading.asked}: the next cursor repeats what proves who asks, which Sluice keeps nowhere: declare another "
                "way of paging, or have the supplier send cursors without it",
                url=reading.answer.shown,
            )

    def _sized(self, first: Request) -> Request:
        """Return the request with the size of a page."""
        paging = self._source.cursor
        if paging.kind == "none" or paging.size is None or paging.size_parameter is None:
            return first
        return with_parameter(first, paging.into, paging.size_parameter, paging.size)

    def _asking(self, client: HttpClient) -> Callable[[Request, bool], Answer]:
        def ask(request: Request, is_first: bool) -> Answer:
            judged = None if is_first else judge_of(self._source, request)
            return client.send(request, judged, self._acceptance.accept)

        return ask

    def _ahead(self, first: Request, cursor: JsonValue) -> Iterator[Request]:
        """Yield the request for a cursor, and those that most likely follow."""
        ahead = cursor
        while ahead is not None:
            yield self._pager.request(first, ahead)
            ahead = self._pager.guess(ahead)

    def _stuck(self, reading: Reading, cursor: JsonValue, *, is_same: bool) -> CursorStuck:
        how = "is the one that was asked for" if is_same else "has been followed before"
        shown = self._endpoint.snippet(cursor if isinstance(cursor, str) else json.dumps(cursor))
        paging = self._source.cursor
        path = dict(paging.places()).get("path")
        place = f"source.cursor.kind: {paging.kind}" if path is None else f"source.cursor.path `{path}`"
        return stuck(reading, f"the next cursor {shown} ({place}) {how}, so the pages would never end")

    def _ignored(self, reading: Reading) -> CursorStuck:
        paging = self._source.cursor
        parameter = dict(paging.parameters()).get("parameter")
        what = f"source.cursor.kind: {paging.kind}" if parameter is None else f"source.cursor.parameter `{parameter}`"
        return stuck(
            reading,
            "the page has the records of those before, again and again, and each time another cursor: the supplier ignores "
            f"what it is asked with ({what})",
        )


def _mark_of(cursor: JsonValue) -> bytes:
    """Return what is remembered of a cursor, which may be long."""
    return xxhash.xxh3_128_digest(json.dumps(cursor).encode())
