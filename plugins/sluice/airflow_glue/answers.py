"""The form that goes with an answer, and what comes back of it, in; a decision, or why it is none, out."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from airflow.sdk import Param

from sluice.checks.policy import unanswered
from sluice.errors import DecisionRefused, ReviewNotApproved
from sluice.model.airflow_names import ANSWERS, COMMENT, DELETES_AT_MOST, REVIEW
from sluice.model.review import MOST_DELETES, Choice, Decision
from sluice.model.spec import ReviewPolicy

_CHOICES: Final = {label: choice for choice, label in ANSWERS.items()}


def answer_form(review: str) -> dict[str, Param]:
    """Return what a person may add to an answer, as Airflow's form shows it; the review goes along unseen."""
    number = "Let through at most so many deletions. Empty: as many as the review has, unless it is blocked for them."
    return {
        COMMENT: Param("", type=["null", "string"], description="Kept with the decision; may stay empty."),
        DELETES_AT_MOST: Param(None, type=["null", "integer"], minimum=0, description=number),
        REVIEW: Param(review, type="string", const=review),
    }


def read_answer(event: Mapping[str, Any], review: str, policy: ReviewPolicy, now: datetime) -> Decision:
    """Return the decision that Airflow brings, which has checked neither the form nor, if everybody is an admin, who answered.

    Raises `DecisionRefused` where it cannot be told what was meant, or which review. Of a rejection the rest of the form need
    not make sense.
    """
    if event.get("error_type") == "timeout":
        return unanswered(policy, now)
    if "error" in event:
        raise ReviewNotApproved(f"Airflow could not wait for an answer: {event['error']}")
    choice = _choice(event.get("chosen_options"))
    form = event.get("params_input") or {}
    if isinstance(form, Mapping) and form.get(REVIEW) not in (None, review):
        raise DecisionRefused(f"the form is about another review than {review}, which is asked about now")
    answered_at = event.get("responded_at")
    return Decision(
        choice=choice,
        by=_who(event.get("responded_by_user"), policy.approvers),
        via="airflow",
        comment=_comment(form) if choice is Choice.REJECT else _checked_comment(form),
        deletes_at_most=None if choice is Choice.REJECT else _deletes_at_most(form),
        at=answered_at.astimezone(UTC) if isinstance(answered_at, datetime) else now,
    )


def _choice(chosen: Any) -> Choice:
    label = chosen[0] if isinstance(chosen, list) and len(chosen) == 1 else None
    if not isinstance(label, str) or label not in _CHOICES:
        raise DecisionRefused(f"one of {', '.join(_CHOICES)} is to be chosen")
    return _CHOICES[label]


def _who(user: Any, approvers: tuple[str, ...]) -> str:
    """Return who answered, with the id where the name is another: people choose their names, and only ids tell who may."""
    known = user if isinstance(user, Mapping) else {}
    who = _storable(known.get("name") or known.get("id") or "unknown")
    if known.get("id") and known["id"] != known.get("name", known["id"]):
        who = f"{who} ({_storable(known['id'])})"
    if approvers and str(known.get("id")) not in approvers:
        raise DecisionRefused(f"{who} is none of those who may decide: {', '.join(approvers)}")
    return who


def _checked_comment(form: Any) -> str:
    if not isinstance(form, Mapping):
        raise DecisionRefused("the form is to be filled in with names and values")
    if unknown := sorted(str(key) for key in form if key not in {COMMENT, DELETES_AT_MOST, REVIEW}):
        raise DecisionRefused(f"the form has no field {', '.join(unknown)[:100]}, but {COMMENT} and {DELETES_AT_MOST}")
    if not isinstance(form.get(COMMENT) or "", str):
        raise DecisionRefused(f"{COMMENT} is to be a text")
    return _comment(form)


def _comment(form: Any) -> str:
    comment = form.get(COMMENT) if isinstance(form, Mapping) else None
    return _storable(comment) if isinstance(comment, str) else ""


def _deletes_at_most(form: Mapping[str, Any]) -> int | None:
    number = form.get(DELETES_AT_MOST)
    if number is None or number == "":
        return None
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= MOST_DELETES:
        raise DecisionRefused(f"{DELETES_AT_MOST} is to be a whole number from 0 on, or empty")
    return number


def _storable(text: Any) -> str:
    """Return a text as the database can hold it."""
    return str(text).encode(errors="replace").decode().replace("\0", "")
