"""Rows artifacts for tests: a spec and plain tuples in, Parquet out."""

import pyarrow as pa
import pyarrow.parquet as pq
import xxhash

from sluice.model import rows
from sluice.model.spec import SyncSpec


def write_parquet(table: pa.Table) -> bytes:
    """Return a table as Parquet."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return bytes(sink.getvalue())


def hash_of(*values: object) -> bytes:
    """Return a 16-byte hash that differs as the values do."""
    return xxhash.xxh3_128_digest(repr(values).encode())


def rows_artifact(objects: list[tuple[str, int | None, str]], *, mapped: bool = True) -> bytes:
    """Return the rows artifact of objects given as (key, version, name); the spec is `spec_of_places`."""
    keys = [key for key, _, _ in objects]
    return write_parquet(
        pa.table(
            {
                rows.KEY: pa.array(keys, pa.string()),
                rows.VERSION: pa.array([version for _, version, _ in objects], pa.int64()),
                rows.RAW_HASH: pa.array([hash_of(key, name, "raw") for key, _, name in objects], pa.binary(16)),
                rows.ROW_HASH: pa.array([hash_of(key, name) for key, _, name in objects], pa.binary(16)),
                rows.MAPPED: pa.array([mapped] * len(objects), pa.bool_()),
                "id": pa.array(keys if mapped else [None] * len(keys), pa.string()),
                "name": pa.array([name if mapped else None for _, _, name in objects], pa.string()),
                "revision": pa.array([version if mapped else None for _, version, _ in objects], pa.int64()),
            }
        )
    )


def spec_of_places(deletes: str = "soft", table: str = "shop.places") -> SyncSpec:
    """Return a spec with a text key, a name and a version."""
    return SyncSpec.model_validate(
        {
            "sync": "places",
            "stage": "hotel-content",
            "source": {
                "kind": "rest",
                "connection": "supplier",
                "path": "/places",
                "records": "places",
                "cursor": {"path": "next", "parameter": "cursor"},
            },
            "object": {"key": ["id"], "version": "revision"},
            "fields": [
                {"name": "id", "type": "text", "required": True, "description": "The supplier's id."},
                {"name": "name", "type": "text"},
                {"name": "revision", "type": "bigint"},
            ],
            "target": {"table": table, "deletes": deletes},
        }
    )
