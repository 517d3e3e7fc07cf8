"""Gates of superseded runs: closed through Airflow's API where there is a way to, left alone where there is none."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from structlog.testing import capture_logs

from sluice import log_events
from sluice.adapters.airflow_gates import AirflowGates
from sluice.adapters.airflow_triggers import AirflowTriggers
from sluice.errors import ConnectionInvalid, IllegalTransition
from sluice.model.base import ReviewId
from sluice.model.review import Choice
from sluice.model.run import Mode, Origin, Redrive, RunRequest
from sluice.ports import ConnectionInfo
from tests.support.airflow_stub import AirflowStub, asking
from tests.support.nouns import a_decision
from tests.unit.flow.workshop import RUN, Workshop

OLDER, NEWER = ReviewId("r1"), ReviewId("r2")
PATH = "/api/v2/dags/sluice_hotels/dagRuns/manual__1"
IN_AIRFLOW = Origin(dag_id="sluice_hotels", dag_run_id="manual__1")


@dataclass
class OneConnection:
    """A connection to Airflow, if there is one."""

    info: ConnectionInfo | None

    def get(self, conn_id: str) -> ConnectionInfo:
        """Return it."""
        if self.info is None:
            raise ConnectionInvalid(f"there is no Airflow connection {conn_id}")
        return self.info


@pytest.fixture
def airflow() -> Iterator[AirflowStub]:
    """Return a running Airflow whose gate asks."""
    with AirflowStub() as server:
        server.answers["GET", f"{PATH}/hitlDetails"] = (200, {"hitl_details": [asking()]})
        server.answers["PATCH", f"{PATH}/taskInstances/gate/-1/hitlDetails"] = (200, {})
        yield server


def close(info: ConnectionInfo | None, origin: Origin = IN_AIRFLOW) -> dict[str, Any]:
    """Close the gate of a run; return what was logged of it."""
    run = Workshop().admit().model_copy(update={"origin": origin})
    with capture_logs() as logs:
        AirflowGates(OneConnection(info)).close(run, OLDER, NEWER)
    return dict(logs[-1]) if logs else {}


def test_a_gate_is_rejected_with_the_newer_reviews_name(airflow: AirflowStub) -> None:
    """Whoever looks at the older DagRun reads which review to decide about instead."""
    logged = close(airflow.info)
    method, path, body, _ = airflow.asked[-1]
    assert (method, path) == ("PATCH", f"{PATH}/taskInstances/gate/-1/hitlDetails")
    assert body["chosen_options"] == ["Reject"]
    assert "superseded by review r2" in body["params_input"]["comment"]
    assert body["params_input"]["review_id"] == OLDER
    assert logged == {"event": log_events.GATE_CLOSED, "log_level": "info", "superseded": RUN, "review": NEWER}


def test_a_gate_is_let_go_on_with_what_was_decided(airflow: AirflowStub) -> None:
    """By the same answer, in the name of whoever gave it; what it has been answered meanwhile is told before that."""
    run = Workshop().admit().model_copy(update={"origin": IN_AIRFLOW})
    gates = AirflowGates(OneConnection(airflow.info))
    gates.require_unanswered(run)
    gates.release(run, OLDER, a_decision(Choice.APPROVE, by="ann", deletes_at_most=39))
    form = airflow.asked[-1][2]
    assert (form["chosen_options"], form["params_input"]["deletes_at_most"]) == (["Approve"], 39)
    assert form["params_input"]["comment"] == "decided by ann in the pages of Sluice: looks right"
    answered = asking() | {"response_received": True, "chosen_options": ["Reject"]}
    airflow.answers["GET", f"{PATH}/hitlDetails"] = (200, {"hitl_details": [answered]})
    with pytest.raises(IllegalTransition, match="has answered 'Reject' already"):
        gates.require_unanswered(run)


def test_airflow_is_asked_for_a_run_with_its_form_filled_in(airflow: AirflowStub) -> None:
    """Only where something was asked for."""
    airflow.answers["GET", "/api/v2/dags/sluice_hotels"] = (200, {"is_paused": True})
    airflow.answers["POST", "/api/v2/dags/sluice_hotels/dagRuns"] = (200, {"dag_run_id": "manual__2"})
    request = RunRequest(sync="hotels", mode=Mode.REDRIVE, redrives=Redrive(letters=(1, 2)), origin=Origin())
    asked = AirflowTriggers(OneConnection(airflow.info)).ask(request)
    assert (asked.dag_run_id, asked.is_paused) == ("manual__2", True)
    assert airflow.asked[-1][2]["conf"] == {"review": "policy", "mode": "redrive", "letters": [1, 2]}


def test_without_a_connection_a_gate_is_left_alone() -> None:
    """Nothing fails: what it asks about can be published no more."""
    assert close(None)["event"] == log_events.GATE_LEFT_OPEN


def test_an_inline_run_has_no_gate(airflow: AirflowStub) -> None:
    """Airflow is not asked about a run it knows nothing of."""
    assert close(airflow.info, Origin()) == {}
    assert airflow.asked == []


@pytest.mark.parametrize("trouble", [(500, {}), (404, {}), (200, b"<html>")])
def test_an_airflow_in_trouble_is_only_noted(airflow: AirflowStub, trouble: tuple[int, Any]) -> None:
    """The newer run goes on, whatever the older one's gate shows."""
    airflow.answers["GET", f"{PATH}/hitlDetails"] = trouble
    logged = close(airflow.info)
    assert (logged["event"], logged["log_level"]) == (log_events.GATE_LEFT_OPEN, "warning")
