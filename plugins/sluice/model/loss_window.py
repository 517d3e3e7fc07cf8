"""How much of each class of state a killed worker may take with it: a stage's policy in, a span out.

    loss window = batch interval + (retries + 1) x time-out of a write + shutdown

What is received within that span may not be written yet. Of control state that is nothing: nobody goes on before it is written.
Of task state it is what the next worker fetches again, and never more than `chunk_bytes` and one page. Of session state it is
what nobody ever hears of. No worker is given time to write on its way out, so the shutdown adds nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from sluice.model.base import Frozen
from sluice.model.progress import TOLD_EVERY
from sluice.model.stage import StagePolicy
from sluice.model.state_class import StateClass

_NOTHING: Final = timedelta(0)


@dataclass(frozen=True)
class Writing:
    """How long one write may take before it is given up."""

    retries: int
    timeout: timedelta
    """Of one try."""


class LossWindow(Frozen):
    """The span a class may lose, and what it is made of."""

    state_class: StateClass
    batch: timedelta
    retries: int
    timeout: timedelta
    shutdown: timedelta = _NOTHING

    @property
    def span(self) -> timedelta:
        """How long before the kill what came in may be lost."""
        if self.state_class is StateClass.CONTROL:
            return _NOTHING
        return self.batch + (self.retries + 1) * self.timeout + self.shutdown


def loss_windows(policy: StagePolicy, writing: Mapping[StateClass, Writing]) -> list[LossWindow]:
    """Return the window of each class, given how a write of each may drag on."""
    batches = {StateClass.CONTROL: _NOTHING, StateClass.TASK: policy.chunk_age, StateClass.SESSION: TOLD_EVERY}
    return [
        LossWindow(
            state_class=state_class,
            batch=batch,
            retries=writing[state_class].retries,
            timeout=writing[state_class].timeout,
        )
        for state_class, batch in batches.items()
    ]
