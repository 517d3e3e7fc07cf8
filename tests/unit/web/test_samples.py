"""The objects that a review's page shows."""

from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sluice.adapters.targets.diffing import DIFF_SCHEMA
from sluice.model import rows
from sluice.model.artifact import ArtifactKind, ArtifactRef
from sluice.model.ledger import Outcome
from sluice.web.samples import samples_of
from tests.support.nouns import a_review
from tests.unit.flow.workshop import RUN, Workshop, sync_spec

MICROSECONDS = 1767225600000000
FIELDS = [
    {"name": "id", "type": "text"},
    {"name": "updated_at", "type": "timestamptz"},
    {"name": "edition", "type": "bigint"},
]


@pytest.mark.parametrize(
    ("version", "number", "shown"),
    [
        ("updated_at", MICROSECONDS, "2026-01-01 00:00:00 UTC"),
        ("updated_at", 2**62, str(2**62)),
        ("edition", MICROSECONDS, str(MICROSECONDS)),
        (None, None, ""),
    ],
)
def test_a_version_is_what_its_field_is(version: str | None, number: int | None, shown: str) -> None:
    """The ledger holds numbers; of a time, a person reads the time, if there is a calendar for it."""
    workshop = Workshop(spec=sync_spec(object={"key": ["id"], "version": version}, fields=FIELDS))
    workshop.admit()
    row = dict.fromkeys(DIFF_SCHEMA.names) | {rows.KEY: "a", rows.OUTCOME: "changed", rows.OLD_VERSION: number}
    file = BytesIO()
    pq.write_table(pa.Table.from_pylist([row], DIFF_SCHEMA), file)
    ref = ArtifactRef(sync="hotels", run=RUN, kind=ArtifactKind.DIFF, seq=0, variant="x")
    pointer = workshop.artifacts.put(ref, file.getvalue(), records=1, expires_at=None)
    (sample,) = samples_of(workshop.services, a_review("r", diff=pointer))[Outcome.CHANGED]
    assert sample.old_version == shown
