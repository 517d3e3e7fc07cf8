"""Deciding on a review's page: what is recorded, what goes on by it, and what is refused in place."""

from datetime import timedelta
from typing import Any

import pytest

from sluice.errors import AirflowUnavailable, NotFound
from sluice.flow.inline import run_inline
from sluice.model.ledger import Outcome
from sluice.model.lifecycle import RunStatus, Step, Verdict
from sluice.model.review import Choice, Decision, Figures, Review
from sluice.model.run import Mode, Origin, ReviewMode, RunRequest
from tests.support.nouns import a_review
from tests.unit.fakes.source import RegionalSource
from tests.unit.flow.workshop import MAY, Workshop, page, sync_spec
from tests.unit.web.visitor import DAG, OURS, Visitor


def waiting(**review: Any) -> tuple[Workshop, Review]:
    """A workshop whose inline run waits for a person, and the review that it waits for."""
    workshop = Workshop(spec=sync_spec(review=review))
    workshop.equip()
    workshop.supplier = RegionalSource(north=[page(1, ("a", MAY), is_last=True)], south=[page(1, ("b", MAY), is_last=True)])
    run = run_inline(workshop.services, RunRequest(sync="hotels", mode=Mode.FULL, review=ReviewMode.ALWAYS, origin=Origin()))
    found = workshop.services.reviews.latest(run.id)
    assert found is not None
    return workshop, found


def in_airflow(**figures: Any) -> tuple[Workshop, Review]:
    """A workshop whose run in Airflow waits for a person, and its review."""
    workshop = Workshop()
    run = workshop.begin().model_copy(update={"origin": Origin(dag_id=DAG, dag_run_id="manual__1")})
    workshop.memory.runs[run.id] = run
    facts = {"seen": 10, "unchanged": 0, "live_before": 100, "outcomes": {Outcome.CREATED: 1}} | figures
    return workshop, workshop.services.reviews.save(a_review("r1", figures=Figures(**facts)), run)


def test_an_inline_run_is_published_by_an_approval() -> None:
    """As by `sluice review approve`, under the user's name; the answer leads to the run, and the page says who it was."""
    workshop, review = waiting()
    ann = Visitor(workshop)
    assert 'name="choice" value="approve"' in ann.get(f"reviews/{review.id}").text
    answer = ann.post(f"reviews/{review.id}", {"choice": "approve", "comment": " as <announced> "})
    assert answer.json() == {"message": "Approved. The run goes on.", "next": f"dags/{DAG}/runs/{review.run}"}
    decided = workshop.services.reviews.get(review.id)
    assert decided.decision is not None
    assert (decided.verdict, decided.decision.by, decided.decision.via) == (Verdict.APPROVED, "Ann", "pages")
    assert workshop.services.runs.get(review.run).status is RunStatus.SUCCEEDED
    assert workshop.target is not None
    assert sorted(workshop.target.rows) == ["a", "b"]
    shown = ann.get(f"reviews/{review.id}").text
    assert "as &lt;announced&gt;" in shown
    assert 'name="choice"' not in shown


def test_whoever_finds_a_decided_run_left_alone_lets_it_go_on() -> None:
    """A server that ended in the middle of it leaves a lease; as long as that holds, somebody may be at it."""
    workshop, review = waiting()
    services, ann = workshop.services, Visitor(workshop)
    services.reviews.decide(review.id, Decision(choice=Choice.APPROVE, by="Ann", via="pages", at=services.clock.now()))
    services.runs.enter(review.run, Step.PUBLISH, timedelta(minutes=1))
    assert "Go on" not in ann.get(f"reviews/{review.id}").text
    workshop.memory.clock.move(timedelta(minutes=2))
    assert "Go on" in ann.get(f"reviews/{review.id}").text
    assert ann.post(f"reviews/{review.id}", {"choice": "approve", "comment": None}).status_code == 200
    assert services.runs.get(review.run).status is RunStatus.SUCCEEDED


def test_the_gate_in_airflow_goes_on_and_the_decision_is_the_users() -> None:
    """It is recorded first, and the gate told then."""
    workshop, review = in_airflow()
    answer = Visitor(workshop).post(f"reviews/{review.id}", {"choice": "reject", "comment": ""})
    assert answer.json()["message"] == "Rejected: nothing of it is published. The run goes on in Airflow."
    assert workshop.gates.released == [(review.run, review.id, Choice.REJECT)]
    assert workshop.services.reviews.get(review.id).verdict is Verdict.REJECTED


