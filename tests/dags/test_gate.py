"""The gate as people meet it in Airflow: answers that are none, people who may not, time that runs out, and newer reviews."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sluice.adapters.airflow_api import AirflowApi
from sluice.errors import IllegalTransition
from sluice.model.base import ReviewId
from sluice.model.lifecycle import RunStatus, Verdict
from sluice.model.review import Choice
from sluice.model.run import Origin
from sluice.ports import ConnectionInfo
from tests.dags.driving import DrivenAirflow, question_of
from tests.dags.test_run import DAG, TOKYO, newest_verdict, run_of, services, table_size
from tests.support.servers import Supplier

Edit = Callable[[str], None]


@pytest.fixture
def review_policy(airflow_home: Path) -> Iterator[Edit]:
    """Let a test add to the review policy of the hotels, for the runs it triggers."""
    file = airflow_home / "include" / "syncs" / "hotels.yaml"
    spec = file.read_text()

    def edit(line: str) -> None:
        file.write_text(spec.replace("\nreview:\n", f"\nreview:\n  {line}\n"))

    yield edit
    file.write_text(spec)


def asked(airflow: DrivenAirflow, **conf: Any) -> str:
    """Return a run that waits for a person."""
    run = airflow.trigger(DAG, **{"review": "always", "shards": ["brittany"], **conf})
    assert airflow.drive(DAG, run)["gate"] == "awaiting_input"
    return run


def test_an_answer_that_is_none_is_asked_for_again(airflow: DrivenAirflow, database: ConnectionInfo) -> None:
    """The review waits on, the form says why, and no error of the stage's tries is used up; what is understood publishes."""
    run = asked(airflow)
    for number, (form, why) in enumerate(
        [
            ({"deletes_at_most": "many"}, "is to be a whole number from 0 on, or empty"),
            ({"delete_at_most": 5}, "the form has no field delete"),
        ]
    ):
        airflow.answer(DAG, run, "Approve", **form)
        assert airflow.drive(DAG, run)["gate"] == "awaiting_input"
        body = airflow.question(DAG, run)["body"]
        assert body.startswith("**The last answer was not taken**: "), body
        assert why.replace("_", r"\_") in body.replace("\\.", ".")
        assert airflow.tries(DAG, run, "gate") == number + 2
        with services() as state:
            assert newest_verdict(state, run) is Verdict.NEEDS_HUMAN
            assert run_of(state, run).status is RunStatus.WAITING
    airflow.answer(DAG, run, "Approve", deletes_at_most=0)
    assert set(airflow.drive(DAG, run).values()) == {"success"}
    assert table_size(database) > 0


def test_it_is_asked_again_even_when_no_try_is_left(airflow: DrivenAirflow) -> None:
    """However often nonsense is answered, the run does not fail of it."""
    run = asked(airflow)
    airflow.use_up_tries(DAG, run, "gate")
    for _ in range(2):
        airflow.answer(DAG, run, "Approve", comment=5)
        assert airflow.drive(DAG, run)["gate"] == "awaiting_input"
        assert airflow.tries(DAG, run, "gate") == 1
    airflow.answer(DAG, run, "Reject")
    assert airflow.drive(DAG, run)["publish"] == "skipped"


def test_only_approvers_may_answer(airflow: DrivenAirflow, review_policy: Edit, monkeypatch: pytest.MonkeyPatch) -> None:
    """Airflow refuses others; where it lets everybody pass, the gate itself does, and asks again."""
    review_policy("approvers: [bob]")
    run = asked(airflow)
    assert airflow.question(DAG, run)["assigned_users"] == [{"id": "bob", "name": "bob"}]
    answer = {"chosen_options": ["Approve"], "params_input": {}}
    assert airflow.client.patch(question_of(DAG, run), json=answer).status_code == 403
    monkeypatch.setenv("AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS", "True")
    airflow.answer(DAG, run, "Approve")
    assert airflow.drive(DAG, run)["gate"] == "awaiting_input"
    assert "ann is none of those who may decide: bob" in airflow.question(DAG, run)["body"]
    with services() as state:
        assert newest_verdict(state, run) is Verdict.NEEDS_HUMAN


def test_silence_rejects_where_the_policy_says_so(airflow: DrivenAirflow, review_policy: Edit) -> None:
    """The run ends as if somebody had said no: cancelled, its DagRun green."""
    review_policy("on_timeout: reject")
    run = asked(airflow)
    airflow.let_it_expire(DAG, run)
    states = airflow.drive(DAG, run)
    assert (states["gate"], states["publish"], states["settle"], states[""]) == ("success", "skipped", "success", "success")
    assert airflow.xcom(DAG, run, "gate")["decided"] == "rejected by policy: nobody answered in time"
    with services() as state:
        assert run_of(state, run).status is RunStatus.CANCELLED


