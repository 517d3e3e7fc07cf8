"""What one hotel costs the client, part by part: microseconds of CPU, the best of some rounds, without servers.

    .venv/bin/python bench/parts.py [HOTELS]

The parts are those of a first load and of a second sync in which nothing changed. They run on the same hotels as `peers.py`.
"""

import io
import json
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from contenders import SPEC
from hotels import COUNTRIES, PAGE, hotel

from sluice.adapters.artifacts.codec import ZstdChunkCodec
from sluice.mapping.mapper import Mapper
from sluice.mapping.pages import PageSplitter
from sluice.model.base import ObjectKey
from sluice.model.ledger import Remembered
from sluice.model.rows import KEY, RAW_HASH, ROW_HASH, VERSION
from sluice.model.spec import SyncSpec

HEAD: Final = [KEY, VERSION, RAW_HASH, ROW_HASH]
CHUNK_PAGES: Final = 24
ROUNDS: Final = 3


def main() -> None:
    """Print a line for each part."""
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 12_000
    pages = list(_pages(number))
    size = sum(map(len, pages)) / number
    print(f"{number:,} hotels of {size:,.0f} bytes, microseconds of CPU for each:")
    mapper, splitter, codec = Mapper(SyncSpec.model_validate(SPEC)), PageSplitter("hotels"), ZstdChunkCodec()
    chunk = codec.pack(pages, level=1)
    mapped = mapper.map_chunk(pages, "raw", lambda _: {})
    rows = pq.read_table(pa.BufferReader(mapped.rows))
    known = _remembered(rows)
    parts: dict[str, Callable[[], object]] = {
        "compressing the answers": lambda: codec.pack(pages, level=1),
        "decompressing and checking them": lambda: list(codec.pages(chunk)),
        "taking pages apart": lambda: [splitter.split(page) for page in pages],
        "mapping, nothing is known": lambda: _map(mapper, pages, {}),
        "mapping, all is as it was": lambda: _map(mapper, pages, known),
        "  of that, rows as Parquet": lambda: _parquet(rows),
        "reading Parquet, whole": lambda: pq.read_table(pa.BufferReader(mapped.rows)),
        "reading Parquet, keys and hashes": lambda: pq.ParquetFile(pa.BufferReader(mapped.rows)).read(
            [KEY, RAW_HASH, ROW_HASH]
        ),
        "rows as CSV for COPY": lambda: _csv(rows),
    }
    for name, part in parts.items():
        print(f"  {name:<36}{min(_cpu(part) for _ in range(ROUNDS)) / number * 1e6:7.1f}")


def _cpu(part: Callable[[], object]) -> float:
    before = time.process_time()
    part()
    return time.process_time() - before


def _pages(number: int) -> Iterator[bytes]:
    for start in range(0, number, PAGE):
        hotels = [hotel(COUNTRIES[place % len(COUNTRIES)], place) for place in range(start, min(start + PAGE, number))]
        yield json.dumps({"hotels": hotels, "next_cursor": None}, ensure_ascii=False, separators=(",", ":")).encode()


def _map(mapper: Mapper, pages: list[bytes], known: dict[ObjectKey, Remembered]) -> None:
    for start in range(0, len(pages), CHUNK_PAGES):
        mapper.map_chunk(pages[start : start + CHUNK_PAGES], "raw", lambda _: known)


def _remembered(rows: pa.Table) -> dict[ObjectKey, Remembered]:
    columns: list[list[Any]] = [rows[name].to_pylist() for name in HEAD]
    return {ObjectKey(key): Remembered(raw, row, version) for key, version, raw, row in zip(*columns, strict=True)}


def _parquet(rows: pa.Table) -> None:
    pq.write_table(rows, io.BytesIO(), compression="zstd", compression_level=1, use_dictionary=False, write_statistics=False)


def _csv(rows: pa.Table) -> None:
    fields = rows.select(rows.column_names[-len(SPEC["fields"]) :])
    pa_csv.write_csv(fields, io.BytesIO(), pa_csv.WriteOptions(include_header=False, quoting_style="all_valid"))


if __name__ == "__main__":
    main()
