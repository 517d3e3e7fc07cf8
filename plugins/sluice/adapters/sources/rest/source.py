"""A JSON API as a source: which pages are wanted in, the pages out, one after the other, as they were received."""

from collections.abc import Callable, Iterator
from datetime import datetime

from sluice.adapters.sources.http.auth import Auth
from sluice.adapters.sources.http.client import HttpClient
from sluice.adapters.sources.http.endpoint import Endpoint
from sluice.adapters.sources.http.proof import proof_of_connection
from sluice.adapters.sources.rest.answers import AnswerReader, Cursor
from sluice.adapters.sources.rest.requests import Requests
from sluice.errors import AnswerUnusable, CursorStuck, SpecInvalid
from sluice.guard.restraint import Restraint
from sluice.model import source as declared
from sluice.model.stage import StagePolicy
from sluice.ports import ConnectionInfo, Page, PageRequest


class RestSource:
    """Reads pages with GET requests, following the cursor in each answer's body."""

    def __init__(
        self,
        source: declared.RestSource,
        info: ConnectionInfo,
        policy: StagePolicy,
        restraint_of: Callable[[str], Restraint],
        auth_of: Callable[[Endpoint], Auth] | None = None,
    ) -> None:
        """Check spec and connection, and look up what holds requests to its host back; nothing is asked for yet."""
        if source.cursor.kind != "body":
            raise SpecInvalid([f"source.cursor.kind: {source.cursor.kind} is not built yet"])
        self._cursor = source.cursor
        self._endpoint = Endpoint.of(info)
        self._restraint = restraint_of(self._endpoint.host)
        self._auth = auth_of(self._endpoint) if auth_of else proof_of_connection(info, self._endpoint)
        self._policy = policy
        self._requests = Requests(source)
        self._reader = AnswerReader(source, self._endpoint)

    def now(self) -> datetime | None:
        """Return the supplier's own time; None if it does not tell."""
        return None

    def pages(self, request: PageRequest) -> Iterator[Page]:
        """Yield the pages behind `request.cursor`, in order, until nothing follows.

        A page whose cursor would lead back is not yielded: `CursorStuck` is raised in its place.
        """
        first = self._requests.first(request)
        cursor = _given(request)
        seen = {cursor}
        with HttpClient(self._endpoint, self._policy, self._restraint, self._auth) as client:
            while True:
                asked = first if cursor is None else first.with_query(**{self._cursor.parameter: str(cursor)})
                answer = client.send(asked)
                reading = self._reader.read(answer)
                if reading.cursor is not None and reading.cursor in seen:
                    raise self._stuck(answer.shown, reading.cursor, is_same=reading.cursor == cursor)
                yield Page(answer.body, reading.records, reading.cursor, answer.supplied_at)
                cursor = reading.cursor
                if cursor is None:
                    return
                seen.add(cursor)

    def _stuck(self, shown: str, cursor: Cursor, is_same: bool) -> CursorStuck:
        how = "is the one that was asked for" if is_same else "has been followed before"
        shown_cursor = self._endpoint.snippet(str(cursor))
        return CursorStuck(
            f"GET {shown}: the next cursor {shown_cursor} (source.cursor.path `{self._cursor.path}`) {how}, so the "
            "pages would never end",
            url=shown,
        )


def _given(request: PageRequest) -> Cursor:
    cursor = request.cursor
    if cursor is None or (isinstance(cursor, str | int) and not isinstance(cursor, bool)):
        return cursor
    raise AnswerUnusable(
        "the shard's stored cursor is neither a text nor an integer: it was written for another kind of source"
    )
