"""Access tokens in memory."""

import threading
from collections.abc import Callable
from datetime import datetime, timedelta

from sluice.errors import StateUnavailable
from sluice.ports import SealedToken
from tests.unit.fakes.clock import FakeClock


class MemoryAccessTokenStore:
    """The port `AccessTokenStore`. It can be out of reach."""

    def __init__(self, clock: FakeClock, *, is_away: bool = False) -> None:
        self.clock = clock
        self.is_away = is_away
        self.sealed: dict[str, tuple[bytes, datetime | None]] = {}
        self._asking = threading.Lock()

    def get(self, client: str) -> SealedToken | None:
        """Return the client's token."""
        if self.is_away:
            raise StateUnavailable
        sealed, until = self.sealed.get(client, (b"", self.clock.now()))
        good_for = None if until is None else until - self.clock.now()
        return None if good_for is not None and good_for <= timedelta(0) else SealedToken(sealed, good_for)

    def renew(
        self, client: str, *, is_spent: Callable[[bytes], bool], ask: Callable[[], SealedToken], patience: timedelta
    ) -> SealedToken:
        """Return a token that is not spent."""
        del patience  # nobody dies here while he asks
        with self._asking:
            known = self.get(client)
            if known is not None and not is_spent(known.sealed):
                return known
            new = ask()
            self.sealed[client] = (new.sealed, None if new.good_for is None else self.clock.now() + new.good_for)
            return new
