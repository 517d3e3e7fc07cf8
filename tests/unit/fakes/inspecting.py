"""An `Inspecting` in memory: rows as dictionaries, fields as the rows have them."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sluice.model.base import ObjectKey, ShardKey
from sluice.model.evidence import FieldChange, FieldKind, FieldProfile, ObjectSample, Profile, ValueChange
from sluice.model.ledger import Outcome

_COMING_IN = (Outcome.CREATED, Outcome.CHANGED, Outcome.REAPPEARED)


@dataclass
class MemoryInspecting:
    """The rows the table holds, and what became of the objects; no sample is ever drawn."""

    held: Mapping[ObjectKey, dict[str, Any]]
    compared: Mapping[ObjectKey, dict[str, Any]]
    arriving: dict[ObjectKey, dict[str, Any]] = field(default_factory=dict)

    def needed(self) -> list[tuple[ShardKey, int]]:
        return sorted({(entry["shard"], entry["seq"]) for entry in self.compared.values() if entry["outcome"] in _COMING_IN})

    def load_rows(self, shard: ShardKey, seq: int, rows: bytes) -> None:
        for row in pq.read_table(pa.BufferReader(rows)).to_pylist():
            entry = self.compared[row["_key"]]
            if entry["outcome"] in _COMING_IN and (entry["shard"], entry["seq"]) == (shard, seq):
                self.arriving[row["_key"]] = {name: value for name, value in row.items() if not name.startswith("_")}

    def differences(self) -> tuple[tuple[FieldChange, ...], tuple[ObjectSample, ...]]:
        samples = [
            self._sample(key, entry) for key, entry in sorted(self.compared.items()) if entry["outcome"] in list(Outcome)
        ]
        changed: dict[str, list[tuple[ObjectKey, str | None, str | None]]] = {}
        for sample in samples:
            if sample.outcome in (Outcome.CHANGED, Outcome.REAPPEARED):
                for value in sample.values:
                    changed.setdefault(value.field, []).append((sample.key, value.old, value.new))
        changes = [FieldChange(field=name, objects=len(pairs), samples=tuple(pairs)) for name, pairs in changed.items()]
        return tuple(sorted(changes, key=lambda change: -change.objects)), tuple(samples)

    def profile(self, baseline: Profile | None, counted: Collection[str] = ()) -> Profile:  # noqa: ARG002 - the port's
        gone = {key for key, entry in self.compared.items() if entry["outcome"] == Outcome.DELETED}
        after = [row for key, row in {**self.held, **self.arriving}.items() if key not in gone]
        names = sorted({name for row in after for name in row})
        fields = tuple(_summed(name, [row.get(name) for row in after]) for name in names)
        return Profile(rows=len(after), looked_at=len(after), fields=fields)

    def _sample(self, key: ObjectKey, entry: dict[str, Any]) -> ObjectSample:
        old = self.held.get(key, {})
        new = self.arriving.get(key, {}) if entry["outcome"] != Outcome.DELETED else {}
        values = [
            ValueChange(field=name, old=_text(old.get(name)), new=_text(new.get(name)))
            for name in sorted({*old, *new})
            if old.get(name) != new.get(name)
        ]
        is_kept = entry["outcome"] not in (*_COMING_IN, Outcome.DELETED)
        return ObjectSample(
            key=key, outcome=entry["outcome"], shard=entry.get("shard"), values=() if is_kept else tuple(values)
        )


def _summed(name: str, values: list[Any]) -> FieldProfile:
    filled = [str(value) for value in values if value is not None]
    return FieldProfile(field=name, kind=FieldKind.OTHER, nulls=len(values) - len(filled), distinct=len(set(filled)))


def _text(value: Any) -> str | None:
    return None if value is None else str(value)
