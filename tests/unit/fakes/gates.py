"""Gates in memory."""

from sluice.model.base import ReviewId, RunId
from sluice.model.run import Run


class MemoryGates:
    """The port `Gates`: which gates were closed, for which newer review."""

    def __init__(self) -> None:
        self.closed: list[tuple[RunId, ReviewId]] = []

    def close(self, run: Run, successor: ReviewId) -> None:
        """Note it."""
        self.closed.append((run.id, successor))
