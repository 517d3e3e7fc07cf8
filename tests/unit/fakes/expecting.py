"""An `Expecting` in memory: expectations that Python can check, of rows as dictionaries."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from sluice.checks.expectations import Answer, found, not_checked, told_apart
from sluice.model.base import ObjectKey, ShardKey
from sluice.model.ledger import Outcome
from sluice.model.quality import ExpectationResult, Met, Offender, SuiteExpectation
from sluice.ports import Refused

_COMING_IN: Final = (Outcome.CREATED, Outcome.CHANGED, Outcome.REAPPEARED)
_RULES: Final[Mapping[str, Callable[[Any, Mapping[str, Any]], bool]]] = {
    "expect_column_values_to_not_be_null": lambda value, _: value is not None,
    "expect_column_values_to_be_in_set": lambda value, kwargs: value is None or value in kwargs["value_set"],
}


@dataclass
class MemoryExpecting:
    """The rows the table holds, and those that come in. What raises takes its whole group with it."""

    held: Mapping[ObjectKey, dict[str, Any]]
    compared: Mapping[ObjectKey, dict[str, Any]]
    columns: Collection[str]
    reject_key: Callable[[ObjectKey], None]
    arriving: dict[ObjectKey, dict[str, Any]] = field(default_factory=dict)
    places: dict[ObjectKey, tuple[ShardKey, int, int]] = field(default_factory=dict)
    noted: dict[ObjectKey, Refused] = field(default_factory=dict)
    groups: list[int] = field(default_factory=list)
    """How many were checked together, each time."""
    engine: str | None = "memory 1"
    import_seconds: float = 0.5

    def needed(self) -> list[tuple[ShardKey, int]]:
        return sorted({(entry["shard"], entry["seq"]) for entry in self.compared.values() if entry["outcome"] in _COMING_IN})

    def load_rows(self, shard: ShardKey, seq: int, rows: bytes) -> None:
        for position, row in enumerate(pq.read_table(pa.BufferReader(rows)).to_pylist()):
            entry = self.compared[row["_key"]]
            if entry["outcome"] in _COMING_IN and (entry["shard"], entry["seq"]) == (shard, seq):
                self.arriving[row["_key"]] = {name: row[name] for name in self.columns}
                self.places[row["_key"]] = (shard, seq, position)

    def complete(self) -> int:
        return len(self._rows())

    def check(self, expectations: Sequence[SuiteExpectation]) -> list[ExpectationResult]:
        self.groups.append(len(expectations))
        if any(each.type not in _RULES for each in expectations):
            return [not_checked(each, "there is no such rule here") for each in expectations]
        return [self._result(each) for each in expectations]

    def refuse(self, expectation: SuiteExpectation, place: int) -> None:
        for key, row in self._offenders(expectation):
            if key in self.arriving:
                shard, seq, position = self.places[key]
                self.noted.setdefault(key, Refused(shard, seq, position, key, place, _text(row, expectation)))

    def refused(self) -> Iterator[Refused]:
        yield from sorted(self.noted.values(), key=lambda each: (each.shard, each.seq, each.position))

    def reject(self) -> int:
        for key in self.noted:
            self.reject_key(key)
            self.arriving.pop(key, None)
        return self.complete()

    def _rows(self) -> dict[ObjectKey, dict[str, Any]]:
        gone = {key for key, entry in self.compared.items() if entry["outcome"] == Outcome.DELETED}
        return {key: row for key, row in {**self.held, **self.arriving}.items() if key not in gone}

    def _offenders(self, expectation: SuiteExpectation) -> list[tuple[ObjectKey, dict[str, Any]]]:
        rule = _RULES[expectation.type]
        rows = sorted(self._rows().items())
        return [(key, row) for key, row in rows if not rule(row.get(expectation.columns[0]), expectation.kwargs)]

    def _result(self, expectation: SuiteExpectation) -> ExpectationResult:
        rows, offenders = self._rows(), self._offenders(expectation)
        figures = {"element_count": len(rows), "unexpected_count": len(offenders)}
        result = found(expectation, Answer(success=not offenders, figures=figures), len(rows))
        if result.met is not Met.FAILED:
            return result
        coming = [key for key, _ in offenders if key in self.arriving]
        samples = [
            Offender(key=key if key in self.arriving else None, value=_text(row, expectation)) for key, row in offenders[:5]
        ]
        return told_apart(expectation, result, offenders=len(offenders), arriving=len(coming), samples=tuple(samples))


def _text(row: Mapping[str, Any], expectation: SuiteExpectation) -> str | None:
    value = row.get(expectation.columns[0])
    return None if value is None else str(value)
