"""A project and the address of a database in; an Airflow of three processes on 127.0.0.1 out.

The API server, the scheduler (with the LocalExecutor) and the DAG processor. Their settings stand in an `airflow.cfg`, so
that `AIRFLOW_HOME` is all that Airflow's own command needs to find this Airflow.
"""

import base64
import importlib.metadata
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from sluice.cli.local import keeping, processes
from sluice.cli.local.airflow_client import AirflowClient
from sluice.cli.local.processes import Process
from sluice.errors import StackFailed
from sluice.model.connections import AIRFLOW
from sluice.ports import ConnectionInfo

USER: Final = "admin"
# The scheduler needs no server for its logs: they lie on the disk that the API server reads too.
PROCESSES: Final[dict[str, tuple[str, ...]]] = {
    "api-server": ("api-server",),
    "scheduler": ("scheduler", "--skip-serve-logs"),
    "dag-processor": ("dag-processor",),
}
HEALTH: Final = {"api-server": "metadatabase", "scheduler": "scheduler", "dag-processor": "dag_processor"}
PATIENCE: Final = 10.0


class AirflowServer:
    """One Airflow, whose home, password and port are kept."""

    def __init__(self, home: Path, project: Path, logs: Path, database: str) -> None:
        self._home = home.absolute()
        self._project = project
        self._logs = logs
        self._database = database
        self._variables: Mapping[str, str] = {}
        self._processes: dict[str, Process] = {}
        self.port = 0

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def password(self) -> str:
        """The password of the user `admin`."""
        return keeping.kept_secret(self._home / "password", 12)

    def configure(self) -> None:
        """End what a killed stack has left, choose the port, write the settings."""
        self.stop_leftover()
        self.port = keeping.kept_ports(self._home / "ports.json", ["api"])["api"]
        keeping.write_private(self._home / "simple_auth_manager_passwords.json", json.dumps({USER: self.password}))
        lines = ["# Written anew at every start of the local stack."]
        for section, options in self._settings().items():
            lines += [f"[{section}]", *(f"{key} = {value.replace('%', '%%')}" for key, value in options.items()), ""]
        keeping.write_private(self._home / "airflow.cfg", "\n".join(lines))

    def migrate(self, *, is_new: bool) -> bool:
        """Bring the metadata database to this Airflow's schema; return whether that was needed."""
        done, version = self._home / "migrated", importlib.metadata.version("apache-airflow-core")
        if not is_new and done.exists() and done.read_text() == version:
            return False
        log = self._logs / "db-migrate.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            command = [sys.executable, "-m", "airflow", "db", "migrate"]
            code = subprocess.run(command, env=self.environment(), stdout=output, stderr=output, check=False).returncode  # noqa: S603
        if code != 0:
            raise StackFailed(f"`airflow db migrate` failed. The end of {log}:\n{processes.tail(log)}", log=str(log))
        done.write_text(version)
        return True

    def launch(self, variables: Mapping[str, str]) -> None:
        """Start all processes at once; `variables` (connections and such) join their environment."""
        self._variables = dict(variables)
        for name, words in PROCESSES.items():
            self._processes[name] = processes.launch(
                [sys.executable, "-m", "airflow", *words],
                record=self._record(name),
                log=self.log(name),
                env=self.environment(),
                cwd=self._project,
            )

    def wait_healthy(self, on_ready: Callable[[str], None], patience: float = 300.0) -> None:
        """Return when every process says it is well; tell `on_ready` of each."""
        deadline, waiting = time.monotonic() + patience, list(reversed(PROCESSES))
        with self.client() as client:
            while waiting:
                health = client.health()
                for name in [one for one in waiting if health.get(HEALTH[one]) == "healthy"]:
                    if name == "api-server" and not client.serves_tasks():
                        continue
                    waiting.remove(name)
                    on_ready(name)
                self.raise_if_ended()
                if waiting and time.monotonic() > deadline:
                    raise StackFailed(f"Airflow's {', '.join(waiting)} did not come up in {patience:.0f} s: see {self._logs}")
                time.sleep(0.25 if waiting else 0)

    def raise_if_ended(self) -> None:
        """Raise `StackFailed`, with the end of its log, if a process has ended by itself."""
        for name, process in self._processes.items():
            if (code := process.exit_code()) is not None:
                log = self.log(name)
                raise StackFailed(
                    f"Airflow's {name} has ended with {code}. The end of {log}:\n{processes.tail(log)}", log=str(log)
                )

    def stop(self) -> None:
        """End all processes, and the tasks they run."""
        for process in self._processes.values():
            process.ask(signal.SIGTERM)
        for process in self._processes.values():
            process.wait_stopped(PATIENCE)
        self._processes = {}

    def stop_leftover(self) -> bool:
        """End the processes that a killed stack has left here; return whether there were any."""
        stopped = [processes.stop_recorded(self._record(name), patience=PATIENCE) for name in PROCESSES]
        return any(stopped)

    def client(self) -> AirflowClient:
        """Return a client of its REST API."""
        return AirflowClient(self.connection(AIRFLOW))

    def connection(self, conn_id: str) -> ConnectionInfo:
        """Return the Airflow connection to its REST API."""
        return ConnectionInfo(conn_id, "http", "127.0.0.1", self.port, USER, self.password, "http", {})

    def log(self, name: str) -> Path:
        """Return the log of one process."""
        return self._logs / f"{name}.log"

    def environment(self) -> dict[str, str]:
        """Return what its processes see: this environment without any other Airflow's settings, and the connections."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("AIRFLOW__") and name not in ("AIRFLOW_CONFIG", "PYTHONDONTWRITEBYTECODE")
        }
        local = ",".join(filter(None, [kept.get("NO_PROXY") or kept.get("no_proxy"), "127.0.0.1", "localhost"]))
        return {**kept, "NO_PROXY": local, "no_proxy": local, **self.shared_environment()}

    def shared_environment(self) -> dict[str, str]:
        """Return what others need to find this Airflow and what it is connected to."""
        return {"AIRFLOW_HOME": str(self._home), **self._variables}

    def _record(self, name: str) -> Path:
        return self._home / "pids" / f"{name}.json"

    def _settings(self) -> dict[str, dict[str, str]]:
        fernet = keeping.kept_secret(self._home / "fernet_key", make=lambda: base64.urlsafe_b64encode(os.urandom(32)).decode())
        return {
            "core": {
                "dags_folder": str(self._project / "dags"),
                "plugins_folder": str(self._project / "plugins"),
                "load_examples": "False",
                "executor": "LocalExecutor",
                "parallelism": "8",
                "auth_manager": "airflow.api_fastapi.auth.managers.simple.simple_auth_manager.SimpleAuthManager",
                "simple_auth_manager_users": f"{USER}:admin",
                "simple_auth_manager_passwords_file": str(self._home / "simple_auth_manager_passwords.json"),
                "execution_api_server_url": f"{self.url}/execution/",
                "fernet_key": fernet,
            },
            "database": {"sql_alchemy_conn": self._database},
            "api": {
                "host": "127.0.0.1",
                "port": str(self.port),
                "base_url": self.url,
                "workers": "1",
                "secret_key": keeping.kept_secret(self._home / "secret_key"),
            },
            # Whoever is logged in stays so when the stack is begun anew: a page that follows a run goes on.
            "api_auth": {"jwt_secret": keeping.kept_secret(self._home / "jwt_secret", 64)},
            # The scheduler is up some ten seconds before the API server, without which a task loses one of its tries.
            "workers": {"execution_api_retries": "20", "execution_api_retry_wait_max": "5"},
            "logging": {
                "base_log_folder": str(self._logs / "tasks"),
                "dag_processor_child_process_log_directory": str(self._logs / "dag-processor"),
            },
            "dag_processor": {"refresh_interval": "10", "min_file_process_interval": "10", "parsing_processes": "1"},
            "usage_data_collection": {"enabled": "False"},
        }
