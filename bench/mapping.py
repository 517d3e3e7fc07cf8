"""How much CPU the mapping takes for each record: first load, second sync unchanged, and the forms that take the careful way.

usage: python bench/mapping.py [RECORDS]
"""

import json
import random
import sys
import time
from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from sluice.mapping.mapper import Mapper
from sluice.model.base import ObjectKey
from sluice.model.ledger import Remembered
from sluice.model.rows import KEY, RAW_HASH, ROW_HASH
from sluice.model.spec import SyncSpec
from sluice.ports import Remember

PAGE = 500
CHUNK_PAGES = 20
ROUNDS = 3

SPEC = SyncSpec.model_validate(
    {
        "sync": "hotels",
        "stage": "hotel-content",
        "source": {
            "kind": "rest",
            "connection": "supplier",
            "path": "/hotels",
            "records": "items",
            "cursor": {"path": "next", "parameter": "cursor"},
            "watermark": "updated_at",
        },
        "object": {"key": ["id"], "version": "updated_at"},
        "fields": [
            {"name": "id", "type": "text"},
            {"name": "name", "type": "text", "required": True},
            {"name": "country", "type": "text"},
            {"name": "city", "path": "address.city", "type": "text"},
            {"name": "latitude", "path": "lat", "type": "numeric(9,6)"},
            {"name": "longitude", "path": "lon", "type": "numeric(9,6)"},
            {"name": "stars", "type": "double precision"},
            {"name": "phone", "type": "text"},
            {"name": "email", "type": "text"},
            {"name": "description", "type": "text"},
            {"name": "updated_at", "type": "timestamptz"},
            {"name": "revision", "type": "integer"},
            {"name": "address", "type": "json"},
            {"name": "amenities", "type": "json"},
            {"name": "rooms", "type": "json"},
        ],
        "target": {"table": "hotels"},
    }
)


def main() -> None:
    """Print microseconds of CPU for each record, the best of some rounds."""
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    plain = list(_pages(number, lambda record: record))
    size = sum(map(len, plain)) / number
    mapper = Mapper(SPEC)
    known = _remembered(mapper, plain)
    print(f"{number} records of {size:.0f} bytes, microseconds of CPU for each:")
    for name, pages, remember in (
        ("mapped, first load", plain, _nothing),
        ("not mapped, all unchanged", plain, lambda keys: {key: known[key] for key in keys}),
        ("mapped, integer sent as text", list(_pages(number, _with_text_as_revision)), _nothing),
        ("one damaged record a page", [page.replace(b'"stars":4.5', b'"stars":NaN', 1) for page in plain], _nothing),
    ):
        best = min(_cpu(mapper, pages, remember) for _ in range(ROUNDS))
        print(f"  {name:<28} {best / number * 1e6:6.1f}")


def _nothing(_: object) -> dict[ObjectKey, Remembered]:
    return {}


def _cpu(mapper: Mapper, pages: list[bytes], remember: Remember) -> float:
    before = time.process_time()
    for start in range(0, len(pages), CHUNK_PAGES):
        mapper.map_chunk(pages[start : start + CHUNK_PAGES], "raw", remember)
    return time.process_time() - before


def _remembered(mapper: Mapper, pages: list[bytes]) -> dict[ObjectKey, Remembered]:
    table = pq.read_table(pa.BufferReader(mapper.map_chunk(pages, "raw", _nothing).rows))
    return {
        row[KEY]: Remembered(raw_hash=row[RAW_HASH], row_hash=row[ROW_HASH], source_version=None)
        for row in table.select([KEY, RAW_HASH, ROW_HASH]).to_pylist()
    }


def _pages(number: int, change: Callable[[dict[str, object]], dict[str, object]]) -> Iterator[bytes]:
    for start in range(0, number, PAGE):
        items = [change(_record(place)) for place in range(start, min(start + PAGE, number))]
        yield json.dumps({"items": items, "next": None}, ensure_ascii=False, separators=(",", ":")).encode()


def _with_text_as_revision(record: dict[str, object]) -> dict[str, object]:
    return {**record, "revision": str(record["revision"])}


def _record(place: int) -> dict[str, object]:
    draw = random.Random(place)  # noqa: S311 - sample data, the same in every run
    words = ["".join(draw.choices("abcdefghijklmnoprstuvwäöüé", k=draw.randint(3, 9))) for _ in range(60)]
    rooms = [
        {
            "code": f"R{number}{words[number][:3].upper()}",
            "name": f"{words[10 + number].title()} room",
            "board": draw.choice(["RO", "BB", "HB"]),
            "max_occupancy": draw.randint(1, 5),
            "size_m2": round(draw.uniform(11, 70), 1),
            "price_from": round(draw.uniform(35, 640), 2),
            "currency": "EUR",
            "refundable": draw.random() < 0.5,
        }
        for number in range(3)
    ]
    return {
        "id": f"H{10_000_000 + place}",
        "name": " ".join(words[:3]).title(),
        "country": draw.choice(["AT", "CH", "DE", "FR", "PT"]),
        "address": {
            "street": f"{words[3]} {draw.randint(1, 200)}",
            "postcode": "10115",
            "city": words[4].title(),
            "region": words[5],
        },
        "lat": round(draw.uniform(36, 70), 6),
        "lon": round(draw.uniform(-10, 30), 6),
        "stars": draw.choice([3, 3.5, 4, 4.5, 5]),
        "amenities": draw.sample(["wifi", "parking", "pool", "spa", "gym", "bar", "breakfast", "sauna", "garden"], 7),
        "rooms": rooms,
        "description": " ".join(words[6:])[:400],
        "phone": f"+43 {draw.randint(100, 999)} {draw.randint(100_000, 999_999)}",
        "email": f"info{place}@{words[7]}.example",
        "updated_at": f"2026-0{draw.randint(1, 9)}-{draw.randint(10, 28)}T{draw.randint(10, 23)}:{draw.randint(10, 59)}:00Z",
        "revision": draw.randint(1, 40),
    }


if __name__ == "__main__":
    main()
