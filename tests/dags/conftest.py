"""An Airflow of its own for the tests of this folder: its metadata in the session's Postgres, its home thrown away."""

import atexit
import json
import re
import shutil
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvicorn

from sluice.cli.connections import parse_connection
from sluice.cli.local.keeping import free_port
from sluice.cli.local.postgres import PostgresServer
from sluice.cli.local.services import as_variable
from sluice.ports import ConnectionInfo
from tests.dags.driving import DrivenAirflow, driven
from tests.support.servers import PROJECT, Supplier

HOME = Path(tempfile.mkdtemp(prefix="sluice-airflow-"))
atexit.register(shutil.rmtree, HOME, ignore_errors=True)

ENVIRONMENT = {
    "AIRFLOW_HOME": str(HOME),
    "AIRFLOW__CORE__DAGS_FOLDER": str(HOME / "dags"),
    "AIRFLOW__CORE__PLUGINS_FOLDER": str(PROJECT / "plugins"),
    "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    "AIRFLOW__CORE__UNIT_TEST_MODE": "False",
    "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": "ann:admin,vic:viewer",
    "AIRFLOW__API_AUTH__JWT_SECRET": "a secret of the tests " * 4,
    "AIRFLOW__LOGGING__LOGGING_LEVEL": "WARNING",
    "SLUICE_INCLUDE": str(HOME / "include"),
    "SLUICE_CACHE": str(HOME / "cache"),
}

STAGES = """
defaults: {task_retries: 0, retry: {attempts: 1, base: 0s, cap: 0s}, chunk_bytes: 20kB}
stages:
  hotel-content: {}
  in-four-groups: {groups: 4}
  in-one-group: {groups: 1, result_ttl: 1h, max_parallel_shards: 9, task_retries: 1, task_retry_delay: 0s, timeouts: {step: 2h}}
"""

CITIES = """
sync: cities
stage: in-four-groups
source: {kind: rest, connection: cities, path: /hotels, query: {city: "{{ shard.city }}"}, cursor: {kind: none}}
shards:
  {kind: listed, name: city, value: name, source: {kind: rest, connection: cities, path: /cities, cursor: {kind: none}}}
object: {key: [id]}
fields: [{name: id, type: text}, {name: city, type: text}]
review: {first_load: auto-approve, auto_approve: {created: 100%, deleted: 100%}, block: {deleted: 100%}}
target: {table: public.cities}
"""

REPORT = """
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, Asset

with DAG("sluice_of_others"):
    EmptyOperator(task_id="work")

with DAG("hotels_report", schedule=Asset(name="sluice/hotels", uri="x-sluice://hotels")):
    EmptyOperator(task_id="report")
"""

FILES = "source: {kind: files, connection: cities, files: [/hotels.jsonl], format: jsonl}"
"""Where the cities' hotels are, as a file."""

with pytest.MonkeyPatch.context() as _patch:
    for _name, _value in ENVIRONMENT.items():
        _patch.setenv(_name, _value)
    import airflow.sdk


@pytest.fixture(scope="package")
def airflow_home(postgres: PostgresServer) -> Iterator[Path]:
    """The home of an Airflow with an empty metadata database; `dags` and `include` in it are this folder's."""
    postgres.ensure_database("airflow")
    lay_out_syncs()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ENVIRONMENT.items():
            patch.setenv(name, value)
        patch.setenv("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", postgres.uri("airflow", "postgresql+psycopg"))
        from airflow import settings
        from airflow.utils.db import initdb

        settings.configure_vars()
        settings.reconfigure_orm()
        initdb()
        yield HOME
        settings.dispose_orm()


