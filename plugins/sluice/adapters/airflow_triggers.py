"""Requests for runs in; DagRuns that Airflow was asked for out."""

from sluice.model.airflow_names import dag_id_of
from sluice.model.connections import AIRFLOW
from sluice.model.run import RunRequest
from sluice.model.trigger_form import form_of
from sluice.ports import Connections, Triggered


class AirflowTriggers:
    """Triggers as the user of the connection `sluice_airflow`."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def ask(self, request: RunRequest) -> Triggered:
        """Trigger the DAG of the request's sync; raise `ConnectionInvalid` if no connection leads to Airflow."""
        from sluice.adapters.airflow_api import AirflowApi

        with AirflowApi(self._connections.get(AIRFLOW)) as api:
            return api.trigger(dag_id_of(request.sync), form_of(request))
