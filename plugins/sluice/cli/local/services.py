"""A project folder in; its running services, and the environment that leads others to them, out."""

import json
import os
import shutil
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from sluice.adapters.spec_files import STAGES_FILE, SpecFiles
from sluice.adapters.yaml_positions import parse_yaml
from sluice.cli.connections import PREFIX, parse_connection
from sluice.cli.local import keeping, processes
from sluice.cli.local.airflow import PROCESSES, AirflowServer
from sluice.cli.local.board import Board
from sluice.cli.local.layout import Layout
from sluice.cli.local.postgres import PostgresServer
from sluice.cli.local.s3 import S3Server
from sluice.cli.local.settings_file import LocalSettings, Pool
from sluice.cli.local.supplier import DemoSupplier
from sluice.errors import SpecInvalid, StackFailed
from sluice.model.airflow_names import pool_of
from sluice.model.connections import AIRFLOW, ARTIFACTS, STATE, TARGET
from sluice.ports import ConnectionInfo

SUPPLIER: Final = "demo_supplier"
BUCKET: Final = "sluice"
DATABASE: Final = "sluice"
LINES: Final = {
    "postgres": "Postgres",
    "s3": "S3",
    "supplier": "Supplier",
    "schemas": "Sluice's schemas",
    "database": "Airflow's database",
    "api-server": "Airflow's API",
    "scheduler": "Airflow's scheduler",
    "dag-processor": "Airflow's DAG reader",
}


class Stack:
    """The services of one project. A connection that is defined elsewhere is used as it is, and its server stays off."""

    def __init__(self, layout: Layout, settings: LocalSettings, environ: Mapping[str, str] = os.environ) -> None:
        given = {name.removeprefix(PREFIX).lower(): text for name, text in environ.items() if name.startswith(PREFIX) and text}
        self._layout = layout
        self._settings = settings
        self._given = {**settings.connections, **given}
        self._postgres = PostgresServer(layout.root / "postgres")
        self._s3 = S3Server(layout.root / "s3", BUCKET)
        self._supplier = DemoSupplier(layout.root / "supplier", layout.project / "include" / "demo" / "supplier.py")
        self._airflow: AirflowServer | None = None

    def start(self, board: Board, *, migrate_given: bool) -> None:
        """Start everything, side by side where it can be, and wait until it is well.

        Sluice's schemas are brought up to date where the database is the stack's own; with `migrate_given`, in any.
        """
        with ThreadPoolExecutor(2) as pool:
            others = [pool.submit(self._start_s3, board), pool.submit(self._start_supplier, board)]
            is_new = self._start_postgres(board)
            for other in others:
                other.result()
        self._migrate_schemas(board, migrate_given=migrate_given)
        # A second terminal can work inline from here on; Airflow, which takes longest, follows.
        keeping.write_private(self._layout.environment, environment_text(self._variables((STATE, TARGET, ARTIFACTS, SUPPLIER))))
        self._start_airflow(board, is_new=is_new)

    def stop(self) -> None:
        """End everything, in reverse."""
        self._layout.environment.unlink(missing_ok=True)
        for service in (self._airflow, self._supplier, self._s3, self._postgres):
            if service is not None:
                service.stop()

    def remove(self) -> None:
        """End what a killed stack has left, and remove all data."""
        for server in (self._prepared_airflow(), self._supplier, self._s3, self._postgres):
            server.stop_leftover()
        self._postgres.remove()
        shutil.rmtree(self._layout.root)

    def raise_if_ended(self) -> None:
        """Raise `StackFailed`, with the end of its log, if a service has ended by itself."""
        for service in (self._postgres, self._s3, self._supplier):
            if (code := service.exit_code()) is not None:
                last = processes.tail(service.log)
                raise StackFailed(f"{type(service).__name__} has ended with {code}. The end of {service.log}:\n{last}")
        self.airflow.raise_if_ended()

    @property
    def airflow(self) -> AirflowServer:
        """Airflow; it is there once the stack has been started."""
        if self._airflow is None:
            raise StackFailed("The local stack has not been started.")
        return self._airflow

    def connection(self, conn_id: str) -> ConnectionInfo:
        """Return a connection: the one defined elsewhere, or the one to the stack's own server."""
        if conn_id in self._given:
            return parse_connection(conn_id, self._given[conn_id])
        if conn_id == ARTIFACTS:
            return self._s3.connection(conn_id)
        if conn_id == SUPPLIER:
            return self._supplier.connection(conn_id)
        if conn_id == AIRFLOW:
            return self.airflow.connection(conn_id)
        return self._postgres.connection(conn_id, DATABASE)

    def _start_postgres(self, board: Board) -> bool:
        """Start the server; return whether Airflow's database is new."""
        with board.working("postgres", "starting"):
            self._postgres.start()
            self._postgres.ensure_database(DATABASE)
            is_new = self._postgres.ensure_database("airflow")
            board.done("postgres", f"127.0.0.1:{self._postgres.port}")
        return is_new

    def _start_s3(self, board: Board) -> None:
        if self._is_given(board, "s3", ARTIFACTS):
            return
        with board.working("s3", "starting"):
            self._s3.start()
            board.done("s3", f"{self._s3.endpoint}, bucket {BUCKET}")

    def _start_supplier(self, board: Board) -> None:
        if self._is_given(board, "supplier", SUPPLIER):
            return
        with board.working("supplier", "starting"):
            self._supplier.start()
            board.done("supplier", f"{self._supplier.url}/hotels")

    def _is_given(self, board: Board, line: str, conn_id: str) -> bool:
        if conn_id not in self._given:
            return False
        info = self.connection(conn_id)
        board.passed_over(line, f"yours: {info.extra.get('endpoint_url') or info.host} (connection {conn_id})")
        return True

    def _migrate_schemas(self, board: Board, *, migrate_given: bool) -> None:
        from sluice.adapters.artifacts.s3 import S3ArtifactStore
        from sluice.adapters.migrate import upgrade
        from sluice.adapters.schemas import Schema

        homes: tuple[tuple[str, Schema], ...] = ((STATE, "sluice_state"), (TARGET, "sluice_ledger"))
        with board.working("schemas", "migrating"):
            applied: list[str] = []
            left: list[str] = []
            for conn_id, schema in homes:
                if migrate_given or conn_id not in self._given:
                    applied += upgrade(self.connection(conn_id), schema)
                else:
                    left.append(conn_id)
            if migrate_given and ARTIFACTS in self._given:
                S3ArtifactStore(self.connection(ARTIFACTS)).ensure_bucket()
            said = f"{len(applied)} migrations applied" if applied else "up to date"
            board.done("schemas", f"{said}; yours are left to `sluice db upgrade`: {', '.join(left)}" if left else said)

    def _start_airflow(self, board: Board, *, is_new: bool) -> None:
        airflow = self._airflow = self._prepared_airflow()
        with board.working("database", "setting up"):
            airflow.configure()
            migrated = airflow.migrate(is_new=is_new)
            board.done("database", "set up" if migrated else "up to date")
        for name in PROCESSES:
            board.begin(name, "starting")
        airflow.launch(self._variables((STATE, TARGET, ARTIFACTS, SUPPLIER, AIRFLOW)))
        details = {"api-server": airflow.url, "scheduler": "LocalExecutor", "dag-processor": str(self._layout.project / "dags")}
        airflow.wait_healthy(lambda name: board.done(name, details[name]))
        with airflow.client() as client:
            for name, pool in self._pools().items():
                client.set_pool(name, pool.slots, pool.description)
        keeping.write_private(self._layout.environment, environment_text(airflow.shared_environment()))

    def _prepared_airflow(self) -> AirflowServer:
        database = self._postgres.uri("airflow", "postgresql+psycopg")
        return AirflowServer(self._layout.root / "airflow", self._layout.project, self._layout.logs, database)

    def _variables(self, conn_ids: Iterable[str]) -> dict[str, str]:
        """Return what says where the stack's own services are, and all that is defined elsewhere."""
        own = {conn_id: as_variable(self.connection(conn_id)) for conn_id in conn_ids}
        connections = {**own, **self._given}
        return {
            "SLUICE_CACHE": str(self._layout.cache),
            **{f"AIRFLOW_VAR_{name.upper()}": text for name, text in self._settings.variables.items()},
            **{f"{PREFIX}{conn_id.upper()}": text for conn_id, text in connections.items()},
        }

    def _pools(self) -> dict[str, Pool]:
        return {**stage_pools(self._layout.project / "include"), **self._settings.pools}


