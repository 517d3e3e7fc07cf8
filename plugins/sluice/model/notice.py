"""What somebody is told through a notifier: an incident as it is now, or a review that waits, in; who it is about out."""

from pydantic import Field

from sluice.model.alert import Incident, Tidings
from sluice.model.base import Frozen
from sluice.model.review import Review
from sluice.model.run import Run


class Notice(Frozen):
    """One message to one notifier."""

    tidings: Tidings
    run: Run = Field(description="the run that gave rise to it")
    incident: Incident | None = Field(default=None, description="None: it is about a review")
    review: Review | None = Field(default=None, description="the one that waits; None: it is about an incident")

    @property
    def key(self) -> str:
        """What all notices of one thing share, for receivers that join what belongs together."""
        if self.incident is not None:
            return f"sluice/{self.run.sync}/incident/{self.incident.id}"
        return f"sluice/{self.run.sync}/review/{self.review.id if self.review is not None else self.run.id}"
