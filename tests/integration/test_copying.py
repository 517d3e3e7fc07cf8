"""Large artifacts on their way into a real Postgres: how much of them is read at a time."""

import io
import random
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
from psycopg import sql

from sluice.adapters.postgres import conninfo
from sluice.adapters.targets.arrow_copy import copy_parquet_in
from sluice.ports import ConnectionInfo

GROUPS = 20
GROUP_BYTES = 1_000_000


class Watched(io.BytesIO):
    """A file that notes how much of it is read at once."""

    most = 0

    def read(self, *size: Any) -> bytes:
        data = super().read(*size)
        self.most = max(self.most, len(data))
        return data


def test_of_a_large_artifact_no_more_than_a_part_is_read_at_a_time(database: ConnectionInfo) -> None:
    """However many parts it has: what is read ahead is in memory until all of it has been copied."""
    draw, file = random.Random(7), Watched()  # noqa: S311 - sample data
    texts = [pa.array([draw.randbytes(500).hex() for _ in range(GROUP_BYTES // 1_000)], pa.string()) for _ in range(GROUPS)]
    with pq.ParquetWriter(file, pa.schema({"word": pa.string()}), compression="none", use_dictionary=False) as writer:
        for part in texts:
            writer.write_table(pa.table({"word": part}))
    file.seek(0)
    with psycopg.connect(conninfo(database)) as connection, connection.cursor() as cursor:
        cursor.execute("create temporary table words (word text)")
        copy_parquet_in(cursor, sql.Identifier("words"), file)
        row = cursor.execute("select count(*), sum(length(word)) from words").fetchone()
    assert row == (GROUPS * GROUP_BYTES // 1_000, GROUPS * GROUP_BYTES)
    assert file.most < 2 * GROUP_BYTES
