"""Who is compared: the servers and the supplier's data come in; a command for each contender and scenario goes out."""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import psycopg
import yaml
from hotels import COUNTRIES, Facts, Hotels

from sluice.adapters.migrate import upgrade
from sluice.cli.local.postgres import PostgresServer
from sluice.cli.local.s3 import S3Server
from sluice.cli.local.services import as_variable
from sluice.ports import ConnectionInfo

HERE: Final = Path(__file__).parent
LOCKS: Final = HERE / "contenders"
SLUICE: Final = "Sluice"
FLOOR: Final = "the floor, by hand"

_KINDS: Final = {
    "id": "text",
    "name": "text",
    "country": "text",
    "lat": "numeric(9,6)",
    "lon": "numeric(9,6)",
    "stars": "double precision",
    "phone": "text",
    "email": "text",
    "description": "text",
    "updated_at": "timestamptz",
    "version": "integer",
    "address": "json",
    "amenities": "json",
    "rooms": "json",
}
SPEC: Final = {
    "sync": "hotels",
    "stage": "bench",
    "source": {
        "kind": "rest",
        "connection": "supplier",
        "path": "/hotels",
        "query": {"country": "{{ shard.country }}", "limit": "500", "updated_since": "{{ watermark }}"},
        "records": "hotels",
        "cursor": {"path": "next_cursor", "parameter": "cursor"},
        "watermark": "updated_at",
    },
    "shards": {"kind": "values", "name": "country", "values": COUNTRIES},
    "object": {"key": ["id"], "version": "updated_at"},
    "fields": [{"name": name, "type": kind} for name, kind in _KINDS.items()],
    "review": {"first_load": "auto-approve", "auto_approve": {"deleted": "1%"}},
    "target": {"connection": "sluice_target", "table": "public.hotels", "deletes": "soft"},
}


@dataclass(frozen=True)
class Place:
    """Where everything is, while one contender has its turn."""

    hotels: Hotels
    folder: Path
    """For what the contender keeps."""
    database: str
    postgres: PostgresServer
    s3: S3Server
    port: int
    """Of the supplier."""

    @property
    def url(self) -> str:
        """The address of the database."""
        return self.postgres.uri(self.database)

    def supplier(self, state: str) -> str:
        """Return the address of the supplier in one of its states."""
        return f"http://127.0.0.1:{self.port}/{state}"


@dataclass(frozen=True)
class Contender:
    """One way to keep the table."""

    name: str
    table: str
    command: Callable[[Place, str], Sequence[str | Path]]
    """Makes the command that takes in a state of the supplier."""
    lock: str | None = None
    """The file of pinned packages that it is installed from, apart from Sluice; None: it is Sluice."""
    live: str = "true"
    """The condition for rows that are not deleted."""
    sees_deletions: bool = False
    environ: Callable[[Place, str], Mapping[str, str]] = field(default=lambda _place, _state: {})
    prepare: Callable[[Place], None] = field(default=lambda _: None)

    def problem(self, place: Place, facts: Facts) -> str | None:
        """Return what is wrong with the table, after a state of these facts has been taken in."""
        kept = (facts.gone, facts.gone_versions, facts.gone_letters) if not self.sees_deletions else (0, 0, 0)
        delivered = (facts.hotels, facts.versions, facts.letters)
        wanted = tuple(ours + more for ours, more in zip(delivered, kept, strict=True))
        query = f"select count(*), sum(version), sum(length(description)) from {self.table} where {self.live}"  # noqa: S608
        with psycopg.connect(place.url) as session:
            found = session.execute(query).fetchone()  # type: ignore[arg-type] # our own constants
        return None if found == wanted else f"the table holds {found} (hotels, versions, letters) instead of {wanted}"


def installed(home: Path, lock: str) -> Path:
    """Return the folder of programs of an environment, built unless it is there; raise CalledProcessError if it cannot be."""
    environment, ready = home / lock, home / lock / ".ready"
    pinned = (LOCKS / f"{lock}.txt").read_text()
    if not ready.exists() or ready.read_text() != pinned:
        uv = Path(sys.executable).parent / "uv"
        python = environment / "bin" / "python"
        make = [uv, "venv", "--quiet", "--clear", "--python", sys.executable, environment]
        install = [uv, "pip", "install", "--quiet", "--python", python, "--require-hashes", "--no-deps"]
        for command in (make, [*install, "-r", LOCKS / f"{lock}.txt"]):
            subprocess.run(command, check=True, capture_output=True, text=True)
        ready.write_text(pinned)
    return environment / "bin"


