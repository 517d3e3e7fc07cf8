"""A JSON API as a source: which pages are wanted in, the pages out, one after the other, as they were received."""

from collections.abc import Callable, Iterator

from sluice.adapters.sources.answers import AnswerReader, Cursor
from sluice.adapters.sources.endpoint import Endpoint
from sluice.adapters.sources.http_client import HttpClient
from sluice.adapters.sources.templates import RequestTemplates
from sluice.errors import AnswerUnusable, CursorStuck
from sluice.guard.restraint import Restraint
from sluice.model import spec
from sluice.model.stage import StagePolicy
from sluice.ports import ConnectionInfo, Page, PageRequest


class RestSource:
    """Reads pages with GET requests, following the cursor in each answer's body."""

    def __init__(
        self, source: spec.RestSource, info: ConnectionInfo, policy: StagePolicy, restraint_of: Callable[[str], Restraint]
    ) -> None:
        """Check spec and connection, and look up what holds requests to its host back; nothing is asked for yet."""
        self._source = source
        self._endpoint = Endpoint.of(info)
        self._restraint = restraint_of(self._endpoint.host)
        self._policy = policy
        self._templates = RequestTemplates(source)
        self._reader = AnswerReader(source, self._endpoint)

    def pages(self, request: PageRequest) -> Iterator[Page]:
        """Yield the pages behind `request.cursor`, in order, until nothing follows.

        A page whose cursor would lead back is not yielded: `CursorStuck` is raised in its place.
        """
        path = self._templates.path(request)
        query = self._templates.query(request)
        cursor = _given(request)
        seen = {cursor}
        with HttpClient(self._endpoint, self._policy, self._restraint) as client:
            while True:
                asked = query if cursor is None else {**query, self._source.cursor.parameter: str(cursor)}
                answer = client.get(path, asked)
                reading = self._reader.read(answer)
                if reading.cursor is not None and reading.cursor in seen:
                    raise self._stuck(answer.shown, reading.cursor, is_same=reading.cursor == cursor)
                yield Page(body=answer.body, records=reading.records, cursor=reading.cursor)
                cursor = reading.cursor
                if cursor is None:
                    return
                seen.add(cursor)

    def _stuck(self, shown: str, cursor: Cursor, is_same: bool) -> CursorStuck:
        how = "is the one that was asked for" if is_same else "has been followed before"
        shown_cursor = self._endpoint.snippet(str(cursor))
        return CursorStuck(
            f"GET {shown}: the next cursor {shown_cursor} (source.cursor.path `{self._source.cursor.path}`) {how}, so the "
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
