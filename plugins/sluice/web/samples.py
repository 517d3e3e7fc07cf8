"""A review in, some of the objects it is about out: read from its diff artifact."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from io import BytesIO
from typing import Final

from sluice.flow.pinned_spec import pinned_spec
from sluice.model import rows
from sluice.model.fields import TypeName
from sluice.model.ledger import Outcome
from sluice.model.review import Review
from sluice.ports import Services

_SAMPLES: Final = 20
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TIMES: Final = frozenset({TypeName.DATE, TypeName.TIMESTAMPTZ})
"""Types whose versions are microseconds since the epoch."""


@dataclass(frozen=True)
class Sample:
    """One object of a diff: where its new row comes from, and the version the ledger holds."""

    key: str
    shard: str | None
    old_version: int | datetime | None


def samples_of(services: Services, review: Review) -> dict[Outcome, list[Sample]]:
    """Return some objects of each outcome, in key order. The whole diff is fetched for them."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    columns = [rows.KEY, rows.OUTCOME, rows.SHARD, rows.OLD_VERSION]
    diff = pq.read_table(BytesIO(services.artifacts.get(review.diff)), columns=columns)
    spec = pinned_spec(services, services.runs.get(review.run))
    is_time = spec.object.version is not None and spec.field(spec.object.version).type.name in _TIMES
    found: dict[Outcome, list[Sample]] = {}
    for outcome in Outcome:
        some = diff.filter(pc.equal(diff[rows.OUTCOME], outcome.value)).slice(0, _SAMPLES).to_pylist()
        if some:
            found[outcome] = [
                Sample(row[rows.KEY], row[rows.SHARD], _version(row[rows.OLD_VERSION], is_time=is_time)) for row in some
            ]
    return found


def _version(number: int | None, *, is_time: bool) -> int | datetime | None:
    return _EPOCH + timedelta(microseconds=number) if is_time and number is not None else number
