"""Alerts in Airflow: a notifier of the team's own hears of a sync that keeps failing, of a review, and of its recovery."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from sluice.airflow_glue.notifiers import sender
from sluice.airflow_glue.workplace import Workplace
from sluice.errors import ReceiverUnavailable
from sluice.model.alert import Tidings
from sluice.model.notice import Notice
from sluice.model.stage import Notifier
from tests.dags.driving import DrivenAirflow
from tests.support.servers import Supplier
from tests.unit.flow.workshop import Workshop

DAG = "sluice_grouped"
"""A sync whose tasks are tried twice."""

NOTIFIER = """
import json, pathlib
from airflow.sdk import BaseNotifier

class Noted(BaseNotifier):
    template_fields = ("text",)
    def __init__(self, file, text, fails):
        super().__init__()
        self.file, self.text, self.fails = pathlib.Path(file), text, fails
    def notify(self, context):
        with self.file.open("a") as file:
            file.write(json.dumps({**context["alert"], "text": self.text}) + "\\n")
        if len(self.file.read_text().splitlines()) in self.fails:
            raise ConnectionError("the network is down")
"""

BROKEN = """
from airflow.sdk import BaseNotifier

class Unmade(BaseNotifier):
    def __init__(self): raise TypeError("it is abstract")

class Unknown(BaseNotifier):
    def __init__(self): raise LookupError("there is no connection pager")
"""

Heard = Callable[[], list[dict[str, Any]]]


@pytest.fixture
def notified(airflow: DrivenAirflow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Heard]:
    """Let a notifier be told of what a stage says; return what it hears."""
    include = tmp_path / "include"
    shutil.copytree(airflow.home / "include", include)
    (include / "noted_by_tests.py").write_text(NOTIFIER)
    monkeypatch.setenv("SLUICE_INCLUDE", str(include))
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://airflow.example/a")
    file = tmp_path / "heard"

    def declare(*kinds: str, fails: list[int]) -> Heard:
        arguments = {"file": str(file), "text": "{{ alert.title }} ({{ dag_run.dag_id }})", "fails": fails}
        to = [{"notifier": "noted_by_tests.Noted", "arguments": arguments}]
        stages = yaml.safe_load((include / "stages.yaml").read_text())
        stages["stages"]["in-one-group"]["alerts"] = {"notify": dict.fromkeys(kinds, to)}
        (include / "stages.yaml").write_text(json.dumps(stages))
        return lambda: [json.loads(line) for line in file.read_text().splitlines()]

    return declare


def test_a_sync_that_fails_and_recovers(airflow: DrivenAirflow, notified: Callable[..., Heard], supplier: Supplier) -> None:
    """Somebody hears once that it fails, what failed, what to do and where to look; of the review; and that it has recovered.

    That they could not be reached at first has settling tried again, and turns no good run red.
    """
    heard = notified("warn", "review", fails=[3])
    supplier.control(fail={"status": 403})
    run = airflow.trigger(DAG, review="always")
    assert airflow.drive(DAG, run)[""] == "failed"
    supplier.control(fail=None)
    airflow.clear(DAG, run, "shards.fetch")
    assert airflow.drive(DAG, run)["gate"] == "awaiting_input"
    airflow.answer(DAG, run, "Approve")
    assert set(airflow.drive(DAG, run).values()) == {"success"}
    warned, asked, *recovered = heard()
    assert warned["text"] == "grouped: a run has not come through (sluice_grouped)"
    assert {name: warned[name] for name in ("kind", "key", "sync", "stage", "shards", "runs", "status")} == {
        "kind": "warn",
        "key": "sluice/grouped/incident/1",
        "sync": "grouped",
        "stage": "in-one-group",
        "shards": "brittany, tokyo",
        "runs": "1",
        "status": "failed",
    }
    assert warned["url"] == f"https://airflow.example/a/sluice/dags/sluice_grouped/runs/{warned['run']}"
    assert "403" in warned["error"]
    assert "clear the failed mapped tasks `shards.fetch` (brittany, tokyo) with downstream" in warned["message"]
    assert (asked["kind"], asked["todo"]) == ("review", "a review was asked for")
    assert "/reviews/" in asked["url"]
    assert [(one["kind"], one["key"]) for one in recovered] == [("recovered", warned["key"])] * 2


def test_a_notifier_that_cannot_be_made_fails_no_run(
    airflow_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that never can be has refused; what it looks up may be there later. Neither raises what nobody expects."""
    (tmp_path / "broken_by_tests.py").write_text(BROKEN)
    monkeypatch.setenv("SLUICE_INCLUDE", str(tmp_path))
    workshop = Workshop()
    run = workshop.begin()
    send = sender(Workplace(services=workshop.services, run_id=run.id, context={}))
    notice = Notice(tidings=Tidings.WARN, run=run)
    refused = send(Notifier(notifier="broken_by_tests.Unmade"), notice)
    assert (refused.accepted, refused.answer) == (False, "TypeError: it is abstract")
    with pytest.raises(ReceiverUnavailable, match="LookupError: there is no connection pager"):
        send(Notifier(notifier="broken_by_tests.Unknown"), notice)
