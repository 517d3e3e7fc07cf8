"""Airflow's REST API: what is asked of it, and what its answers mean, over real HTTP."""
# ruff: noqa: E501 - tables of cases read better with one on each line

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from sluice.adapters.airflow_api import AirflowApi, base_url
from sluice.cli.connections import parse_connection
from sluice.cli.local.airflow_client import AirflowClient
from sluice.errors import AirflowUnavailable, ConnectionInvalid, IllegalTransition, NotFound, SluiceError, UsageInvalid
from sluice.model.airflow_names import ANSWERS
from sluice.model.base import ReviewId
from sluice.model.review import Choice
from sluice.model.run import Origin
from tests.support.airflow_stub import AirflowStub, asking

RUN_PATH = "/api/v2/dags/sluice_hotels/dagRuns/manual__1%2F2"
ASKED_PATH = f"{RUN_PATH}/hitlDetails"
GATE_PATH = f"{RUN_PATH}/taskInstances/gate/-1/hitlDetails"
FORM = {"comment": "looks right", "review_id": "r1"}


@pytest.fixture
def airflow() -> Iterator[AirflowStub]:
    """Return a running server."""
    with AirflowStub() as server:
        yield server


def ask(airflow: AirflowStub, *details: dict[str, Any]) -> None:
    """Let the tasks of a DagRun ask so."""
    airflow.answers["GET", ASKED_PATH] = (200, {"hitl_details": list(details), "total_entries": len(details)})


def answer(airflow: AirflowStub, choice: Choice, deletes_at_most: int | None = None) -> None:
    """Answer what one DagRun asks."""
    origin = Origin(dag_id="sluice_hotels", dag_run_id="manual__1/2")
    with AirflowApi(airflow.info) as api:
        api.answer_gate(origin, ReviewId("r1"), choice, "looks right", deletes_at_most)


@pytest.mark.parametrize(("choice", "label"), ANSWERS.items())
def test_the_gate_is_answered_with_the_forms_label_and_a_comment(airflow: AirflowStub, choice: Choice, label: str) -> None:
    """The login goes before, its token along, names are encoded; the answer is one of the form's, and names its review."""
    ask(airflow, asking())
    airflow.answers["PATCH", GATE_PATH] = (200, {"chosen_options": [label]})
    answer(airflow, choice)
    assert airflow.asked == [
        ("POST", "/auth/token", {"username": "admin", "password": "pw"}, None),
        ("GET", ASKED_PATH, None, "Bearer t0k3n"),
        ("PATCH", GATE_PATH, {"chosen_options": [label], "params_input": FORM}, "Bearer t0k3n"),
    ]


def test_a_number_of_deletions_goes_along(airflow: AirflowStub) -> None:
    """How many deletions are let through at most is a field of the form."""
    ask(airflow, asking())
    airflow.answers["PATCH", GATE_PATH] = (200, {})
    answer(airflow, Choice.APPROVE, 39)
    assert airflow.asked[-1][2]["params_input"] == {**FORM, "deletes_at_most": 39}


def test_what_publishing_asks_comes_after_the_gate(airflow: AirflowStub) -> None:
    """Once the publication asks again, it is that question which is answered; what other tasks ask is not ours."""
    path = GATE_PATH.replace("/gate/", "/publish/")
    late = asking("publish", created_at="2026-01-01T00:00:01Z")
    ask(airflow, asking("lunch", created_at="2026-01-02T00:00:00Z"), late, asking(state="success", response_received=True))
    airflow.answers["PATCH", path] = (200, {})
    answer(airflow, Choice.APPROVE)
    assert airflow.asked[-1][:2] == ("PATCH", path)


@pytest.mark.parametrize("is_answered", [True, False])
def test_a_gate_that_has_failed_takes_no_answer(airflow: AirflowStub, *, is_answered: bool) -> None:
    """Airflow would take it down and say 200, yet nothing would come of it: not even of the same answer again."""
    ask(airflow, asking(state="failed", response_received=is_answered, chosen_options=["Approve"]))
    with pytest.raises(IllegalTransition, match="the task gate is failed: an answer changes nothing any more"):
        answer(airflow, Choice.APPROVE)
    assert [method for method, *_ in airflow.asked] == ["POST", "GET"]


