"""Credentials appear in no log, event, artifact, error, report or row: canaries, and a supplier that sings what it hears."""

import logging
import traceback
from base64 import b64encode
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml
from structlog.testing import capture_logs

from sluice.adapters.artifacts.s3 import S3ArtifactStore
from sluice.adapters.metrics import LoggedMetrics
from sluice.adapters.postgres import conninfo
from sluice.errors import SluiceError
from sluice.flow.inline import run_inline
from sluice.model.run import Mode, Origin, RunRequest
from sluice.ports import ConnectionInfo, PageRequest, Services
from sluice.settings import Settings
from sluice.wiring import open_services
from tests.support.command_line import CommandLine
from tests.support.echo import WAYS, Echo, echo

LOGIN, PASSWORD = "canarylogin3f2c&é", 'canarypass9b1d"<é/+ %\\'
HEADER, TOKEN = "Own canaryheader77aa;é", "canarytoken51c0+/&="
CORES = ("canarylogin3f2c", "canarypass9b1d", "canaryheader77aa", "canarytoken51c0")

AUTHS: dict[str, Any] = {
    "undeclared": None,
    "none": {"kind": "none"},
    "basic": {"kind": "basic"},
    "bearer": {"kind": "bearer"},
    "key in a header": {"kind": "api_key", "header": "X-Api-Key"},
    "key in the query": {"kind": "api_key", "query": "k"},
    "oauth2": {"kind": "oauth2", "token": "/token"},
    "oauth2 in the body": {"kind": "oauth2", "token": "/token", "credentials": "body"},
    "signed": {"kind": "signed"},
}
SYNC: dict[str, Any] = {
    "sync": "items",
    "stage": "content",
    "source": {"kind": "rest", "connection": "shop", "path": "/items", "records": "items", "error": "error"},
    "object": {"key": ["id"]},
    "fields": [{"name": "id", "type": "text"}],
    "review": {"first_load": "auto-approve"},
    "target": {"table": "items"},
}
STAGES = {
    "defaults": {"retry": {"attempts": 2, "base": "0s", "cap": "0s"}, "breaker": {"failure_rate": "100%"}, "result_ttl": "0s"},
    "stages": {"content": {}},
}
BY_LINK = {"kind": "next_url", "path": "next"}
BY_CURSOR = {"path": "next", "parameter": "cursor"}


def _needles() -> Iterator[bytes]:
    """The canaries as they may look: as they are, in hexadecimal, and in base64 wherever they begin in it."""
    for core in (core.encode() for core in CORES):
        yield core
        yield core.hex().encode()
        for before in range(3):
            yield b64encode(b"\0" * before + core)[4:-4]


NEEDLES = tuple(_needles())


def sings(text: bytes | str) -> list[bytes]:
    """Return the canaries in a text."""
    searched = text.encode(errors="surrogateescape") if isinstance(text, str) else text
    return [needle for needle in NEEDLES if needle in searched]


@pytest.fixture
def shop() -> Iterator[Echo]:
    """The supplier."""
    with echo(TOKEN) as server:
        yield server


def write_project(folder: Path, auth: Any, cursor: Any) -> Path:
    """Write a project whose sync proves who asks that way; return its include folder."""
    source = {**SYNC["source"], "cursor": cursor} | ({"auth": auth} if auth else {})
    (folder / "include/syncs").mkdir(parents=True, exist_ok=True)
    (folder / "include/syncs/items.yaml").write_text(yaml.safe_dump({**SYNC, "source": source}))
    (folder / "include/stages.yaml").write_text(yaml.safe_dump(STAGES))
    return folder / "include"


@contextmanager
def project(folder: Path, known: dict[str, ConnectionInfo], auth: Any, cursor: Any) -> Iterator[Services]:
    """Yield the services of such a project."""

    class Known:
        def get(self, conn_id: str) -> ConnectionInfo:
            return known[conn_id]

    settings = Settings(include=write_project(folder, auth, cursor), cache=folder / "cache")
    with open_services(settings, Known(), LoggedMetrics()) as services:
        yield services


def asked(services: Services) -> str:
    """Ask for the pages; return all that cursors and errors say, with what they were raised from."""
    spec = services.spec("items")
    wanted = PageRequest(shard={}, cursor=None, watermark=None, window_start=None, window_end=None)
    try:
        return repr([page.cursor for page in services.source(spec, services.policy(spec.stage)).pages(wanted)])
    except SluiceError as error:
        return f"{error!r} {error.facts} {''.join(traceback.format_exception(error))}"


def run(services: Services) -> str:
    """Run the sync; return what the run says of itself, or its error."""
    try:
        return run_inline(services, RunRequest(sync="items", mode=Mode.FULL, window=None, origin=Origin())).model_dump_json()
    except SluiceError as error:
        return f"{error!r} {error.facts} {''.join(traceback.format_exception(error))}"


