"""A project, a database and a broker in; an Airflow with the CeleryExecutor and workers that can be killed out."""

import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar

from sluice.cli.local import processes
from sluice.cli.local.airflow import AirflowServer
from sluice.cli.local.airflow_client import AirflowClient
from sluice.cli.local.processes import Process
from sluice.cli.local.services import as_variable, stage_pools
from sluice.ports import ConnectionInfo

WORKERS: Final = frozenset({"one", "two"})
PATIENCE: Final = 120.0
"""Seconds after which what should have happened is taken for what never will; an idle machine needs a fraction."""

_FOR_PRODUCTION: Final = {
    "AIRFLOW__CORE__EXECUTOR": "CeleryExecutor",
    "AIRFLOW__CELERY__WORKER_CONCURRENCY": "2",
    "AIRFLOW__CELERY__WORKER_PREFETCH_MULTIPLIER": "1",
    "AIRFLOW__CELERY__TASK_ACKS_LATE": "True",
    "AIRFLOW__CELERY_BROKER_TRANSPORT_OPTIONS__VISIBILITY_TIMEOUT": "86400",
}
"""What docs/deployment-celery.md recommends, but for the concurrency."""

_FOR_A_TEST: Final = {
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "12",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "2",
    "AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL": "2",
    "AIRFLOW__CELERY__OPERATION_TIMEOUT": "10",
}
"""What makes a worker's death noticed sooner than after Airflow's 300 seconds, and gives a small machine time to start."""


Seen = TypeVar("Seen")


class Cluster:
    """Airflow's processes and its workers, all on this machine."""

    def __init__(self, airflow: AirflowServer, folder: Path, project: Path) -> None:
        self._airflow = airflow
        self._folder = folder
        self._project = project
        self._workers: dict[str, Process] = {}

    def client(self) -> AirflowClient:
        """Return a client of the REST API."""
        return self._airflow.client()

    def start_workers(self) -> None:
        """Start the workers that do not run; each takes tasks once it is up, and has a disk of its own for its copies."""
        for name in WORKERS - self._workers.keys():
            words = ["celery", "worker", "--celery-hostname", f"{name}@sluice", "--skip-serve-logs"]
            self._workers[name] = processes.launch(
                [sys.executable, "-m", "airflow", *words],
                record=self._folder / "pids" / f"{name}.json",
                log=self._airflow.log(name),
                env={**self._airflow.environment(), "SLUICE_CACHE": str(self._folder / "caches" / name)},
                cwd=self._project,
            )

    def kill_worker_of(self, pid: int) -> None:
        """End the worker that has started process `pid` by SIGKILL, and all else that it has started."""
        name = next(name for name, worker in self._workers.items() if pid in processes.members(worker.pid))
        worker = self._workers.pop(name)
        assert processes.kill_session(worker.pid)
        worker.wait_stopped()

    def until(self, what: str, look: Callable[[], Seen | None]) -> Seen:
        """Look until there is something to see, and return it; fail if it takes too long or a process has ended."""
        deadline = time.monotonic() + PATIENCE
        while (seen := look()) is None:
            self._airflow.raise_if_ended()
            for name, worker in self._workers.items():
                assert worker.exit_code() is None, processes.tail(self._airflow.log(name))
            assert time.monotonic() < deadline, f"in vain: {what}"
            time.sleep(0.1)
        return seen

    def stop(self) -> None:
        """End the workers, which have nothing left to do, then Airflow."""
        for worker in self._workers.values():
            worker.stop(signal.SIGKILL)
        self._airflow.stop()


@contextmanager
def running(
    folder: Path, project: Path, database: str, broker: str, connections: Mapping[str, ConnectionInfo]
) -> Iterator[Cluster]:
    """Yield a cluster that is well and knows the project's pools. `database` is empty, and becomes its metadata database."""
    airflow = AirflowServer(folder / "airflow", project, folder / "logs", database)
    airflow.configure()
    airflow.migrate(is_new=True)
    cluster = Cluster(airflow, folder, project)
    try:
        airflow.launch(
            {
                **_FOR_PRODUCTION,
                **_FOR_A_TEST,
                "AIRFLOW__CELERY__BROKER_URL": broker,
                "AIRFLOW__CELERY__RESULT_BACKEND": f"db+{database}",
                **{f"AIRFLOW_CONN_{conn_id.upper()}": as_variable(info) for conn_id, info in connections.items()},
            }
        )
        cluster.start_workers()
        airflow.wait_healthy(lambda _: None)
        with cluster.client() as client:
            for name, pool in stage_pools(project / "include").items():
                client.set_pool(name, pool.slots, pool.description)
        yield cluster
    finally:
        cluster.stop()
