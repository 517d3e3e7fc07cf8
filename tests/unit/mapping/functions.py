"""Functions as a team might write them, and chunks that go through them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sluice.mapping.mapper import MappedChunk, Mapper
from sluice.model.spec import SyncSpec
from tests.unit.mapping.workbench import ARTIFACT, nothing, rows_of, sync_spec


class OutOfReach(Exception):
    """Stands for what a lost connection raises."""


@dataclass
class Function:
    """A team's function as the mapping sees it."""

    does: Callable[[Any], Any]
    digest: int = 7
    name: str = "transforms.hotels.enrich"
    calls: int = 0

    def __call__(self, frame: Any) -> Any:
        """Count the call."""
        self.calls += 1
        return self.does(frame)

    def where_raised(self, _: BaseException) -> str:
        """Return some place."""
        return "hotels.py:3"

    def is_outage(self, error: BaseException) -> bool:
        """Whether the test says so."""
        return isinstance(error, OutOfReach)


def spec_with(fields: dict[str, Any], when: str = "after", **changes: Any) -> SyncSpec:
    """A spec whose objects go through a function."""
    return sync_spec(fields, transform={"function": "transforms.hotels.enrich", "when": when}, **changes)


def page_of(*records: str) -> bytes:
    """A page with these records."""
    return f"[{','.join(records)}]".encode()


def through(spec: SyncSpec, does: Callable[[Any], Any], *records: str) -> MappedChunk:
    """Map one page of records with a function."""
    return Mapper(spec, function=Function(does)).map_chunk([page_of(*records)], ARTIFACT, nothing)


def values_after(spec: SyncSpec, chunk: MappedChunk) -> list[dict[str, Any]]:
    """The fields of the rows, without what Sluice adds."""
    return [{field.name: row[field.name] for field in spec.fields} for row in rows_of(chunk)]


def returned(kind: str, token: str, does: Callable[[Any], Any]) -> Any:
    """Let `does` make one column of another, and return the value, or the `(error, message)`, of a field of that type."""
    spec = spec_with({"id": "text", "value": kind})

    def function(frame: Any) -> Any:
        frame["value"] = does(frame["value"])
        return frame

    chunk = through(spec, function, f'{{"id": "1", "value": {token}}}')
    if chunk.rejects:
        (reject,) = chunk.rejects
        assert (reject.key, reject.field, chunk.objects) == ("1", "value", 0)
        return reject.error, reject.message.removeprefix("value: ")
    (row,) = values_after(spec, chunk)
    return row["value"]