def contenders(home: Path) -> list[Contender]:
    """Return all of them; those that are not Sluice are installed below `home`."""
    dlt = [_dlt(home, name, way) for name, way in (("dlt", "default"), ("dlt, tuned", "tuned"), ("dlt, fed Arrow", "arrow"))]
    by_hand = [_by_hand(home, "COPY, by hand", "with_copy.py"), _by_hand(home, FLOOR, "with_skipping.py")]
    return [_sluice(), *dlt, _sling(home), _ingestr(home), *by_hand]


def _sluice() -> Contender:
    def prepare(place: Place) -> None:
        syncs = place.folder / "include/syncs"
        syncs.mkdir(parents=True)
        (syncs / "hotels.yaml").write_text(yaml.safe_dump(SPEC, sort_keys=False))
        (place.folder / "include/stages.yaml").write_text(yaml.safe_dump({"stages": {"bench": {}}}))
        database = place.postgres.connection("sluice_state", place.database)
        upgrade(database, "sluice_state")
        upgrade(database, "sluice_ledger")

    def environ(place: Place, state: str) -> dict[str, str]:
        database, host = place.postgres.connection("sluice_state", place.database), place.supplier(state)
        known = {
            "sluice_state": database,
            "sluice_target": database,
            "sluice_artifacts": place.s3.connection("sluice_artifacts", "bench"),
            "supplier": ConnectionInfo("supplier", "http", host, None, None, None, None, {}),
        }
        variables = {f"AIRFLOW_CONN_{name.upper()}": as_variable(info) for name, info in known.items()}
        return variables | {"SLUICE_CACHE": str(place.folder / "cache")}

    command = [Path(sys.executable), "-m", "sluice", "run", "hotels", "--inline", "--json", "--mode", "full"]
    return Contender(
        name=SLUICE,
        table="public.hotels",
        command=lambda _place, _state: command,
        live="_sluice_deleted_at is null",
        sees_deletions=True,
        environ=environ,
        prepare=prepare,
    )


def _dlt(home: Path, name: str, way: str) -> Contender:
    return Contender(
        name=name,
        table="peer.hotels",
        command=lambda place, state: [
            home / "dlt/bin/python", LOCKS / "with_dlt.py", way, place.supplier(state), place.url, place.folder,
        ],
        lock="dlt",
    )  # fmt: skip


def _sling(home: Path) -> Contender:
    options = '{"format": "jsonlines", "flatten": 1}'
    return Contender(
        name="Sling, from a file",
        table="public.hotels",
        command=lambda place, state: [
            *(next((home / "sling").glob("lib/python*/site-packages/sling_linux_amd64/bin/sling-linux-amd64")), "run"),
            *("--src-stream", f"file://{place.hotels.lines(state)}", "--tgt-conn", "TARGET", "--tgt-object", "public.hotels"),
            *("--mode", "incremental", "--primary-key", "id", "--src-options", options),
        ],
        environ=lambda place, _: {"SLING_DISABLE_TELEMETRY": "true", "TARGET": f"{place.url}?sslmode=disable"},
        lock="sling",
    )


def _ingestr(home: Path) -> Contender:
    return Contender(
        name="ingestr, from a file",
        table="public.hotels",
        command=lambda place, state: [
            *(home / "ingestr/bin/ingestr", "ingest", "--yes", "--progress", "log"),
            *("--source-uri", f"jsonl://{place.hotels.lines(state)}", "--source-table", "hotels"),
            *("--dest-uri", f"{place.url}?sslmode=disable", "--dest-table", "public.hotels"),
            *("--incremental-strategy", "merge", "--primary-key", "id"),
        ],
        environ=lambda _place, _: {"GONG_TELEMETRY": "false", "INGESTR_DISABLE_TELEMETRY": "true"},
        lock="ingestr",
    )


def _by_hand(home: Path, name: str, script: str) -> Contender:
    return Contender(
        name=name,
        table="public.hotels",
        command=lambda place, state: [home / "hand/bin/python", LOCKS / script, place.supplier(state), place.url],
        live="gone_at is null",
        sees_deletions=True,
        lock="hand",
    )


def environment(contender: Contender, place: Place, state: str) -> dict[str, str]:
    """Return the whole environment of a contender's command."""
    return {"PATH": os.environ["PATH"], "HOME": str(place.folder), **contender.environ(place, state)}