def rows_of(database: ConnectionInfo) -> Iterator[str]:
    """Yield every row of every table, all columns of it."""
    tables = "select table_schema, table_name from information_schema.tables where table_schema !~ '^(pg_|information_)'"
    with psycopg.connect(conninfo(database)) as opened:
        for schema, table in opened.execute(tables).fetchall():
            yield from (f"{schema}.{table} {row!r}" for row in opened.execute(f'select * from "{schema}"."{table}"'.encode()))


def artifacts_of(info: ConnectionInfo) -> Iterator[tuple[str, bytes]]:
    """Yield every object of the bucket by its key, raw data aside: that is what the supplier sent, and stays so."""
    bucket = str(info.extra["bucket"])
    client = S3ArtifactStore(info)._client
    for found in client.list_objects_v2(Bucket=bucket).get("Contents", []):
        if "/raw/" not in found["Key"]:
            yield found["Key"], client.get_object(Bucket=bucket, Key=found["Key"])["Body"].read()


def require_silence(texts: Iterable[bytes | str]) -> int:
    """Hold every text against the canaries; return how many there were."""
    searched = 0
    for text in texts:
        assert not sings(text), text
        searched += 1
    return searched


@pytest.fixture
def known(database: ConnectionInfo, artifacts: ConnectionInfo, shop: Echo) -> dict[str, ConnectionInfo]:
    """All connections there are; that of the supplier has the canaries."""
    secret = shop.connection(login=LOGIN, password=PASSWORD, extra={"headers": {"X-Own-Key": HEADER}})
    return {"sluice_state": database, "sluice_target": database, "sluice_artifacts": artifacts, "shop": secret}


@pytest.fixture
def overheard(caplog: pytest.LogCaptureFixture) -> Iterator[list[str]]:
    """All that is logged, by whichever library, to be read behind the end of what is tested."""
    caplog.set_level(logging.DEBUG)
    for chatty in ("boto3", "botocore", "urllib3"):  # who talk to the object store, at length
        caplog.set_level(logging.INFO, chatty)
    lines: list[str] = []
    with capture_logs() as entries:
        yield lines
    require_silence(str(entry) for entry in entries)
    require_silence(record.getMessage() for record in caplog.records)
    assert entries


WHOLE_RUNS = dict.fromkeys(("key in the query", "oauth2", "signed"), ("500", "cursor", "none")) | {"basic": WAYS}
"""Where whole runs are made as well: they take their time."""


@pytest.mark.parametrize("auth", AUTHS)
def test_no_canary_is_heard(
    tmp_path: Path, known: dict[str, ConnectionInfo], shop: Echo, overheard: list[str], auth: str
) -> None:
    """Whatever the supplier repeats, and wherever: errors, reports, rows and artifacts show nothing of it."""
    for way in (*WAYS, "token"):
        shop.way = way
        with project(tmp_path, known, AUTHS[auth], BY_LINK if way == "link" else BY_CURSOR) as services:
            said = asked(services)
            assert ("Error" in said or "Traceback" in said) is not (way in ("none", "token") and said == "[None]"), said
            require_silence([said, run(services) if way in WHOLE_RUNS.get(auth, ()) else ""])
    assert shop.heard
    rows = list(rows_of(known["sluice_state"]))
    require_silence(rows)
    if auth in WHOLE_RUNS:
        assert any(row.startswith("public.items") for row in rows)
        assert require_silence(body for _, body in artifacts_of(known["sluice_artifacts"])) > 1


def test_a_canary_would_be_heard() -> None:
    """The search finds a canary in each of the spellings it is after."""
    for text in (PASSWORD, repr(PASSWORD), PASSWORD.encode().hex(), b64encode(f"{LOGIN}:{PASSWORD}".encode()).decode()):
        assert sings(text)
    for before in range(3):
        assert sings(b64encode(b"x" * before + PASSWORD.encode()))
    assert not sings("nothing to hear")


@pytest.mark.parametrize(
    ("way", "arguments"),
    [
        ("none", ("--verbose", "run", "items", "--inline")),
        ("link", ("--verbose", "run", "items", "--inline")),
        ("500", ("try", "items")),
    ],
)
def test_the_command_line_keeps_quiet(
    tmp_path: Path, known: dict[str, ConnectionInfo], shop: Echo, way: str, arguments: tuple[str, ...]
) -> None:
    """What commands print, asked to tell all, holds no canary either."""
    write_project(tmp_path, AUTHS["key in the query"], BY_LINK)
    shop.way = way
    done = CommandLine(tmp_path, known).call(*arguments)
    assert "items" in done.stdout
    require_silence([done.stdout, done.stderr])