def stage_pools(include: Path) -> dict[str, Pool]:
    """Return a pool for each stage that can be read; what is wrong with another, `sluice validate` says."""
    try:
        declared = parse_yaml((include / STAGES_FILE).read_bytes()).value
    except OSError:
        return {}
    stages = declared.get("stages") if isinstance(declared, dict) else None
    pools: dict[str, Pool] = {}
    for stage in stages if isinstance(stages, dict) else ():
        try:
            slots = SpecFiles(include).policy(stage).max_parallel_shards
        except SpecInvalid:
            continue
        pools[pool_of(stage)] = Pool(slots, f"shards of stage {stage} fetched at a time")
    return pools


def as_variable(info: ConnectionInfo) -> str:
    """Return what the `AIRFLOW_CONN_…` variable of a connection holds."""
    fields = {
        "conn_type": info.conn_type,
        "host": info.host,
        "port": info.port,
        "login": info.login,
        "password": info.password,
        "schema": info.schema,
        "extra": dict(info.extra) or None,
    }
    return json.dumps({name: value for name, value in fields.items() if value is not None})


def environment_text(environment: Mapping[str, str]) -> str:
    """Return `NAME=VALUE` lines; what holds a line break cannot be told this way, and is left out."""
    lines = [f"{name}={value}" for name, value in sorted(environment.items()) if "\n" not in value]
    return "\n".join(["# The local stack that runs now; the `sluice` command reads this file.", *lines, ""])