def test_nothing_is_recorded_that_no_gate_would_hear_of() -> None:
    """A gate that does not ask refuses, in place."""
    workshop, review = in_airflow()
    workshop.gates.trouble = NotFound("the gate asks for no answer now")
    answer = Visitor(workshop).post(f"reviews/{review.id}", {"choice": "approve"})
    assert (answer.status_code, answer.json()) == (404, {"message": "the gate asks for no answer now"})
    assert workshop.services.reviews.get(review.id).verdict is Verdict.NEEDS_HUMAN


def test_a_gate_that_could_not_be_told_is_told_by_the_same_answer_again() -> None:
    """What was decided stands meanwhile, so that another answer is refused."""
    workshop, review = in_airflow()
    workshop.gates.trouble_at_release = AirflowUnavailable("Airflow cannot be reached")
    ann = Visitor(workshop)
    assert "Say it again" in ann.post(f"reviews/{review.id}", {"choice": "approve"}).json()["message"]
    workshop.gates.trouble_at_release = None
    refused = ann.post(f"reviews/{review.id}", {"choice": "reject"})
    assert (refused.status_code, "by Ann" in refused.json()["message"]) == (409, True)
    assert ann.post(f"reviews/{review.id}", {"choice": "approve"}).status_code == 200
    assert workshop.gates.released == [(review.run, review.id, Choice.APPROVE)]
    workshop.gates.trouble_at_release = NotFound("the gate asks for no answer now")
    assert "It had been before" in ann.post(f"reviews/{review.id}", {"choice": "approve"}).json()["message"]


def test_approvers_are_known_by_their_ids() -> None:
    """A name helps nobody who is none of them: the page offers no form, and an answer is refused."""
    workshop, review = waiting(approvers=["Ann", "u1"])
    stranger, approver = Visitor(workshop), Visitor(workshop, id="u1")
    assert "you are none of them" in stranger.get(f"reviews/{review.id}").text
    refused = stranger.post(f"reviews/{review.id}", {"choice": "approve"})
    assert (refused.status_code, "may not decide" in refused.json()["message"]) == (409, True)
    assert approver.post(f"reviews/{review.id}", {"choice": "approve"}).status_code == 200


def test_a_mass_deletion_wants_a_number() -> None:
    """Without one, or with one that is too low, it is refused and keeps waiting; deletions may be left out instead."""
    workshop, review = in_airflow(outcomes={Outcome.DELETED: 39})
    ann = Visitor(workshop)
    assert 'name="deletes_at_most" min="0" step="1" inputmode="numeric" required' in ann.get(f"reviews/{review.id}").text
    for number in (None, 38):
        refused = ann.post(f"reviews/{review.id}", {"choice": "approve", "deletes_at_most": number})
        assert (refused.status_code, "39" in refused.json()["message"]) == (409, True)
    assert ann.post(f"reviews/{review.id}", {"choice": "approve", "deletes_at_most": 39}).status_code == 200


@pytest.mark.parametrize(
    ("headers", "changes", "form", "status"),
    [
        ({}, {DAG}, {"choice": "approve"}, 403),
        (OURS | {"Sec-Fetch-Site": "cross-site"}, {DAG}, {"choice": "approve"}, 403),
        (OURS, set(), {"choice": "approve"}, 403),
        (OURS, {DAG}, {"choice": "expire"}, 422),
        (OURS, {DAG}, {"choice": "approve", "by": "somebody else"}, 422),
        (OURS, {DAG}, {"choice": "approve", "deletes_at_most": -1}, 422),
        (OURS, {DAG}, {"choice": "approve", "comment": "x\0y"}, 422),
    ],
)
def test_who_may_not_or_does_not_mean_it_decides_nothing(headers: Any, changes: set[str], form: Any, status: int) -> None:
    """Another site's form, a reader, an answer that is none: told in a sentence, and the review keeps waiting."""
    workshop, review = in_airflow()
    visitor = Visitor(workshop, changes=changes)
    refused = visitor.post(f"reviews/{review.id}", form, headers=headers)
    assert (refused.status_code, bool(refused.json()["message"])) == (status, True)
    assert workshop.services.reviews.get(review.id).verdict is Verdict.NEEDS_HUMAN
    assert ('name="choice"' in visitor.get(f"reviews/{review.id}").text) is bool(changes)


def test_reviews_that_wait_are_listed_for_who_may_read_them() -> None:
    """With how long they have, and why; words of a supplier are text."""
    workshop, review = in_airflow()
    workshop.memory.reviews[review.id] = review.model_copy(update={"reasons": ("<b>odd</b>",)})
    ann = Visitor(workshop)
    listed = ann.client().get("/reviews").text
    assert f'href="./dags/{DAG}/reviews/{review.id}"' in listed
    assert "&lt;b&gt;odd&lt;/b&gt;" in listed
    ann.reads = set()
    assert review.id not in ann.client().get("/reviews").text
