"""What a suite of ten expectations adds to a review: seconds, CPU of client and Postgres, and memory.

    .venv/bin/python bench/expectations.py [ROWS]

A table of ROWS hotels (200,000 unless said) is reviewed with 1% of its rows coming in anew, and with all of them, each with the
suite and without: a line is the difference. Loading Great Expectations is part of it, beside the database's work, and told as
well. The limits are for a million rows: ten seconds and 200 MB.
"""

import json
import os
import resource
import shutil
import sys
import tempfile
import time
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path

import psycopg
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from psycopg import sql

sys.path.insert(0, str(Path(__file__).parent))

from costs import Cost, Meter

from sluice.adapters.migrate import upgrade
from sluice.adapters.postgres import Database
from sluice.adapters.targets.postgres import PostgresTarget
from sluice.cli.local.postgres import PostgresServer
from sluice.errors import TargetUnavailable
from sluice.model.base import ShardKey
from sluice.model.quality import Met, SuiteExpectation
from sluice.model.spec import SyncSpec
from sluice.ports import ConnectionInfo, DiffScope

PROJECT = Path(__file__).parents[1]
TYPES = {
    "id": "text",
    "name": "text",
    "country": "text",
    "stars": "integer",
    "price": "numeric(10,2)",
    "phone": "text",
    "updated_at": "timestamptz",
}
COUNTRIES = ["DE", "ES", "FR", "GR", "IT", "PT"]
SPEC = SyncSpec.model_validate(
    {
        "sync": "hotels",
        "stage": "hotel-content",
        "source": {"kind": "rest", "connection": "c", "path": "/h", "cursor": {"path": "next", "parameter": "cursor"}},
        "object": {"key": ["id"]},
        "fields": [{"name": name, "type": kind} for name, kind in TYPES.items()],
        "target": {"table": "public.hotels"},
    }
)
SUITE = [
    SuiteExpectation(type=f"expect_{kind}", kwargs=kwargs)
    for kind, kwargs in (
        ("column_values_to_not_be_null", {"column": "name"}),
        ("column_values_to_not_be_null", {"column": "updated_at"}),
        ("column_values_to_be_in_set", {"column": "country", "value_set": [*COUNTRIES]}),
        ("column_values_to_be_between", {"column": "stars", "min_value": 0, "max_value": 5}),
        ("column_values_to_be_between", {"column": "price", "min_value": 1}),
        ("column_values_to_match_regex", {"column": "phone", "regex": "^[+][0-9]+$"}),
        ("column_value_lengths_to_be_between", {"column": "id", "min_value": 1, "max_value": 20}),
        ("column_values_to_be_unique", {"column": "id"}),
        ("column_mean_to_be_between", {"column": "price", "min_value": 50, "max_value": 150}),
        ("table_row_count_to_be_between", {"min_value": 1}),
    )
]
CHUNK = 15_000
FILL = """
create table public.hotels as
select 'h' || i as id, 'Hotel ' || i as name, (array['DE', 'ES', 'FR', 'GR', 'IT', 'PT'])[1 + i % 6] as country,
    i % 6 as stars, (1 + i % 200)::numeric(10,2) as price, '+49' || i as phone, now() as updated_at,
    null::timestamptz as _sluice_deleted_at
from generate_series(1, {rows}) i;
alter table public.hotels add primary key (id);
insert into sluice_ledger.object (
    sync, key, shard, raw_hash, row_hash, transformer_version, state, first_seen, last_changed_run, publication
)
select 'hotels', id, 'all', decode(md5(id), 'hex'), decode(md5(id), 'hex'), 1, 'live', now(), 'run', 1 from public.hotels
"""


