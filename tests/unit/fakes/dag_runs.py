"""DagRuns in memory."""

from sluice.model.base import RunId
from sluice.model.run import Run


class MemoryDagRuns:
    """The port `DagRuns`: which were ended."""

    def __init__(self) -> None:
        self.ended: list[RunId] = []

    def end(self, run: Run) -> bool:
        """Note it."""
        self.ended.append(run.id)
        return run.origin.is_airflow
