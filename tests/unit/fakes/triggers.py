"""An Airflow that is asked for runs, in memory."""

from sluice.errors import SluiceError
from sluice.model.run import RunRequest
from sluice.ports import Triggered


class MemoryTriggers:
    """The port `Triggers`: what was asked for."""

    def __init__(self) -> None:
        self.asked: list[RunRequest] = []
        self.trouble: SluiceError | None = None

    def ask(self, request: RunRequest) -> Triggered:
        """Note it."""
        if self.trouble is not None:
            raise self.trouble
        self.asked.append(request)
        return Triggered(f"manual__{len(self.asked)}", f"http://airflow/{len(self.asked)}", is_paused=False)
