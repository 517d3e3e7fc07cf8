"""A rows file comes in; where in the raw chunk the records of its objects stand goes out."""

import pyarrow as pa
import pyarrow.parquet as pq

from sluice.mapping.columns import readable
from sluice.model import rows
from sluice.model.base import ObjectKey

Place = tuple[int, int]
"""Frame and index of a record in its raw chunk."""


def places_by_key(data: bytes) -> dict[ObjectKey, Place]:
    """Return where the record of each object stands, the last one of several; raise `ArtifactCorrupt` if it is no rows file."""
    with readable():
        found = pq.read_table(pa.BufferReader(data), columns=[rows.KEY, rows.FRAME, rows.INDEX])
        columns = [found[name].to_pylist() for name in (rows.KEY, rows.FRAME, rows.INDEX)]
    return {ObjectKey(key): (frame, index) for key, frame, index in zip(*columns, strict=True)}