def lay_out_syncs() -> None:
    """Write the DAGs and specs of the tests: the hotels as they are, all shards in one task, by spans of time; and cities."""
    spec = (PROJECT / "include" / "syncs" / "hotels.yaml").read_text().replace('limit: "500"', 'limit: "50"')
    (HOME / "include" / "syncs").mkdir(parents=True)
    (HOME / "include" / "stages.yaml").write_text(STAGES)
    (HOME / "include" / "syncs" / "hotels.yaml").write_text(spec)
    shutil.copy(PROJECT / "include" / "syncs" / "hotel_days.yaml", HOME / "include" / "syncs")
    grouped = spec.replace("sync: hotels ", "sync: grouped ").replace("hotel-content", "in-one-group")
    grouped = grouped.replace('schedule: "@daily"', 'schedule: "@daily"\nschedule_zone: Europe/Berlin')
    (HOME / "include" / "syncs" / "grouped.yaml").write_text(grouped.replace("public.hotels", "public.grouped"))
    windowed = spec.replace("sync: hotels ", "sync: windowed ").replace("{{ watermark }}", "{{ window.start or watermark }}")
    (HOME / "include" / "syncs" / "windowed.yaml").write_text(windowed.replace("public.hotels", "public.windowed"))
    (HOME / "include" / "syncs" / "cities.yaml").write_text(CITIES)
    drop = re.sub(r"source: .*\nshards:\n.*", FILES, CITIES).replace("sync: cities", "sync: drop")
    (HOME / "include" / "syncs" / "drop.yaml").write_text(drop.replace("public.cities", "public.drop"))
    (HOME / "dags").mkdir()
    for name in ("hotels.py", "sluice_upkeep.py"):
        shutil.copy(PROJECT / "dags" / name, HOME / "dags")
    (HOME / "dags" / "hotels_report.py").write_text(REPORT)
    for name in ("hotel_days", "grouped", "windowed", "cities", "drop"):
        (HOME / "dags" / f"{name}.py").write_text((PROJECT / "dags" / "hotels.py").read_text().replace("hotels", name))


@pytest.fixture
def connections(
    monkeypatch: pytest.MonkeyPatch,
    airflow_home: Path,
    database: ConnectionInfo,
    artifacts: ConnectionInfo,
    supplier: Supplier,
) -> None:
    """The connections of a sync, defined as Airflow connections in the environment."""
    define(monkeypatch, database, artifacts, supplier.connection)


def define(patch: pytest.MonkeyPatch, database: ConnectionInfo, artifacts: ConnectionInfo, supplier: ConnectionInfo) -> None:
    """Define the connections of a sync as Airflow connections in the environment."""
    named = {"sluice_state": database, "sluice_target": database, "sluice_artifacts": artifacts, "demo_supplier": supplier}
    for conn_id, info in named.items():
        patch.setenv(f"AIRFLOW_CONN_{conn_id.upper()}", as_variable(info))


@pytest.fixture(scope="package")
def airflow_session(airflow_home: Path) -> Iterator[DrivenAirflow]:
    """An Airflow with its API, for all tests of this folder: to start it takes seconds."""
    with driven(airflow_home) as started:
        yield started


@pytest.fixture
def airflow(airflow_session: DrivenAirflow, connections: None) -> DrivenAirflow:
    """That Airflow, with the connections of a sync to a database, a bucket and a supplier of the test's own."""
    return airflow_session


@pytest.fixture
def api(airflow: DrivenAirflow, airflow_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ConnectionInfo]:
    """The connection `sluice_airflow` to this Airflow's API, which listens."""
    passwords = json.loads((airflow_home / "simple_auth_manager_passwords.json.generated").read_text())
    port = free_port()
    server = uvicorn.Server(uvicorn.Config(airflow.client.app, host="127.0.0.1", port=port, lifespan="off", log_level="error"))
    thread = threading.Thread(target=server.run)
    thread.start()
    info = parse_connection("sluice_airflow", f"http://ann:{passwords['ann']}@127.0.0.1:{port}")
    monkeypatch.setenv("AIRFLOW_CONN_SLUICE_AIRFLOW", as_variable(info))
    yield info
    server.should_exit = True
    thread.join()
