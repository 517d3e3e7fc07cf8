"""What all workers share, and whom they tell: calls to others, breakers, pace, progress, alerts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from pydantic import JsonValue

from sluice.model.alert import Alert, Incident
from sluice.model.base import RunId, ShardKey
from sluice.model.breaker import Breaker
from sluice.model.call import Call, CallResult
from sluice.model.progress import Progress
from sluice.model.run import Run

Telling = Callable[[Incident], Sequence[Call]]
"""Says which calls an incident, as it is now, is to be told by."""


class ProgressStore(Protocol):
    """How far open chunks have come, for whoever watches."""

    def tell(self, progress: Progress) -> None:
        """Keep what a shard's open chunk holds; whoever no longer has the shard changes nothing."""

    def of(self, run: RunId) -> dict[ShardKey, Progress]:
        """Return what was told last of each shard of the run; `model.progress.shown` says what of it still counts."""


class CallStore(Protocol):
    """Calls with side effects. A record expires after its `ttl`, by the database's clock; then it counts as absent.

    `run` is the run that works: each write is `Fenced` unless its token still is the run's.
    """

    def prepare(self, calls: Sequence[Call], run: Run, ttl: timedelta) -> None:
        """Note calls that are due once something else has happened; what is known of one of them stays."""

    def begin(self, call: Call, run: Run, ttl: timedelta) -> Call:
        """Commit the intent to make the call, noting it if it is not; return it with all that is known.

        One that has a result is returned as it is.
        """

    def answer(self, call: Call, run: Run, result: CallResult) -> None:
        """Keep the result of a call that was begun, and tell it in the journal of the call's run. The first result stands."""

    def leave(self, call: Call, run: Run, trouble: str) -> None:
        """Note why a try brought no result, and tell it in the journal of the call's run."""

    def of(self, run: RunId) -> list[Call]:
        """Return the calls of a run, oldest first."""

    def left(self, sync: str) -> list[Call]:
        """Return the calls without a result that runs of the sync have left behind which are over, oldest first."""


class Webhook(Protocol):
    """Somebody who wants to be told."""

    def post(self, key: str, body: Mapping[str, JsonValue]) -> CallResult:
        """Tell them once, under an idempotency key.

        Raises `ReceiverUnavailable` or `RateLimited` where nobody can say what they made of it.
        """


class AlertStore(Protocol):
    """Runs that keep failing, and the incidents that they amount to: at most one of a sync is open.

    With each change of an incident the calls are noted that tell people of it, in the same transaction: whoever made it makes
    them, and no second one does.
    """

    def failed_in_a_row(self, run: RunId) -> int:
        """Return how many runs of the sync, up to this one, have failed or were partial since one succeeded.

        Runs that took another's outcome, that another has taken over, that take a publication back, that were called off or
        are not over do not count either way.
        """

    def raise_alert(self, run: Run, alert: Alert, telling: Telling, ttl: timedelta) -> Incident | None:
        """Begin the sync's incident, or let it reach a higher level, and tell so in the run's journal.

        None, and nothing is told, if it has reached that level already, or a later run has succeeded, so that the row is over.
        """

    def recover(self, run: Run, telling: Telling, ttl: timedelta) -> Incident | None:
        """End the sync's incident by a run that succeeded, and tell so in the run's journal.

        None if there is none, or a later run has failed.
        """

    def newest(self, sync: str) -> Incident | None:
        """Return the sync's incident, or the one that was over last."""


class BreakerStore(Protocol):
    """What all workers of a stage know together of the health of a supplier's host. Its instants are of its own clock."""

    def look(self, host: str, stage: str) -> Breaker:
        """Return the breaker; one that nobody has counted for is closed."""

    def count(self, host: str, stage: str, *, tries: int, failures: int, window: timedelta) -> Breaker:
        """Add tries, and return the breaker with all that were counted within the window."""

    def open(self, host: str, stage: str, *, open_for: timedelta, reason: str, probe: datetime | None = None) -> Breaker | None:
        """Leave the supplier alone from now on: a closed breaker opens, or one that `probe` failed on opens again.

        None, and nothing is changed, if somebody else opened it, or makes the one try by now.
        """

    def claim_probe(self, host: str, stage: str, within: timedelta) -> Breaker | None:
        """Take the one try after a rest; its `probed_until` says which it is, and when another worker may have it instead.

        None if the rest is not over, or somebody else makes the try.
        """

    def close(self, host: str, stage: str, probe: datetime) -> Breaker | None:
        """Let all tries pass again, counting anew; None if another worker has the one try by now."""


class RateStore(Protocol):
    """The slots for requests to a supplier's host, shared by all workers of a stage."""

    def reserve(self, host: str, stage: str, *, spacing: timedelta, patience: timedelta) -> timedelta:
        """Take the next free slot, `spacing` behind the last one, and return how far off it is.

        Raises `RateLimited`, and takes none, if it is further off than `patience`.
        """


@dataclass(frozen=True)
class SealedToken:
    """An access token that only who knows the client's secret can read."""

    sealed: bytes = field(repr=False)
    good_for: timedelta | None
    """How long it may still be used; None: until it is refused."""


class AccessTokenStore(Protocol):
    """The access tokens that all workers share, one for each client; by the store's own clock."""

    def get(self, client: str) -> SealedToken | None:
        """Return the client's token; None if there is none, or its time is over."""

    def renew(
        self, client: str, *, is_spent: Callable[[bytes], bool], ask: Callable[[], SealedToken], patience: timedelta
    ) -> SealedToken:
        """Return a token that is not spent: the one another worker has got meanwhile, or what `ask` returns.

        One worker at a time asks for a client's token, and the others wait for it; whoever dies, or takes longer than
        `patience`, keeps nobody from asking. What `ask` raises passes, and changes nothing.
        """
