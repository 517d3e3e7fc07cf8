"""Runs whose gates ask a person in vain in; gates that ask no more out."""

from typing import Protocol

from sluice.model.base import ReviewId
from sluice.model.run import Run


class Gates(Protocol):
    """The gates of runs, as people see them. What they show decides nothing: a review's verdict does."""

    def close(self, run: Run, superseded: ReviewId, successor: ReviewId) -> None:
        """Let the gate of a run ask no more about a review, since `successor` has superseded it.

        Never raises: a gate that nobody closes, or that does not ask, can publish nothing in any case.
        """