def test_an_answer_to_a_gate_that_has_ended_changes_nothing(
    airflow: DrivenAirflow, api: ConnectionInfo, database: ConnectionInfo
) -> None:
    """Airflow itself would take it down; the command says no, before that and after."""
    run = asked(airflow)
    airflow.let_it_expire(DAG, run)
    assert airflow.drive(DAG, run)["gate"] == "failed"
    origin, review = Origin(dag_id=DAG, dag_run_id=run), ReviewId(airflow.question(DAG, run)["params"]["review_id"]["value"])
    refused = pytest.raises(IllegalTransition, match="the task gate is failed: an answer changes nothing any more")
    with AirflowApi(api) as asking, refused:
        asking.answer_gate(origin, review, Choice.APPROVE, "")
    airflow.answer(DAG, run, "Approve")
    assert airflow.question(DAG, run)["chosen_options"] == ["Approve"]
    with AirflowApi(api) as asking, refused:
        asking.answer_gate(origin, review, Choice.APPROVE, "")
    assert airflow.drive(DAG, run)[""] == "failed"
    with services() as state:
        assert newest_verdict(state, run) is Verdict.EXPIRED
        assert run_of(state, run).status is RunStatus.FAILED
    assert table_size(database) == 0


def test_a_newer_run_passes_one_that_waits_and_closes_its_gate(
    airflow: DrivenAirflow, api: ConnectionInfo, database: ConnectionInfo, supplier: Supplier
) -> None:
    """It ends first, and takes the place of the older review, whose gate is answered for all to see and publishes nothing."""
    older = asked(airflow, shards=[])
    newer = airflow.trigger(DAG)
    assert set(airflow.drive(DAG, newer).values()) == {"success"}
    hotels = supplier.control(delay=0)["hotels"]
    assert table_size(database) == hotels
    question = airflow.question(DAG, older)
    with services() as state:
        review = state.reviews.latest(run_of(state, newer).id)
        assert review is not None
        assert run_of(state, older).status is RunStatus.CANCELLED
    assert question["chosen_options"] == ["Reject"]
    assert f"superseded by review {review.id}" in question["params_input"]["comment"]
    states = airflow.drive(DAG, older)
    assert (states["gate"], states["publish"], states["settle"], states[""]) == ("success", "skipped", "success", "success")
    assert airflow.xcom(DAG, older, "gate")["decided"] == f"superseded by review {review.id}"
    assert "is superseded already: the answer ['Reject'] changes nothing" in airflow.xcom(DAG, older, "gate", "void_answer")
    with services() as state:
        superseded = state.reviews.latest(run_of(state, older).id)
        assert superseded is not None
        assert (superseded.verdict, superseded.decision) == (Verdict.SUPERSEDED, None)


@pytest.mark.parametrize("choice", ["Approve", "Reject"])
def test_publishing_asks_again_about_what_nobody_has_seen(
    airflow: DrivenAirflow, database: ConnectionInfo, supplier: Supplier, choice: str
) -> None:
    """A shard that came in after the approval makes it another diff: the task that publishes parks and asks."""
    supplier.control(fail={"status": 503, "region": "tokyo", "after": 4})
    run = asked(airflow, shards=[])
    airflow.answer(DAG, run, "Approve")
    airflow.drive(DAG, run, up_to="publish")
    hotels = supplier.control(fail=None)["hotels"]
    airflow.clear(DAG, run, "shards.fetch", TOKYO, downstream=False)
    events = len(airflow.asset_events("x-sluice://hotels"))
    assert airflow.drive(DAG, run, up_to="publish")[f"fetch[{TOKYO}]"] == "success"

    assert airflow.drive(DAG, run)["publish"] == "awaiting_input"
    assert table_size(database) == 0
    assert airflow.question(DAG, run, "publish")["subject"] == f"hotels: change {hotels:,} rows of public.hotels?"
    with services() as state:
        assert run_of(state, run).status is RunStatus.WAITING
    airflow.answer(DAG, run, choice, "publish", comment="on second thoughts")
    states = airflow.drive(DAG, run)
    published = choice == "Approve"
    assert (states["publish"], states["settle"]) == ("success" if published else "skipped", "success")
    assert table_size(database) == (hotels if published else 0)
    assert len(airflow.asset_events("x-sluice://hotels")) == events + published
    with services() as state:
        assert run_of(state, run).status is (RunStatus.SUCCEEDED if published else RunStatus.CANCELLED)


def test_the_form_after_a_clear_is_about_the_new_review(airflow: DrivenAirflow, supplier: Supplier) -> None:
    """Nobody decides about one review by the words of another: each try of the gate has a question of its own."""
    supplier.control(fail={"status": 503, "region": "tokyo", "after": 4})
    run = asked(airflow, shards=[])
    first = airflow.question(DAG, run)
    supplier.control(fail=None)
    airflow.clear(DAG, run, "shards.fetch", TOKYO)
    assert airflow.drive(DAG, run)["gate"] == "awaiting_input"
    second = airflow.question(DAG, run)
    assert second["subject"] != first["subject"]
    named = [question["params"]["review_id"]["value"] for question in (first, second)]
    with services() as state:
        newest = state.reviews.latest(run_of(state, run).id)
        assert newest is not None
        assert named[0] != named[1] == newest.id
    airflow.answer(DAG, run, "Approve", review_id=named[0])
    assert airflow.drive(DAG, run)["gate"] == "awaiting_input"
    assert "is about another review" in airflow.question(DAG, run)["body"]
    airflow.answer(DAG, run, "Approve", review_id=named[1])
    assert airflow.drive(DAG, run)["publish"] == "success"
