"""Webhooks in Airflow: what a receiver that is away does to the publishing task; and that a stage's log level is heeded."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from structlog.testing import capture_logs

from sluice import log_events
from sluice.cli.local.services import as_variable
from tests.dags.driving import DrivenAirflow
from tests.support.receiver import Receiver, Reply, receiving

DAG = "sluice_grouped"
"""A sync whose tasks are tried twice."""
ASSET = "x-sluice://grouped"
AWAY = Reply(503)

Declare = Callable[[str, dict[str, Any]], None]


@pytest.fixture
def declare(airflow: DrivenAirflow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Declare:
    """Let a file of `include` say something more, for this test."""
    shutil.copytree(airflow.home / "include", tmp_path / "include")
    monkeypatch.setenv("SLUICE_INCLUDE", str(tmp_path / "include"))

    def add(file: str, more: dict[str, Any]) -> None:
        path = tmp_path / "include" / file
        path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), **more}, sort_keys=False))

    return add


@pytest.fixture
def receiver(declare: Declare, monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    """A receiver that the sync tells of its publications."""
    declare("syncs/grouped.yaml", {"webhooks": [{"name": "shop", "connection": "shop", "path": "/hook"}]})
    with receiving() as running:
        monkeypatch.setenv("AIRFLOW_CONN_SHOP", as_variable(running.connection()))
        yield running


def test_the_publishing_task_is_tried_again_for_a_receiver_that_is_away(airflow: DrivenAirflow, receiver: Receiver) -> None:
    """The second try publishes nothing twice, and tells the receiver under the key of the first."""
    receiver.replies = [AWAY]
    events = len(asset_events(airflow))
    run = airflow.trigger(DAG)
    states = airflow.drive(DAG, run)
    assert set(states.values()) == {"success"}, states
    assert airflow.tries(DAG, run, "publish", -1) == 2
    first, second = receiver.deliveries
    assert (first.key, first.body) == (second.key, second.body)
    assert first.body["publication"] == airflow.xcom(DAG, run, "publish")["publication"]
    assert len(asset_events(airflow)) == events + 1


def test_a_receiver_that_stays_away_fails_no_run(airflow: DrivenAirflow, receiver: Receiver) -> None:
    """With its last try the task leaves the call, and emits its asset event; the next run of the sync tells the receiver."""
    receiver.replies = [AWAY, AWAY]
    events = len(asset_events(airflow))
    run = airflow.trigger(DAG)
    states = airflow.drive(DAG, run)
    assert set(states.values()) == {"success"}, states
    assert len(asset_events(airflow)) == events + 1
    airflow.drive(DAG, airflow.trigger(DAG, mode="full"))
    assert len(receiver.deliveries) == 3
    assert len(receiver.effects) == 1


@pytest.mark.parametrize(("level", "told"), [("warning", 1), ("error", 0)])
def test_stages_log_differently(airflow: DrivenAirflow, receiver: Receiver, declare: Declare, level: str, told: int) -> None:
    """A refusal is warned of by the one stage, and not by the other, though Airflow logs through processors of its own."""
    declare("stages.yaml", {"stages": {"in-one-group": {"log_level": level}}})
    receiver.replies = [Reply(410)]
    with capture_logs() as logs:
        airflow.drive(DAG, airflow.trigger(DAG))
    assert len([entry for entry in logs if entry["event"] == log_events.CALL_ANSWERED]) == told
    assert len(receiver.deliveries) == 1


def asset_events(airflow: DrivenAirflow) -> list[dict[str, Any]]:
    """Return the asset events of the sync; none before its first one."""
    return airflow.asset_events(ASSET)