def main() -> None:
    """Set the table up, review it four times, print what the suite adds."""
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    folder = Path(tempfile.mkdtemp(prefix="sluice-bench-"))
    folder.chmod(0o711)
    postgres = PostgresServer(folder / "postgres")
    try:
        postgres.start()
        meter = Meter(postgres, folder)
        postgres.ensure_database("bench")
        info = postgres.connection("sluice_target", "bench")
        upgrade(info, "sluice_ledger")
        with psycopg.connect(postgres.uri("bench")) as session:
            session.execute(sql.SQL(FILL).format(rows=number))
        meter.settle("bench")
        print(f"{number:,} rows, ten expectations; what they add")
        for what, coming in (("1% coming in", number // 100), ("all coming in", number)):
            chunks = folder / f"chunks-{coming}"
            chunks.mkdir()
            write(chunks, coming)
            costs = [review(meter, info, chunks, suite) for suite in ("plain", "suite")]
            tell(what, *costs)
    finally:
        postgres.stop()
        shutil.rmtree(folder, ignore_errors=True)


def write(folder: Path, number: int) -> None:
    """Write rows artifacts of so many hotels that have changed."""
    for seq, start in enumerate(range(1, number + 1, CHUNK)):
        keys = pa.array(range(start, min(start + CHUNK, number + 1)), pa.int64())
        texts, count = keys.cast(pa.string()), len(keys)
        key = pc.binary_join_element_wise("h", texts, "")
        head = {
            "_key": key,
            "_version": pa.nulls(count, pa.int64()),
            "_raw_hash": pa.array([os.urandom(16) for _ in range(count)], pa.binary(16)),
            "_row_hash": pa.array([os.urandom(16) for _ in range(count)], pa.binary(16)),
            "_mapped": pa.repeat(True, count),
            "_deleted": pa.repeat(False, count),
        }
        values = {
            "id": key,
            "name": pc.binary_join_element_wise("Hotel", texts, " "),
            "country": pa.array([COUNTRIES[number % 6] for number in keys.to_pylist()]),
            "stars": pa.array([number % 6 for number in keys.to_pylist()], pa.int32()),
            "price": pa.array([f"{1 + number % 150}.50" for number in keys.to_pylist()]),
            "phone": pc.binary_join_element_wise("+49", texts, ""),
            "updated_at": pa.repeat("2026-02-01T00:00:00Z", count),
        }
        pq.write_table(pa.table(head | values), folder / f"{seq:05}.parquet", compression="zstd")


def review(meter: Meter, info: ConnectionInfo, chunks: Path, suite: str) -> tuple[Cost, dict[str, float]]:
    """Compare, and look closer, in a process of its own."""
    command = [sys.executable, Path(__file__), "review", str(chunks), suite]
    environ = {**os.environ, "BENCH_TARGET": json.dumps(asdict(info))}
    done = meter.run(command, environ, PROJECT)
    return done.cost, json.loads(done.output)


def review_here(chunks: Path, suite: str) -> None:
    """Be that process."""
    info = ConnectionInfo(**json.loads(os.environ["BENCH_TARGET"]))
    told: dict[str, float] = {"import": 0.0, "after_import": 0.0}
    database = Database(info, TargetUnavailable)
    files = sorted(chunks.glob("*.parquet"))
    with PostgresTarget(database, SPEC).diffing() as diffing:
        for seq, file in enumerate(files):
            diffing.stage(ShardKey("all"), seq, file.read_bytes())
        diffing.compare(DiffScope(complete=False, transformer_version=1))
        with tempfile.TemporaryFile() as diff:
            diffing.write_diff(diff)
        began = time.monotonic()
        if suite == "suite":
            expecting = diffing.expecting(TYPES, timedelta(minutes=5), lambda: None)
            for shard, seq in expecting.needed():
                expecting.load_rows(shard, seq, files[seq].read_bytes())
            expecting.complete()
            told["loaded"] = time.monotonic() - began
            results = expecting.check(SUITE)
            assert all(result.met is Met.PASSED for result in results), results  # noqa: S101 - a benchmark of nothing is none
            told["import"] = expecting.import_seconds
        told["wall"] = time.monotonic() - began
        told["rss"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    database.close()
    print(json.dumps(told))


def tell(what: str, plain: tuple[Cost, dict[str, float]], suite: tuple[Cost, dict[str, float]]) -> None:
    """Print the difference."""
    (before, _), (after, told) = plain, suite
    memory = (after.pss - before.pss) / 1_000_000
    print(
        f"  {what:14} {told['wall']:5.1f} s, {told['import']:.1f} of them for loading the library; CPU of the client "
        f"{after.client - before.client:.1f} s, of Postgres {after.postgres - before.postgres:.1f} s; memory {memory:.0f} MB"
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["review"]:
        review_here(Path(sys.argv[2]), sys.argv[3])
    else:
        main()
