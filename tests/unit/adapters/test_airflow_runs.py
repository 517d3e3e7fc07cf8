"""DagRuns of cancelled runs: ended through Airflow's API where there is a way to, left to themselves where there is none."""

from collections.abc import Iterator

import pytest
from structlog.testing import capture_logs

from sluice import log_events
from sluice.adapters.airflow_runs import AirflowDagRuns
from sluice.errors import ConnectionInvalid
from sluice.model.run import Origin
from sluice.ports import ConnectionInfo
from tests.support.airflow_stub import AirflowStub
from tests.support.nouns import a_run

PATH = "/api/v2/dags/sluice_hotels/dagRuns/manual__1"
RUN = a_run(origin=Origin(dag_id="sluice_hotels", dag_run_id="manual__1"))


class Known:
    """A connection to Airflow, if there is one."""

    def __init__(self, info: ConnectionInfo | None) -> None:
        self._info = info

    def get(self, conn_id: str) -> ConnectionInfo:
        """Return it."""
        if self._info is None:
            raise ConnectionInvalid(f"there is no Airflow connection {conn_id}")
        return self._info


@pytest.fixture
def airflow() -> Iterator[AirflowStub]:
    """An Airflow that takes what it is asked for."""
    with AirflowStub() as server:
        server.answers["PATCH", PATH] = (200, {"state": "failed"})
        yield server


@pytest.mark.parametrize(("state", "is_patched"), [("running", True), ("queued", True), ("success", False), ("failed", False)])
def test_a_dag_run_that_is_not_over_is_failed(airflow: AirflowStub, state: str, *, is_patched: bool) -> None:
    """Airflow ends its tasks then; one that is over stays as it is."""
    airflow.answers["GET", PATH] = (200, {"state": state})
    assert AirflowDagRuns(Known(airflow.info)).end(RUN)
    assert [body for method, _, body, _ in airflow.asked if method == "PATCH"] == [{"state": "failed"}] * is_patched


def test_where_airflow_cannot_be_asked_the_dag_run_is_left(airflow: AirflowStub) -> None:
    """Nothing is raised: its tasks stop by themselves. One outside Airflow is none."""
    with capture_logs() as logs:
        assert not AirflowDagRuns(Known(None)).end(RUN)
        assert not AirflowDagRuns(Known(airflow.info)).end(RUN)  # it knows no such DagRun
        assert not AirflowDagRuns(Known(airflow.info)).end(a_run())
    assert [(entry["event"], entry["log_level"]) for entry in logs] == [
        (log_events.DAG_RUN_LEFT, "info"),
        (log_events.DAG_RUN_LEFT, "warning"),
    ]
