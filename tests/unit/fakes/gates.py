"""Gates in memory."""

from sluice.errors import SluiceError
from sluice.model.base import ReviewId, RunId
from sluice.model.review import Choice, Decision
from sluice.model.run import Run


class MemoryGates:
    """The port `Gates`: which runs' gates were closed, and for which newer review; and which were let go on, and how."""

    def __init__(self) -> None:
        self.closed: list[tuple[RunId, ReviewId]] = []
        self.released: list[tuple[RunId, ReviewId, Choice]] = []
        self.trouble: SluiceError | None = None
        """Raised by a gate that does not ask."""
        self.trouble_at_release: SluiceError | None = None

    def close(self, run: Run, superseded: ReviewId, successor: ReviewId) -> None:  # noqa: ARG002 - the port's
        """Note it."""
        self.closed.append((run.id, successor))

    def require_unanswered(self, run: Run) -> None:  # noqa: ARG002 - the port's
        """Ask, unless it is in trouble."""
        if self.trouble is not None:
            raise self.trouble

    def release(self, run: Run, review: ReviewId, decision: Decision) -> None:
        """Note it."""
        if self.trouble_at_release is not None:
            raise self.trouble_at_release
        self.released.append((run.id, review, decision.choice))
