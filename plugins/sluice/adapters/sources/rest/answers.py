"""Answers of a JSON API: a body in; how many records it has and where to go on out, decoding nothing else."""

import json
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw

from sluice.adapters.sources.http.client import Answer
from sluice.adapters.sources.http.endpoint import Endpoint
from sluice.errors import AnswerNotJson, AnswerUnusable, RecordsMissing, SluiceError, SpecInvalid
from sluice.mapping import tokens
from sluice.mapping.pages import PageSplitter
from sluice.model.source import RestSource

Cursor = str | int | None

LONGEST_CURSOR: Final = 4096
"""Characters; a cursor travels in every request's address and stands in the shard's row."""

_WHOLE: Final = msgspec.json.Decoder(Raw)
_OBJECT: Final = msgspec.json.Decoder(dict[str, Raw])


@dataclass(frozen=True)
class Reading:
    """What an answer says."""

    records: int
    cursor: Cursor


class AnswerReader:
    """Finds the records and the cursor where the spec says they stand."""

    def __init__(self, source: RestSource, endpoint: Endpoint) -> None:
        """Prepare a decoder for the two paths; raise `SpecInvalid` if they exclude each other."""
        if source.cursor.kind != "body":
            raise SpecInvalid([f"source.cursor.kind: {source.cursor.kind} is not built yet"])
        self._source = source
        self._paging = source.cursor
        self._endpoint = endpoint
        self._records = tuple(source.records.split(".")) if source.records else ()
        self._cursor = tuple(self._paging.path.split("."))
        if self._records and self._records == self._cursor[: len(self._records)]:
            raise SpecInvalid([f"source.cursor.path: {self._paging.path!r} stands inside source.records, which is a list"])
        if self._cursor == self._records[: len(self._cursor)]:
            raise SpecInvalid([f"source.records: {source.records!r} stands inside source.cursor.path, which is a single value"])
        tree: dict[str, Any] = {}
        _plant(tree, self._records, list[Raw])
        _plant(tree, self._cursor, Raw)
        # A list at the root has no room for a cursor: it is the only page.
        self._decoder = msgspec.json.Decoder(_level(tree) if self._records else list[Raw])
        self._splitter = PageSplitter(source.records)

    def read(self, answer: Answer) -> Reading:
        """Return what the answer says; raise a kind of `AnswerUnusable`, saying what the spec expected where."""
        try:
            found = self._decoder.decode(answer.body)
        except (msgspec.MsgspecError, RecursionError) as exc:
            return self._read_odd(answer, exc)
        records = _at(found, self._records)
        if not isinstance(records, list):
            raise self._no_records(answer)
        return Reading(len(records), self._read_cursor(answer, _at(found, self._cursor) if self._records else UNSET))

    def _read_odd(self, answer: Answer, exc: Exception) -> Reading:
        """Read an answer that the fast way refuses: name what is wrong, unless single records are damaged and no more."""
        try:
            _WHOLE.decode(answer.body)
        except (msgspec.MsgspecError, RecursionError) as malformed:
            exc = malformed
        else:
            raise self._odd_whole(answer) from exc
        try:
            records = len(self._splitter.split(answer.body).records)
            cursor = self._damaged_cursor(answer.body)
        except RecordsMissing:
            raise self._no_records(answer) from exc
        except (AnswerNotJson, tokens.Unbalanced):
            raise self._no_json(answer, exc) from exc
        return Reading(records, self._read_cursor(answer, cursor))

    def _odd_whole(self, answer: Answer) -> SluiceError:
        """Tell a wrong place of the records from a wrong place of the cursor, in an answer that is JSON."""
        try:
            below = answer.body
            for key in self._records:
                below = bytes(_OBJECT.decode(below)[key])
            msgspec.json.decode(below, type=list[Raw])
        except (msgspec.MsgspecError, KeyError):
            return self._no_records(answer)
        return AnswerUnusable(
            f"GET {answer.shown}: source.cursor.path `{self._paging.path}` leads through something that is no object",
            url=answer.shown,
        )

    def _damaged_cursor(self, body: bytes) -> Any:
        start = 0
        stop = len(body)
        if not self._records:
            return UNSET
        for key in self._cursor:
            if tokens.opens(body, start) != b"{":
                return UNSET
            span = tokens.members(body, start).get(key)
            if span is None:
                return UNSET
            start, stop = span
        return body[start:stop]

    def _read_cursor(self, answer: Answer, found: Any) -> Cursor:
        if found is UNSET or found is None:
            return None
        try:
            # Not msgspec, which may turn an integer beyond 64 bits into a float.
            cursor = json.loads(bytes(found))
            is_fit = isinstance(cursor, str | int) and not isinstance(cursor, bool) and "\0" not in str(cursor)
            is_fit = is_fit and len(str(cursor).encode()) <= LONGEST_CURSOR
        except (ValueError, RecursionError):
            is_fit = False
            cursor = UNSET
        if cursor is None or cursor == "":
            return None
        if not is_fit:
            raise AnswerUnusable(
                f"GET {answer.shown}: at source.cursor.path `{self._paging.path}` stands "
                f"{self._endpoint.snippet(bytes(found))}, but a cursor is a text or an integer of at most {LONGEST_CURSOR} "
                "characters, or null behind the last page",
                url=answer.shown,
            )
        return cursor if isinstance(cursor, str | int) else None

    def _no_json(self, answer: Answer, exc: Exception) -> AnswerNotJson:
        body = answer.body
        if not body:
            what = "the answer is empty"
        elif isinstance(exc, RecursionError):
            what = "the answer is nested too deeply"
        elif "truncated" in str(exc):
            what = f"the answer is not whole JSON: it ends after {len(body)} bytes"
        else:
            what = f"the answer is not JSON: {exc}"
        said = f", it begins: {self._endpoint.snippet(body)}" if body else ""
        return AnswerNotJson(f"GET {answer.shown}: {what} ({answer.content_type}){said}", url=answer.shown, bytes=len(body))

    def _no_records(self, answer: Answer) -> RecordsMissing:
        place = (
            f"at `{self._source.records}` (source.records of the spec)"
            if self._records
            else "as a whole (source.records is empty)"
        )
        said = self._endpoint.snippet(answer.body)
        return RecordsMissing(
            f"GET {answer.shown}: there is no list of records {place}; the answer begins: {said}",
            url=answer.shown,
        )


def _plant(tree: dict[str, Any], path: tuple[str, ...], kind: Any) -> None:
    for key in path[:-1]:
        tree = tree.setdefault(key, {})
    if path:
        tree[path[-1]] = kind


def _level(tree: dict[str, Any]) -> Any:
    """Return a struct type that decodes the members named in `tree` and skips all others."""
    names = {f"member_{place}": key for place, key in enumerate(tree)}
    kinds = {name: _level(tree[key]) if isinstance(tree[key], dict) else tree[key] for name, key in names.items()}
    members = [(name, _optional(kind), UNSET) for name, kind in kinds.items()]
    return msgspec.defstruct("Level", members, rename=names, namespace={"names": {key: name for name, key in names.items()}})


def _optional(kind: Any) -> Any:
    return kind | msgspec.UnsetType if kind is Raw else kind | None | msgspec.UnsetType


def _at(found: Any, path: tuple[str, ...]) -> Any:
    """Return what the path leads to: `UNSET` or None where it ends early."""
    for key in path:
        if found is UNSET or found is None:
            return found
        found = getattr(found, type(found).names[key])
    return found
