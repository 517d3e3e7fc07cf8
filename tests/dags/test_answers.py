"""What Airflow brings as an answer: a decision where it can be told what was meant, a refusal where it cannot."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.airflow_glue.answers import answer_form, read_answer
from sluice.errors import DecisionRefused, ReviewNotApproved
from sluice.model.airflow_names import ANSWERS
from sluice.model.review import Choice, Decision
from sluice.model.spec import ReviewPolicy

NOW = datetime(2026, 1, 2, tzinfo=UTC)
ANSWERED = datetime(2026, 1, 1, tzinfo=UTC)
ANYBODY = ReviewPolicy()
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def answered(label: Any = "Approve", form: Any = None, user: Any = None) -> dict[str, Any]:
    """Return an answer as Airflow brings it."""
    return {
        "chosen_options": label if isinstance(label, list) else [label],
        "params_input": form,
        "responded_by_user": user or {"id": "7", "name": "Ann"},
        "responded_at": ANSWERED,
        "timedout": False,
    }


@pytest.mark.parametrize(("choice", "label"), ANSWERS.items())
def test_an_answer_becomes_a_decision(choice: Choice, label: str) -> None:
    """Who, what, when and why are Airflow's; a number goes with approvals."""
    decision = read_answer(answered(label, {"comment": "looked", "deletes_at_most": 39}), "r1", ANYBODY, NOW)
    number = None if choice is Choice.REJECT else 39
    assert decision == Decision(
        choice=choice, by="Ann (7)", via="airflow", comment="looked", deletes_at_most=number, at=ANSWERED
    )


@pytest.mark.parametrize("form", [None, {}, {"comment": None, "deletes_at_most": None}, {"comment": "", "deletes_at_most": ""}])
def test_the_form_may_stay_empty(form: Any) -> None:
    """Nothing is asked for but the choice."""
    decision = read_answer(answered(form=form), "r1", ANYBODY, NOW)
    assert (decision.choice, decision.comment, decision.deletes_at_most) == (Choice.APPROVE, "", None)


REFUSED = {
    "a number in words": {"deletes_at_most": "many"},
    "a number as text": {"deletes_at_most": "39"},
    "below zero": {"deletes_at_most": -1},
    "a truth": {"deletes_at_most": True},
    "a fraction": {"deletes_at_most": 1.5},
    "beyond what the column holds": {"deletes_at_most": 2**63},
    "a misspelled field": {"delete_at_most": 5},
    "a comment that is no text": {"comment": 5},
    "no form": ["comment"],
}


@pytest.mark.parametrize("form", REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_be_understood_approves_nothing(form: Any) -> None:
    """An approval whose form makes no sense is none; a rejection is one, whatever came with it."""
    for label in ("Approve", "Approve without deletions"):
        with pytest.raises(DecisionRefused):
            read_answer(answered(label, form), "r1", ANYBODY, NOW)
    assert read_answer(answered("Reject", form), "r1", ANYBODY, NOW).choice is Choice.REJECT


@pytest.mark.parametrize("label", ANSWERS.values())
@pytest.mark.parametrize("named", ["r0", ["r1"]])
def test_an_answer_about_another_review_is_none(label: str, named: Any) -> None:
    """Nobody is said to have approved, or rejected, what he has not seen."""
    with pytest.raises(DecisionRefused, match="is about another review than r1"):
        read_answer(answered(label, {"review_id": named}), "r1", ANYBODY, NOW)


@pytest.mark.parametrize("chosen", [[], ["Approve", "Reject"], ["approve"], [5], [["Approve"]]])
def test_one_of_the_three_has_to_be_chosen(chosen: list[Any]) -> None:
    """No choice, two, or another one are none."""
    with pytest.raises(DecisionRefused, match="one of Approve, Approve without deletions, Reject is to be chosen"):
        read_answer(answered(chosen), "r1", ANYBODY, NOW)


@given(chosen=JSON, form=JSON, user=JSON)
def test_nothing_that_comes_breaks_the_gate(chosen: Any, form: Any, user: Any) -> None:
    """Whatever Airflow brings is a decision that can be stored, or is refused by name."""
    event = {"chosen_options": chosen, "params_input": form, "responded_by_user": user}
    for options in (chosen, ["Approve"], ["Reject"]):
        try:
            decision = read_answer(event | {"chosen_options": options}, "r1", ANYBODY, NOW)
        except DecisionRefused:
            continue
        assert "\0" not in decision.comment + decision.by
        assert (decision.comment + decision.by).encode()


@pytest.mark.parametrize(
    ("user", "may"),
    [({"id": "7", "name": "Bob"}, True), ({"id": "8", "name": "7"}, False), ({}, False), (None, False)],
)
def test_only_approvers_decide(user: Any, *, may: bool) -> None:
    """It is the id that counts: names are chosen by those who bear them. Nor does anybody else's rejection count."""
    policy = ReviewPolicy(approvers=("ann", "7"))
    for label in ANSWERS.values():
        event = answered(label) | {"responded_by_user": user}
        if may:
            assert read_answer(event, "r1", policy, NOW).by == "Bob (7)"
        else:
            with pytest.raises(DecisionRefused, match="none of those who may decide: ann, 7"):
                read_answer(event, "r1", policy, NOW)


@pytest.mark.parametrize(("on_timeout", "choice"), [("expire", Choice.EXPIRE), ("reject", Choice.REJECT)])
def test_time_decides_as_the_policy_says(on_timeout: Any, choice: Choice) -> None:
    """Nobody's silence is an approval."""
    event = {"error": "The timeout has passed", "error_type": "timeout"}
    decision = read_answer(event, "r1", ReviewPolicy(on_timeout=on_timeout, approvers=("ann",)), NOW)
    assert (decision.choice, decision.by, decision.via) == (choice, "policy", "policy")


def test_an_airflow_that_cannot_wait_says_so() -> None:
    """What Airflow could not do is no answer of anybody."""
    with pytest.raises(ReviewNotApproved, match="could not wait for an answer: broken"):
        read_answer({"error": "broken", "error_type": "unknown"}, "r1", ANYBODY, NOW)


def test_the_form_takes_its_own_defaults() -> None:
    """What the form shows at first is an answer that is understood."""
    shown = {name: param.resolve() for name, param in answer_form("r1").items()}
    assert read_answer(answered(form=shown), "r1", ANYBODY, NOW).deletes_at_most is None
