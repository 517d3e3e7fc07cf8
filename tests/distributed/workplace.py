"""A cluster and its undisturbed twin in; what a test does to the one, and all that must be the same in both, out."""

from dataclasses import dataclass
from typing import Any, Final

import psycopg

from sluice.adapters.postgres import conninfo
from sluice.model.airflow_names import dag_id_of
from sluice.ports import ConnectionInfo
from tests.distributed.cluster import Cluster
from tests.support.command_line import CommandLine

Rows = list[tuple[Any, ...]]

DAG: Final = dag_id_of("hotels")

WHAT_THERE_IS: Final = {
    "rows": "select * from public.hotels order by id",
    "ledger": """select key, shard, raw_hash, row_hash, transformer_version, source_version, state
        from sluice_ledger.object order by key""",
    "events": """select key, outcome, old_hash, new_hash, source_version, shard
        from sluice_ledger.object_event order by key, at""",
    "publications": "select counts from sluice_ledger.publication order by id",
    "watermarks": "select sync, shard, value from sluice_state.watermark order by sync, shard",
    "runs": "select mode, status from sluice_state.run order by created_at",
    "shards": """select s.key, s.status, s.pages, s.records
        from sluice_state.shard s join sluice_state.run r on r.id = s.run order by r.created_at, s.key""",
    "artifacts": """select a.kind, a.shard, sum(a.records) from sluice_state.artifact a join sluice_state.run r on r.id = a.run
        group by r.created_at, a.kind, a.shard order by r.created_at, a.kind, a.shard""",
}


@dataclass(frozen=True)
class Side:
    """A database for state and target, a bucket, and a supplier."""

    database: ConnectionInfo
    bucket: ConnectionInfo
    supplier: ConnectionInfo

    def connections(self) -> dict[str, ConnectionInfo]:
        """Return the connections that a sync of the demo needs."""
        return {
            "sluice_state": self.database,
            "sluice_target": self.database,
            "sluice_artifacts": self.bucket,
            "demo_supplier": self.supplier,
        }

    def found(self, query: str) -> Rows:
        """Return what a query finds in the database."""
        with psycopg.connect(conninfo(self.database)) as session:
            return session.execute(query.encode()).fetchall()


@dataclass(frozen=True)
class Workplace:
    """Airflow on the one side; on the other the inline runner, which nobody disturbs."""

    cluster: Cluster
    disturbed: Side
    undisturbed: Side
    inline: CommandLine

    def trigger(self, **form: str) -> str:
        """Ask Airflow for a run with this form filled in; return its id."""
        with self.cluster.client() as client:
            return client.trigger(DAG, form).dag_run_id

    def wait_for(self, what: str, query: str, rows: int = 1) -> None:
        """Return once a query finds so many rows on Airflow's side."""
        self.cluster.until(what, lambda: len(self.disturbed.found(query)) >= rows or None)

    def kill_the_worker_of(self, run_id: str, name: str) -> None:
        """Kill the worker that runs a task instance."""
        with self.cluster.client() as client:
            [pid] = [task["pid"] for task in client.tasks(DAG, run_id) if named(task) == name and task["state"] == "running"]
        self.cluster.kill_worker_of(pid)

    def tries_of(self, run_id: str) -> dict[str, int]:
        """Wait for a run's success; return how many tries each of its task instances took."""
        with self.cluster.client() as client:
            over = ("success", "failed")
            self.cluster.until(f"{run_id} ends", lambda: client.dag_run(DAG, run_id)["state"] in over or None)
            tasks = client.tasks(DAG, run_id)
            states = {named(task): task["state"] for task in tasks}
            assert client.dag_run(DAG, run_id)["state"] == "success", states
        return {named(task): task["try_number"] for task in tasks}

    def assert_as_undisturbed(self, *options: str) -> None:
        """Let the inline runner do the same in peace, and compare all there is; each review is published once."""
        self.inline.ask("run", "hotels", "--inline", *options)
        for what, query in WHAT_THERE_IS.items():
            assert self.disturbed.found(query) == self.undisturbed.found(query), what
        published = self.disturbed.found("select review from sluice_ledger.publication")
        assert len(set(published)) == len(published) > 0


def named(task: dict[str, Any]) -> str:
    """Return what a task instance is called here: its step, and its shard where it has one."""
    step = task["task_id"].rpartition(".")[2]
    return f"{step} {task['rendered_map_index']}" if task["rendered_map_index"] else step
