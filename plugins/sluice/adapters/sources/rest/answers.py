"""Answers of a JSON API: a body in; its records and what the spec wants to know beside them out, decoding nothing else."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw

from sluice.adapters.sources.rest.levels import at, level, planted
from sluice.adapters.sources.rest.not_json import not_json
from sluice.adapters.sources.rest.places import exclusions, places_of
from sluice.adapters.sources.rest.reading import Reading
from sluice.adapters.sources.transport.client import Answer
from sluice.adapters.sources.transport.endpoint import Endpoint
from sluice.errors import AnswerNotJson, AnswerUnusable, RecordsMissing, SluiceError, SpecInvalid
from sluice.mapping import shapes, tokens
from sluice.mapping.pages import PageSplitter
from sluice.model.source import RestSource

_WHOLE: Final = msgspec.json.Decoder(Raw)
_OBJECT: Final = msgspec.json.Decoder(dict[str, Raw])
_NULL: Final = b"null"

Path = tuple[str, ...]


class AnswerReader:
    """Finds the records, and what paging needs to know, where the spec says they stand."""

    def __init__(self, source: RestSource, endpoint: Endpoint) -> None:
        """Prepare a decoder for all the places; raise `SpecInvalid` if they exclude each other."""
        self._source = source
        self._endpoint = endpoint
        self._records = _path(source.records)
        self._places = places_of(source)
        problems = [f"source.{key}: {problem}" for key, problem in exclusions(source)]
        if problems:
            raise SpecInvalid(problems)
        tree: dict[str, Any] = {}
        planted(tree, self._records, list[Raw])
        for path in self._places.values():
            planted(tree, path, Raw)
        # A list at the root has room for nothing beside it.
        self._decoder = msgspec.json.Decoder(level(tree) if self._records else list[Raw])
        self._splitter = PageSplitter(source.records)

    def read(self, answer: Answer) -> Reading:
        """Return what an answer says; raise a kind of `AnswerUnusable`, saying what the spec expected where."""
        try:
            found = self._decoder.decode(answer.body)
        except (msgspec.MsgspecError, RecursionError) as exc:
            return self._read_odd(answer, exc)
        records = at(found, self._records)
        if records is UNSET:
            raise self._no_records(answer)
        values = {key: at(found, path) for key, path in self._places.items()}
        return Reading(answer, records or (), _told(values))

    def _read_odd(self, answer: Answer, exc: Exception) -> Reading:
        """Read an answer that the fast way refuses: name what is wrong, unless single records are damaged and no more."""
        try:
            _WHOLE.decode(answer.body)
        except (msgspec.MsgspecError, RecursionError) as malformed:
            exc = malformed
        else:
            raise self._odd_whole(answer) from exc
        try:
            records = self._splitter.split(answer.body).records
            values = {key: _in_damaged(answer.body, path) for key, path in self._places.items()}
        except RecordsMissing:
            raise self._no_records(answer) from exc
        except (AnswerNotJson, tokens.Unbalanced):
            raise not_json(answer, exc, self._endpoint) from exc
        return Reading(answer, records, _told(values))

    def _odd_whole(self, answer: Answer) -> SluiceError:
        """Tell a wrong place of the records from a wrong place of something else, in an answer that is JSON."""
        if not _leads_to(answer.body, self._records, list[Raw] | None):
            return self._no_records(answer)
        for key, path in self._places.items():
            if not _leads_to(answer.body, path, Raw):
                what = f"source.{key} `{'.'.join(path)}` leads through something that is no object"
                return AnswerUnusable(f"{answer.asked}: {what}", url=answer.shown)
        return self._no_records(answer)

    def _no_records(self, answer: Answer) -> RecordsMissing:
        place = (
            f"at `{self._source.records}` (source.records of the spec)"
            if self._records
            else "as a whole (source.records is empty)"
        )
        lists = [where for document in shapes.decoded([answer.body]) for where in shapes.lists_in(document)]
        there = f"; lists stand at: {self._endpoint.snippet(', '.join(map(_spelled, lists)))}" if lists else ""
        said = self._endpoint.snippet(answer.body)
        return RecordsMissing(
            f"{answer.asked}: there is no list of records {place}{there}; the answer begins: {said}",
            url=answer.shown,
            lists=tuple(lists),
        )


def _spelled(place: str) -> str:
    return place or "the root (source.records empty)"


def _path(place: str) -> Path:
    return tuple(place.split(".")) if place else ()


def _told(values: Mapping[str, Any]) -> dict[str, bytes]:
    found = {key: bytes(value) for key, value in values.items() if value is not UNSET and value is not None}
    return {key: value for key, value in found.items() if value != _NULL}


def _leads_to(body: bytes, path: Sequence[str], kind: Any) -> bool:
    """Whether the path, as far as there is something, leads through objects to a value of that kind."""
    below = body
    try:
        for key in path:
            members = _OBJECT.decode(below)
            if key not in members or bytes(members[key]) == _NULL:
                return True
            below = bytes(members[key])
        msgspec.json.decode(below, type=kind)
    except msgspec.MsgspecError:
        return False
    return True


def _in_damaged(body: bytes, path: Path) -> Any:
    """Return what stands at a path of an answer with damage somewhere; `UNSET` where it leads nowhere."""
    start, stop = 0, len(body)
    for key in path:
        if tokens.opens(body, start) != b"{":
            return UNSET
        span = tokens.members(body, start).get(key)
        if span is None:
            return UNSET
        start, stop = span
    return body[start:stop]
