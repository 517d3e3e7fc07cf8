"""The objects that a review's page shows."""

from datetime import UTC, datetime
from io import BytesIO
from typing import Any

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
    ("version", "shown"),
    [("updated_at", datetime(2026, 1, 1, tzinfo=UTC)), ("edition", MICROSECONDS), (None, MICROSECONDS)],
)
def test_a_version_is_what_its_field_is(version: str | None, shown: Any) -> None:
    """The ledger holds numbers; of a time, a person reads the time."""
    workshop = Workshop(spec=sync_spec(object={"key": ["id"], "version": version}, fields=FIELDS))
    workshop.admit()
    row = dict.fromkeys(DIFF_SCHEMA.names) | {rows.KEY: "a", rows.OUTCOME: "changed", rows.OLD_VERSION: MICROSECONDS}
    file = BytesIO()
    pq.write_table(pa.Table.from_pylist([row], DIFF_SCHEMA), file)
    ref = ArtifactRef(sync="hotels", run=RUN, kind=ArtifactKind.DIFF, seq=0, variant="x")
    pointer = workshop.artifacts.put(ref, file.getvalue(), records=1, expires_at=None)
    (sample,) = samples_of(workshop.services, a_review("r", diff=pointer))[Outcome.CHANGED]
    assert sample.old_version == shown
