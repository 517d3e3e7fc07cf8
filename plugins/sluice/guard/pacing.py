"""The pace of requests: a try that is due comes in, and goes out when its slot has come. All workers share them."""

import math
from datetime import timedelta

from sluice.model.stage import StagePolicy
from sluice.ports import Clock, RateStore


class Pacing:
    """Lets `requests_per_second` tries through to one host, by all workers of a stage together.

    Slots are handed out in the order of asking. A worker that dies leaves its slot unused, and holds up nobody.
    """

    def __init__(self, store: RateStore, clock: Clock, *, host: str, stage: str, policy: StagePolicy) -> None:
        self._store = store
        self._clock = clock
        self._host = host
        self._stage = stage
        self._spacing = spacing_of(policy)
        self._patience = policy.no_progress_timeout

    def await_slot(self) -> None:
        """Return when the next try may be made; at once where there is no limit.

        Raises `RateLimited`, having waited for nothing, if that is further off than the stage's `no_progress_timeout`.
        """
        if self._spacing is not None:
            self._clock.wait(self._store.reserve(self._host, self._stage, spacing=self._spacing, patience=self._patience))


def spacing_of(policy: StagePolicy) -> timedelta | None:
    """Return what lies between two slots, in whole microseconds, rather too many than too few; None if there is no limit."""
    rate = policy.requests_per_second
    return None if rate is None else timedelta(microseconds=math.ceil(1_000_000 / rate))
