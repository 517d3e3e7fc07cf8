"""Values at the edges of what types hold, through a function that changes nothing: what comes out is what went in."""

import pytest

from sluice.mapping.mapper import MappedChunk, Mapper
from tests.support.edges import EDGES
from tests.unit.mapping.functions import Function, spec_with
from tests.unit.mapping.workbench import ARTIFACT, map_records, nothing, rows_of, sync_spec

KINDS = ["text", "bigint", "numeric", "numeric(10,2)", "double precision", "date", "timestamptz", "json"]
FIELDS = {f"f{place}": kind for place, kind in enumerate([*KINDS, *(f"{kind}[]" for kind in KINDS if kind != "json")])}
SPEC = sync_spec({"id": "text", **FIELDS})
RECORDS = [
    b'{"id": "%d-%s", "%s": %s}' % (place, name.encode(), name.encode(), b"[null, %s]" % token if "[]" in kind else token)
    for name, kind in FIELDS.items()
    for place, token in enumerate(EDGES)
]


def fates(chunk: MappedChunk) -> dict[str, object]:
    """What became of each object: the hash of its row, or why it was rejected, however a message spells the value."""
    rejects = {str(reject.key): (reject.field, reject.error) for reject in chunk.rejects}
    return rejects | {row["id"]: row["_row_hash"] for row in rows_of(chunk)}


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_function_that_changes_nothing_changes_nothing(when: str) -> None:
    """Whether it has the records or the rows; and no record fails the others."""
    spec = spec_with({"id": "text", **FIELDS}, when=when)
    page = b"[%s]" % b",".join(RECORDS)
    found = fates(Mapper(spec, function=Function(lambda frame: frame)).map_chunk([page], ARTIFACT, nothing))
    assert len(found) == len(RECORDS)
    assert found == fates(map_records(SPEC, *RECORDS))
