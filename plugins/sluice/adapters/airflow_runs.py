"""Runs that a person has cancelled in; their DagRuns, ended through Airflow's API, out."""

from typing import Final

import structlog

from sluice import log_events
from sluice.errors import ConnectionInvalid, SluiceError
from sluice.model.connections import AIRFLOW
from sluice.model.run import Run
from sluice.ports import Connections

log: Final = structlog.get_logger()

_UNFINISHED: Final = frozenset({"queued", "running"})


class AirflowDagRuns:
    """DagRuns, ended as the user of the connection `sluice_airflow`; without one, they are left to themselves."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def end(self, run: Run) -> bool:
        """Mark the DagRun of a run as failed, so that Airflow ends its tasks; return whether it has ended."""
        if not run.origin.is_airflow:
            return False
        from sluice.adapters.airflow_api import AirflowApi, dag_run_path

        dag_id, dag_run_id = str(run.origin.dag_id), str(run.origin.dag_run_id)
        try:
            with AirflowApi(self._connections.get(AIRFLOW)) as api:
                if api.dag_run(dag_id, dag_run_id).get("state") in _UNFINISHED:
                    api.call("PATCH", dag_run_path(dag_id, dag_run_id), {"state": "failed"})
        except ConnectionInvalid as missing:
            log.info(log_events.DAG_RUN_LEFT, run=run.id, message=missing.message)
            return False
        except SluiceError as error:
            log.warning(log_events.DAG_RUN_LEFT, run=run.id, message=error.message)
            return False
        return True
