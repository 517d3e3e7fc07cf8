"""Runs in Airflow whose gates ask people, and requests for runs, in; answers, and the DagRuns that were asked for, out."""

from dataclasses import dataclass
from typing import Protocol

from sluice.model.base import ReviewId
from sluice.model.review import Decision
from sluice.model.run import Run, RunRequest


class Gates(Protocol):
    """The gates of runs, as people see them. What they show decides nothing: a review's verdict does."""

    def close(self, run: Run, superseded: ReviewId, successor: ReviewId) -> None:
        """Let the gate of a run ask no more about a review, since `successor` has superseded it.

        Never raises: a gate that nobody closes, or that does not ask, can publish nothing in any case.
        """

    def require_unanswered(self, run: Run) -> None:
        """Raise `NotFound` if the gate of a DagRun does not ask, and `IllegalTransition` if it was answered or has ended."""

    def release(self, run: Run, review: ReviewId, decision: Decision) -> None:
        """Let the gate of a DagRun go on, since the review that it asks about was decided elsewhere.

        Raises `NotFound` and `IllegalTransition` as above, and `AirflowUnavailable`; what was decided stands all the same.
        """


@dataclass(frozen=True)
class Triggered:
    """A DagRun that was asked for."""

    dag_run_id: str
    url: str
    is_paused: bool
    """Whether its DAG is: then it begins once somebody unpauses it."""


class Triggers(Protocol):
    """Asks Airflow for runs."""

    def ask(self, request: RunRequest) -> Triggered:
        """Trigger the DAG of the request's sync, its form filled in as the request says."""
