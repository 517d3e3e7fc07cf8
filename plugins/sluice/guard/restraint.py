"""What holds back the requests to one host: a try goes in; it is made when breaker and pace let it, or refused."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from sluice.guard.breaker import SharedBreaker
from sluice.guard.pacing import Pacing

T = TypeVar("T")


@dataclass(frozen=True)
class Restraint:
    """The breaker and the pace of one host and stage."""

    breaker: SharedBreaker
    pacing: Pacing

    def ask(self, call: Callable[[], T]) -> T:
        """Return what one try returns.

        Raises `SupplierResting` while the supplier is left alone, `RateLimited` if the queue for a slot is too long.
        """
        self.breaker.require_rested()  # no slot is spent on a try that will not be made
        self.pacing.await_slot()
        return self.breaker.watch(call)
