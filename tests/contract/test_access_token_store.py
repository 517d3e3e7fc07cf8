"""The contract of `AccessTokenStore`."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import timedelta

import pytest

from sluice.adapters.postgres import Database
from sluice.adapters.state import PostgresAccessTokenStore
from sluice.errors import StateUnavailable, SupplierRefused
from sluice.ports import AccessTokenStore, ConnectionInfo, SealedToken
from tests.unit.fakes.access_token_store import MemoryAccessTokenStore
from tests.unit.fakes.clock import FakeClock

HOUR = timedelta(hours=1)
PATIENCE = timedelta(seconds=30)
FIRST, SECOND = SealedToken(b"first", HOUR), SealedToken(b"second", None)


@dataclass(frozen=True)
class Kept:
    """A store, and a way to let its tokens grow old."""

    store: AccessTokenStore
    let_pass: Callable[[timedelta], None]

    def renew(self, *spent: bytes, new: SealedToken = FIRST, client: str = "shop") -> SealedToken:
        """Renew a token unless there is one that is not spent."""
        return self.store.renew(client, is_spent=lambda sealed: sealed in spent, ask=lambda: new, patience=PATIENCE)


@pytest.fixture(params=["memory", "postgres"])
def kept(request: pytest.FixtureRequest) -> Iterator[Kept]:
    """A store without a token."""
    if request.param == "memory":
        clock = FakeClock()
        yield Kept(MemoryAccessTokenStore(clock), clock.move)
        return
    database = Database(request.getfixturevalue("database"), StateUnavailable)

    def let_pass(span: timedelta) -> None:
        with database.transaction() as connection:
            connection.execute("update sluice_state.access_token set expires_at = expires_at - %s", (span,))

    yield Kept(PostgresAccessTokenStore(database), let_pass)
    database.close()


@pytest.fixture(params=["memory", "postgres"])
def away(request: pytest.FixtureRequest) -> AccessTokenStore:
    """A store that cannot be reached."""
    if request.param == "memory":
        return MemoryAccessTokenStore(FakeClock(), is_away=True)
    info: ConnectionInfo = request.getfixturevalue("empty_database")
    return PostgresAccessTokenStore(Database(replace(info, port=1), StateUnavailable))


def test_a_token_is_asked_for_once(kept: Kept) -> None:
    """Where there is none one is asked for, and from then on everybody gets that one."""
    assert kept.store.get("shop") is None
    assert kept.renew() == FIRST
    again = kept.renew(new=SECOND)
    assert again.sealed == b"first"
    assert again.good_for is not None
    assert HOUR - timedelta(minutes=10) < again.good_for <= HOUR
    found = kept.store.get("shop")
    assert found is not None
    assert found.sealed == b"first"


def test_a_token_that_is_spent_is_replaced(kept: Kept) -> None:
    """The next one takes its place; whoever comes later with the old one gets the next one without asking."""
    kept.renew()
    assert kept.renew(b"first", new=SECOND) == SECOND
    assert kept.renew(b"first", new=FIRST) == SECOND
    assert kept.store.get("shop") == SECOND


def test_a_token_whose_time_is_over_is_none(kept: Kept) -> None:
    """It is neither found nor handed on; one without an end lasts until it is spent."""
    kept.renew()
    kept.let_pass(HOUR)
    assert kept.store.get("shop") is None
    assert kept.renew(new=SECOND) == SECOND
    kept.let_pass(1000 * HOUR)
    assert kept.store.get("shop") == SECOND


def test_clients_have_tokens_of_their_own(kept: Kept) -> None:
    """One client's token is nobody else's."""
    kept.renew()
    assert kept.store.get("other") is None
    assert kept.renew(new=SECOND, client="other") == SECOND


def test_what_asking_raises_changes_nothing(kept: Kept) -> None:
    """A supplier that refuses leaves what there was, and keeps nobody from asking."""

    def refuse() -> SealedToken:
        raise SupplierRefused("no")

    for known in (None, FIRST):
        with pytest.raises(SupplierRefused):
            kept.store.renew("shop", is_spent=lambda _: True, ask=refuse, patience=PATIENCE)
        found = kept.store.get("shop")
        assert (found and found.sealed) == (known and known.sealed)
        kept.renew()


def test_one_asks_and_the_others_wait_for_it(kept: Kept) -> None:
    """Of many who find no token at the same time one asks, and all have the same."""
    asked: list[int] = []
    all_are_there = threading.Barrier(4)

    def ask() -> SealedToken:
        asked.append(1)
        return FIRST

    def renew() -> bytes:
        all_are_there.wait()
        return kept.store.renew("shop", is_spent=lambda _: False, ask=ask, patience=PATIENCE).sealed

    with ThreadPoolExecutor(4) as threads:
        assert [each.result() for each in [threads.submit(renew) for _ in range(4)]] == [b"first"] * 4
    assert len(asked) == 1


def test_out_of_reach_is_not_without_a_token(away: AccessTokenStore) -> None:
    """Whoever cannot look does not take it for none."""
    with pytest.raises(StateUnavailable):
        away.get("shop")
    with pytest.raises(StateUnavailable):
        away.renew("shop", is_spent=lambda _: False, ask=lambda: FIRST, patience=PATIENCE)