def test_the_same_answer_again_changes_nothing(airflow: AirflowStub) -> None:
    """Approving what was approved is in order, and Airflow is not asked to write again; with another number it is not."""
    ask(airflow, asking(state="success", response_received=True, chosen_options=["Approve"], params_input={}))
    answer(airflow, Choice.APPROVE)
    with pytest.raises(IllegalTransition, match="has answered 'Approve' already"):
        answer(airflow, Choice.APPROVE, 3)
    assert {method for method, path, *_ in airflow.asked if path == GATE_PATH} == set()


def test_an_answer_about_another_review_is_not_taken_for_this_ones(airflow: AirflowStub) -> None:
    """What was approved before is not this review, which nobody has asked about yet; a form that names none is about it."""
    approved = {"state": "success", "response_received": True, "chosen_options": ["Approve"]}
    for named in ({"review_id": {"value": "r1"}}, {}, None):
        ask(airflow, asking(**approved, params=named))
        answer(airflow, Choice.APPROVE)
    ask(airflow, asking(**approved, params={"review_id": {"value": "r0"}}))
    with pytest.raises(NotFound, match="asks for no answer now"):
        answer(airflow, Choice.APPROVE)


def test_another_answer_is_refused_and_names_who_gave_the_first(airflow: AirflowStub) -> None:
    """Rejecting what somebody approved says who did, and when."""
    ada = {"responded_by_user": {"id": "1", "name": "Ada"}, "responded_at": "2026-01-01T00:00:00Z"}
    ask(airflow, asking(state="success", response_received=True, chosen_options=["Approve"], **ada))
    with pytest.raises(IllegalTransition, match=r"Ada has answered 'Approve' already, at 2026-01-01T00:00:00Z"):
        answer(airflow, Choice.REJECT)


REFUSALS = {
    "wrong password": (("POST", "/auth/token"), 401, ConnectionInvalid, "refuses the login of admin: look at the connection sluice_airflow"),
    "no Airflow at all": (("POST", "/auth/token"), 404, ConnectionInvalid, "is no Airflow 3"),
    "not allowed": (("GET", ASKED_PATH), 403, ConnectionInvalid, "does not allow admin .* to do this: why it is so"),
    "no such run": (("GET", ASKED_PATH), 404, NotFound, "asks for no answer now: see http://.*/dags/sluice_hotels/runs/manual__1%2F2"),
    "answered meanwhile": (("PATCH", GATE_PATH), 409, IllegalTransition, "somebody else has answered in the meantime"),
    "unknown option": (("PATCH", GATE_PATH), 400, UsageInvalid, "Airflow refuses this: why it is so"),
    "gone meanwhile": (("PATCH", GATE_PATH), 404, NotFound, "asks for no answer now"),
    "server error": (("GET", ASKED_PATH), 500, AirflowUnavailable, "answers 500 to GET"),
}  # fmt: skip


@pytest.mark.parametrize(("call", "status", "error", "message"), REFUSALS.values(), ids=REFUSALS.keys())
def test_refusals_have_names_and_mends(
    airflow: AirflowStub, call: tuple[str, str], status: int, error: type[SluiceError], message: str
) -> None:
    """Each way Airflow says no becomes an error of ours that says what to look at."""
    ask(airflow, asking())
    airflow.answers[call] = (status, {"detail": "why it is so"})
    with pytest.raises(error, match=message):
        answer(airflow, Choice.APPROVE)


@pytest.mark.parametrize("body", [b"<html>", b"[]", b""])
def test_what_is_no_airflow_is_named(airflow: AirflowStub, body: bytes) -> None:
    """A page of something else under that address is told as such."""
    airflow.answers["POST", "/auth/token"] = (200, body)
    with pytest.raises(ConnectionInvalid, match="is no Airflow 3"):
        answer(airflow, Choice.APPROVE)


def test_an_unreachable_airflow_is_named(airflow: AirflowStub) -> None:
    """Nobody listening is a matter of later, and names the address."""
    port = airflow.port
    airflow.close()
    with pytest.raises(AirflowUnavailable, match=f"Airflow at http://127.0.0.1:{port} cannot be reached"):
        answer(airflow, Choice.APPROVE)


