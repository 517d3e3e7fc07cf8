"""Forms at the moment at which a run is asked for: what makes no sense is refused then, and there is no run."""

import json
from typing import Any

import pytest

from sluice.cli.local.services import as_variable
from tests.dags.driving import DrivenAirflow
from tests.support.cities import cities

DAG, LISTED = "sluice_hotels", "sluice_cities"
START, END = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"


def asked(airflow: DrivenAirflow, dag_id: str, conf: dict[str, Any]) -> tuple[int, str]:
    """Return the answer to a trigger with this form."""
    form = json.dumps({"logical_date": None, "conf": conf})  # in ASCII, as some of it has no bytes in UTF-8
    answer = airflow.client.post(f"/api/v2/dags/{dag_id}/dagRuns", content=form, headers={"Content-Type": "application/json"})
    return answer.status_code, str(answer.json().get("detail"))


@pytest.mark.parametrize(
    ("conf", "why"),
    [
        ({"window_start": "yesterday", "window_end": END}, "window_start"),
        ({"mode": "everything"}, "mode"),
        ({"shards": ["atlantis"]}, "shards"),
        ({"version": 9}, "version"),
        ({"window_start": START}, "window_end is missing: a window needs both"),
        ({"window_start": END, "window_end": START}, f"window_end {START} is not after window_start {END}"),
        ({"replays": "some-run"}, "only a replay names a run"),
        ({"mode": "replay"}, "a replay names the run"),
        ({"letters": [1]}, "only a redrive does"),
        ({"mode": "redrive", "shards": ["tokyo"]}, "without shards"),
        ({"modus": "full"}, "modus: unknown; known params of hotels: cause, force, letters, mode"),
        ({"letters": 5, "mode": "redrive"}, "letters: Input should be a valid tuple"),
        ({"letters": [10**29], "mode": "redrive"}, "letters"),
        ({"shards": True}, "shards: Input should be a valid tuple"),
        ({"\ud800": 1}, "\ud800: unknown"),
    ],
)
def test_what_makes_no_sense_is_refused_when_it_is_asked_for(
    airflow_session: DrivenAirflow, conf: dict[str, Any], why: str
) -> None:
    """Param by param, and what params say together; the answer says what is wrong."""
    runs = f"/api/v2/dags/{DAG}/dagRuns"
    before = airflow_session.client.get(runs).json()["total_entries"]
    status, detail = asked(airflow_session, DAG, conf)
    assert (status, why in detail) == (400, True), detail
    assert airflow_session.client.get(runs).json()["total_entries"] == before


def test_a_backfill_s_form_is_checked_as_well(airflow_session: DrivenAirflow) -> None:
    """One form is for all its runs."""
    body = {"dag_id": "sluice_windowed", "from_date": START, "to_date": END, "dag_run_conf": {"letters": [1]}}
    answer = airflow_session.client.post("/api/v2/backfills/dry_run", json=body)
    assert (answer.status_code, "only a redrive does" in answer.text) == (400, True)


def test_strangers_hear_nothing_of_it(airflow_session: DrivenAirflow) -> None:
    """Whoever is not logged in learns neither which syncs there are nor what their forms hold."""
    form = {"logical_date": None, "conf": {"modus": "full"}}
    for dag_id in (DAG, "sluice_atlantis"):
        answer = airflow_session.client.post(
            f"/api/v2/dags/{dag_id}/dagRuns", json=form, headers={"Authorization": "Bearer none"}
        )
        assert (answer.status_code, "modus" in answer.text) in [(401, False), (403, False)]


def test_dags_of_others_are_none_of_ours(airflow_session: DrivenAirflow) -> None:
    """A DAG that is called like a sync's has params of its own; and what is no form is for Airflow to refuse."""
    assert asked(airflow_session, "sluice_of_others", {"modus": "full"})[0] == 200
    for no_form in (b"[1", b"[" * 100_000):
        answer = airflow_session.client.post(f"/api/v2/dags/{DAG}/dagRuns", content=no_form)
        assert answer.status_code in (400, 422)


def test_shards_that_a_supplier_listed_can_be_chosen_next_time(airflow: DrivenAirflow, monkeypatch: pytest.MonkeyPatch) -> None:
    """The task that plans them keeps them where the form is made; a run of some of them keeps what there is."""
    from airflow.models.variable import Variable
    from airflow.utils.session import create_session

    def kept() -> Any:
        with create_session() as session:
            found = session.query(Variable).filter_by(key="sluice_shards_cities").one()
            return json.loads(found.get_val())

    with cities(2) as supplier:
        monkeypatch.setenv("AIRFLOW_CONN_CITIES", as_variable(supplier.connection))
        airflow.drive(LISTED, airflow.trigger(LISTED), up_to="shards.fetch")
        known = kept()
        assert len(known) == 2
        airflow.drive(LISTED, airflow.trigger(LISTED, shards=known[:1]), up_to="shards.fetch")
    assert kept() == known == sorted(known)
