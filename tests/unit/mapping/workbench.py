"""Small specs, single records, and rows read back from Parquet."""

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sluice.mapping.exact import told_apart
from sluice.mapping.mapper import MappedChunk, Mapper
from sluice.mapping.reader import Reader
from sluice.model.fields import FieldSpec
from sluice.model.ledger import Remembered
from sluice.model.spec import SyncSpec
from sluice.model.watermark import WatermarkSpec

ARTIFACT = "hotels/run-1/raw/north/000000.zst"


def sync_spec(fields: dict[str, str | dict[str, Any]], **changes: Any) -> SyncSpec:
    """A spec with fields given as name to type, or name to more; the first one is the key."""
    declared = {
        "sync": "hotels",
        "stage": "hotel-content",
        "source": {"kind": "rest", "connection": "shop", "path": "/", "cursor": {"path": "next", "parameter": "cursor"}},
        "object": {"key": [next(iter(fields))]},
        "fields": [{"name": name, **(more if isinstance(more, dict) else {"type": more})} for name, more in fields.items()],
        "target": {"table": "hotels"},
    }
    return SyncSpec.model_validate(declared | changes)


def watermarked(spec: SyncSpec, *fields: str, **more: Any) -> SyncSpec:
    """The same spec with a watermark."""
    watermark = WatermarkSpec.model_validate({"fields": fields, **more})
    return spec.model_copy(update={"source": spec.source.model_copy(update={"watermark": watermark})})


def nothing(_: object) -> dict[Any, Remembered]:
    """What an empty ledger remembers."""
    return {}


def map_records(spec: SyncSpec, *records: bytes | str) -> MappedChunk:
    """Map one page of records that nobody remembers."""
    texts = [record.encode() if isinstance(record, str) else record for record in records]
    return Mapper(spec).map_chunk([b"[" + b",".join(texts) + b"]"], ARTIFACT, nothing)


def table_of(chunk: MappedChunk) -> pa.Table:
    """The rows artifact as a table."""
    return pq.read_table(pa.BufferReader(chunk.rows))


def rows_of(chunk: MappedChunk) -> list[dict[str, Any]]:
    """The rows artifact as dictionaries."""
    rows: list[dict[str, Any]] = table_of(chunk).to_pylist()
    return rows


def field_type(text: str) -> Any:
    """A declared type as the spec's fields have it."""
    return FieldSpec.model_validate({"name": "value", "type": text}).type


def map_value(kind: str, token: str | bytes) -> Any:
    """Map one JSON token as a field of that type: the value as it stands in Parquet, or `(error, message)`."""
    text = token.encode() if isinstance(token, str) else token
    chunk = map_records(sync_spec({"id": "text", "value": kind}), b'{"id": "1", "value": ' + text + b"}")
    if chunk.rejects:
        (reject,) = chunk.rejects
        assert (reject.key, reject.field, chunk.objects) == ("1", "value", 0)
        return reject.error, reject.message.removeprefix("value: ")
    assert chunk.objects == 1
    return table_of(chunk)["value"][0]


def both_ways(kind: str, token: str) -> tuple[Any, Any]:
    """Read one JSON token by the fast way and by the careful way; return what tells its value apart, as each way has it."""
    reader = Reader([FieldSpec.model_validate({"name": "value", "type": kind})])
    record = b'{"value": ' + token.encode() + b"}"
    values, problems = reader.examine(record)
    assert not problems
    return told_apart(reader.fast(record)[0]), told_apart(values[0])  # type: ignore[arg-type]
