"""The project's hotels in small pages: what the supplier has, what it was asked for, and what the table holds."""

import json
from collections.abc import Callable, Iterable
from decimal import Decimal
from pathlib import Path
from typing import IO, Any

import psycopg
import urllib3
import yaml

from sluice.adapters.postgres import conninfo
from sluice.ports import ConnectionInfo
from tests.support.command_line import CommandLineHere, command_line
from tests.support.servers import Supplier

PAGE = 20
REGIONS = ("brittany", "tokyo")


def hotels_project(
    folder: Path, database: ConnectionInfo, artifacts: ConnectionInfo, supplier: Supplier, **policy: Any
) -> CommandLineHere:
    """Return a command line in a project of small pages, a page to a chunk, and short leases; `policy` is of its stage."""
    command = command_line(folder, database, artifacts, supplier)
    edit(folder / "include/syncs/hotels.yaml", lambda spec: spec["source"]["query"].update(limit=str(PAGE)))
    edit(
        folder / "include/stages.yaml",
        lambda stages: stages["defaults"].update(
            {
                "chunk_bytes": 1,
                "lease_ttl": "2s",
                "heartbeat": "0.5s",
                "retry": {"attempts": 2, "base": "0s", "cap": "0s"},
                **policy,
            }
        ),
    )
    return command


def edit(path: Path, change: Callable[[Any], object]) -> None:
    """Change a YAML file."""
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    change(content)
    path.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")


def read_until(lines: IO[str], event: str, times: int) -> int:
    """Read lines until so many tell of the event; return how many did."""
    seen = 0
    for line in lines:
        seen += event in line
        if seen == times:
            break
    return seen


def asked_for_hotels(supplier: Supplier) -> list[str]:
    """Return the requests for hotels that the supplier has had, oldest first."""
    return [target for target in supplier.requests() if "quiet=1" not in target]


def feed(supplier: Supplier, region: str) -> list[dict[str, Any]]:
    """Return all hotels of a region, as they are now, without leaving a trace among the supplier's requests."""
    answer = urllib3.request("GET", f"{supplier.url}/hotels?region={region}&limit=10000&quiet=1", retries=False)
    return list(json.loads(answer.data, parse_float=Decimal)["hotels"])


def expected(supplier: Supplier) -> list[tuple[Any, ...]]:
    """Return the rows that the table has to hold, given what the supplier has now."""
    hotels: Iterable[dict[str, Any]] = [hotel for region in REGIONS for hotel in feed(supplier, region)]
    return sorted(
        (hotel["id"], hotel["region"], hotel["name"], hotel["location"]["lat"], hotel["location"]["lon"], hotel["tags"])
        for hotel in hotels
    )


def table_of(database: ConnectionInfo) -> list[tuple[Any, ...]]:
    """Return the rows that are published."""
    columns = "id, region, name, latitude, longitude, tags"
    with psycopg.connect(conninfo(database)) as connection:
        rows = connection.execute(f"select {columns} from public.hotels where _sluice_deleted_at is null").fetchall()
    return sorted(rows)
