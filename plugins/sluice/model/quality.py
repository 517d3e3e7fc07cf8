"""What is expected of a table as a whole: a suite, as a file of `include/expectations` declares it; and what was found of it.

A suite is one of Great Expectations 1.x, as that library writes it: a name, and expectations of a type with its `kwargs`. To
each of them Sluice adds one word, `on_failure`; where a file is written by the library itself, it stands below
`meta: {sluice: …}`.

An expectation that could not be checked, or was checked of nothing, has not passed. The figures of one that was are of all rows
that the table would hold.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

from pydantic import Field, JsonValue, model_validator

from sluice.model.base import Frozen, ObjectKey

_COLUMN_KEYS: Final = ("column", "column_A", "column_B")
_COLUMN_LISTS: Final = ("column_list",)
_WORD: Final = re.compile(r"[a-z0-9_]+")
_FINDINGS: Final = {"type", "columns", "kwargs", "on_failure", "met", "evaluated", "unexpected", "rejected"}
"""What the same rows give again: floating point means and the samples of the library need not be the same."""


class OnFailure(StrEnum):
    """What follows from an expectation that is not met."""

    REJECT = "reject"
    """The objects that come in and do not meet it are rejected, one by one; rows that are in the table already are counted."""
    WARN = "warn"
    """It is told, and changes no verdict."""
    BLOCK = "block"
    """The review is blocked."""


class SuiteExpectation(Frozen):
    """One expectation of a suite."""

    type: str = Field(min_length=1, description="its name at Great Expectations: expect_column_values_to_not_be_null")
    kwargs: dict[str, JsonValue] = Field(default={}, description="the columns it is of, and its parameters")
    on_failure: OnFailure = Field(
        default=OnFailure.BLOCK, description="reject the objects that do not meet it, warn, or block the review"
    )
    meta: dict[str, JsonValue] | None = Field(default=None, description="the library's; below `sluice`: on_failure")
    notes: JsonValue = Field(default=None, description="the library's, for people")
    description: str | None = Field(default=None, description="the library's, for people")
    id: str | None = Field(default=None, description="the library's")
    severity: str | None = Field(default=None, description="the library's; what follows is for on_failure to say")
    rendered_content: JsonValue = Field(default=None, description="the library's")

    @model_validator(mode="before")
    @classmethod
    def _word_of_meta(cls, value: Any) -> Any:
        meta = value.get("meta") if isinstance(value, dict) else None
        ours = meta.get("sluice") if isinstance(meta, dict) else None
        if ours is None:
            return value
        if not isinstance(ours, dict) or set(ours) != {"on_failure"}:
            raise ValueError("meta.sluice holds one key, on_failure")
        if value.get("on_failure", ours["on_failure"]) != ours["on_failure"]:
            raise ValueError("on_failure and meta.sluice.on_failure differ: leave one of them out")
        return {**value, "on_failure": ours["on_failure"]}

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it is of, as its kwargs name them."""
        found = [self.kwargs[key] for key in _COLUMN_KEYS if key in self.kwargs]
        for key in _COLUMN_LISTS:
            listed = self.kwargs.get(key)
            found += listed if isinstance(listed, list) else []
        return tuple(column for column in found if isinstance(column, str))

    @property
    def label(self) -> str:
        """What it is called in reasons and lists."""
        return _label(self.type, self.columns)

    @property
    def strings(self) -> Iterator[str]:
        """Every text in its kwargs, wherever it stands."""
        return _strings(self.kwargs)


def _label(kind: str, columns: tuple[str, ...]) -> str:
    return f"{kind}({', '.join(columns)})" if columns else kind


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from (text for each in value.values() for text in _strings(each))
    elif isinstance(value, Sequence):
        yield from (text for each in value for text in _strings(each))


class Suite(Frozen):
    """A suite as its file has it."""

    name: str | None = Field(default=None, description="the library's; Sluice goes by the name of the file")
    expectations: tuple[SuiteExpectation, ...] = Field(min_length=1, description="what is expected; none would check nothing")
    meta: dict[str, JsonValue] | None = Field(default=None, description="the library's")
    notes: JsonValue = Field(default=None, description="the library's, for people")
    id: str | None = Field(default=None, description="the library's")
    suite_parameters: dict[str, JsonValue] | None = Field(default=None, max_length=0, description="the library's; not used")

    def columns_among(self, names: Iterable[str]) -> frozenset[str]:
        """Return the columns that its checks may read: all whose names occur as a word in what they are given."""
        words = {word for each in self.expectations for text in each.strings for word in _WORD.findall(text)}
        return frozenset(words.intersection(names))


class Met(StrEnum):
    """What became of an expectation."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_CHECKED = "not-checked"
    """Which is not passed: it raised, or there was nothing to check, or it was never run."""


class Offender(Frozen):
    """A row that does not meet an expectation."""

    key: ObjectKey | None = Field(default=None, description="the object; None: a row that is in the table already")
    value: str | None = Field(description="what it has, as Postgres spells it, cut; None: null")


class ExpectationResult(Frozen):
    """What was found of one expectation. Counts are None where it does not count rows, or nobody could."""

    type: str
    columns: tuple[str, ...]
    kwargs: str = Field(description="its parameters without the columns, as JSON, cut")
    on_failure: OnFailure
    met: Met
    why: str | None = Field(default=None, description="why it was not checked")
    evaluated: int | None = Field(default=None, description="rows it was held against; nulls count for few kinds")
    unexpected: int | None = Field(default=None, description="those of them that do not meet it")
    observed: str | None = Field(default=None, description="what was found instead, by kinds that look at the whole, cut")
    rejected: int = Field(default=0, description="objects that came in and were rejected for it")
    arriving: int | None = Field(default=None, description="rows that come in and do not meet it; None: not told apart")
    samples: tuple[Offender, ...] = Field(default=(), description="some that do not meet it: those that come in first, by key")

    @property
    def label(self) -> str:
        """What it is called in reasons and lists."""
        return _label(self.type, self.columns)

    @property
    def staying(self) -> int | None:
        """Rows that do not meet it and are in the table already, whatever is published; None: they are not told apart."""
        return None if self.arriving is None or self.unexpected is None else self.unexpected - self.arriving


class Quality(Frozen):
    """What a suite found at one review, and what that cost."""

    suite: str
    not_run: str | None = Field(default=None, description="why nothing of it was run, where that says nothing of the data")
    trouble: str | None = Field(default=None, description="why nothing of it could be run")
    engine: str | None = Field(default=None, description="what has checked, with its version; None: nothing has")
    rows: int = Field(default=0, ge=0, description="rows that the table would hold")
    results: tuple[ExpectationResult, ...] = Field(default=(), description="in the order of the suite")
    seconds: float = Field(default=0, ge=0, description="all of it")
    import_seconds: float = Field(default=0, ge=0, description="of these, for loading the library")

    @property
    def digest(self) -> str:
        """What sets these findings apart from others: of the same rows they are the same, whatever they cost."""
        told = [self.suite, self.not_run or "", self.trouble or "", str(self.rows)]
        told += [result.model_dump_json(include=_FINDINGS) for result in self.results]
        return hashlib.sha256("\n".join(told).encode()).hexdigest()

    @property
    def rejected(self) -> int:
        """How many objects were rejected for it."""
        return sum(result.rejected for result in self.results)

    def count(self, met: Met) -> int:
        """Return of how many expectations that has become."""
        return sum(result.met is met for result in self.results)
