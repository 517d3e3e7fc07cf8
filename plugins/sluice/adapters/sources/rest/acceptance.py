"""Answers under a status of success in; the same in UTF-8 out, or the error that they say themselves."""

import json
from dataclasses import replace
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw

from sluice.adapters.sources.rest.charset import as_utf8
from sluice.adapters.sources.rest.levels import at, level, planted
from sluice.adapters.sources.transport.client import Answer
from sluice.adapters.sources.transport.endpoint import Endpoint
from sluice.errors import AnswerFailed

_LONGEST_LOOKED_AT: Final = 100_000
"""Bytes; an error that is longer is one, whatever it says."""


class Acceptance:
    """Tells whether an answer is one; what it returns is stored."""

    def __init__(self, error: str | None, endpoint: Endpoint) -> None:
        """Look for an error at that place, if there is one."""
        self._endpoint = endpoint
        self._place = error
        self._path = tuple(error.split(".")) if error else ()
        tree: dict[str, Any] = {}
        planted(tree, self._path, Raw)
        self._decoder = msgspec.json.Decoder(level(tree)) if error else None

    def accept(self, answer: Answer) -> Answer:
        """Return the answer; raise `AnswerFailed`, with its own words, if it says that it failed."""
        body = as_utf8(answer.body, answer.headers.get("content-type", ""))
        if (said := self._error_in(body)) is not None:
            raise AnswerFailed(
                f"{answer.asked}: the supplier answered, under a status of success, that it failed "
                f"(source.error `{self._place}`): {self._endpoint.snippet(said)}",
                url=answer.shown,
            )
        return answer if body is answer.body else replace(answer, body=body)

    def _error_in(self, body: bytes) -> bytes | None:
        if self._decoder is None:
            return None
        try:
            found = at(self._decoder.decode(body), self._path)
        except (msgspec.MsgspecError, RecursionError):
            return None  # whoever reads the answer names what is wrong with it
        return None if found is UNSET or found is None or _is_nothing(bytes(found)) else bytes(found)


def _is_nothing(said: bytes) -> bool:
    try:
        return len(said) <= _LONGEST_LOOKED_AT and not json.loads(said)
    except (ValueError, RecursionError):  # longer or deeper than Python reads
        return False
