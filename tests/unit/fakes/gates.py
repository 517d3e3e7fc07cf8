"""Gates in memory."""

from sluice.model.base import ReviewId, RunId
from sluice.model.run import Run


class MemoryGates:
    """The port `Gates`: which runs' gates were closed, and for which newer review."""

    def __init__(self) -> None:
        self.closed: list[tuple[RunId, ReviewId]] = []

    def close(self, run: Run, superseded: ReviewId, successor: ReviewId) -> None:  # noqa: ARG002 - the port's
        """Note it."""
        self.closed.append((run.id, successor))