def test_without_a_login_everybody_is_admin(airflow: AirflowStub) -> None:
    """An Airflow for one person alone hands out tokens without a password."""
    airflow.answers["GET", "/auth/token"] = (201, {"access_token": "open"})
    info = parse_connection("sluice_airflow", f"http://127.0.0.1:{airflow.port}")
    with AirflowApi(info) as api, pytest.raises(NotFound):
        api.trigger("sluice_hotels", {})
    assert airflow.asked[-1][3] == "Bearer open"


def test_a_run_is_triggered_with_the_form_filled_in(airflow: AirflowStub) -> None:
    """The run has no logical date, carries what was asked for, and its page is known."""
    airflow.answers["GET", "/api/v2/dags/sluice_hotels"] = (200, {"is_paused": True})
    airflow.answers["POST", "/api/v2/dags/sluice_hotels/dagRuns"] = (200, {"dag_run_id": "manual__x"})
    with AirflowApi(airflow.info) as api:
        triggered = api.trigger("sluice_hotels", {"mode": "full"})
    assert airflow.asked[-1][2] == {"logical_date": None, "conf": {"mode": "full"}}
    assert triggered.is_paused
    assert triggered.url == f"http://127.0.0.1:{airflow.port}/dags/sluice_hotels/runs/manual__x"


def test_an_unknown_dag_says_where_to_look(airflow: AirflowStub) -> None:
    """A sync without a DAG file, or with one that does not load, is told as such."""
    with AirflowApi(airflow.info) as api, pytest.raises(NotFound, match=r"knows no DAG sluice_x: is there a file .* in dags/"):
        api.trigger("sluice_x", {})


def test_one_login_serves_all_calls(airflow: AirflowStub) -> None:
    """A DagRun is looked at twice with the token of one login."""
    airflow.answers["GET", "/api/v2/dags/sluice_hotels/dagRuns/r"] = (200, {"state": "failed"})
    with AirflowApi(airflow.info) as api:
        assert api.dag_run("sluice_hotels", "r") == api.dag_run("sluice_hotels", "r") == {"state": "failed"}
    assert [method for method, *_ in airflow.asked] == ["POST", "GET", "GET"]


@pytest.mark.parametrize("is_there", [True, False])
def test_the_local_stack_has_a_pool_changed_or_created(airflow: AirflowStub, *, is_there: bool) -> None:
    """A pool that is not found is made; what the local stack asks has the same login and the same errors."""
    airflow.answers["PATCH", "/api/v2/pools/sluice_x"] = (200 if is_there else 404, {})
    airflow.answers["POST", "/api/v2/pools"] = (201, {})
    with AirflowClient(airflow.info) as client:
        client.set_pool("sluice_x", 2, "two at a time")
    assert [path for _, path, *_ in airflow.asked[2:]] == ([] if is_there else ["/api/v2/pools"])
    assert airflow.asked[-1][2]["slots"] == 2


@pytest.mark.parametrize(
    ("uri", "url"),
    [
        ("http://airflow.example", "http://airflow.example"),
        ("http://airflow.example:8080/https", "https://airflow.example:8080"),
        ("http://https://airflow.example", "https://airflow.example"),
    ],
)
def test_an_address_may_carry_its_scheme_in_either_place(uri: str, url: str) -> None:
    """The scheme stands before the host or in the schema, as in Airflow's own HTTP connections."""
    assert base_url(parse_connection("sluice_airflow", uri)) == url


def test_an_address_that_is_none_is_named() -> None:
    """Nobody can be asked there, which a person has to mend."""
    info = replace(parse_connection("sluice_airflow", "http://airflow.example"), host="http://[::1")
    with pytest.raises(ConnectionInvalid, match="sluice_airflow has no host that can be asked"):
        AirflowApi(info)


def test_an_address_needs_a_host() -> None:
    """A connection without a host is named."""
    with pytest.raises(ConnectionInvalid, match="sluice_airflow has no host"):
        base_url(parse_connection("sluice_airflow", "http://"))
