"""A review in, some of the objects it is about out: read from its diff artifact."""

from dataclasses import dataclass
from io import BytesIO
from typing import Final

from sluice.flow.pinned_spec import pinned_spec
from sluice.model import rows
from sluice.model.ledger import Outcome
from sluice.model.review import Review
from sluice.packet.words import version_speller
from sluice.ports import Services

_SAMPLES: Final = 20


@dataclass(frozen=True)
class Sample:
    """One object of a diff: where its new row comes from, and the version the ledger holds."""

    key: str
    shard: str | None
    old_version: str
    """As people read it; empty: there is none."""


def samples_of(services: Services, review: Review) -> dict[Outcome, list[Sample]]:
    """Return some objects of each outcome, in key order. The whole diff is fetched for them."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    columns = [rows.KEY, rows.OUTCOME, rows.SHARD, rows.OLD_VERSION]
    diff = pq.read_table(BytesIO(services.artifacts.get(review.diff)), columns=columns)
    spell = version_speller(pinned_spec(services, services.runs.get(review.run)))
    found: dict[Outcome, list[Sample]] = {}
    for outcome in Outcome:
        some = diff.filter(pc.equal(diff[rows.OUTCOME], outcome.value)).slice(0, _SAMPLES).to_pylist()
        if some:
            found[outcome] = [Sample(row[rows.KEY], row[rows.SHARD], spell(row[rows.OLD_VERSION])) for row in some]
    return found
