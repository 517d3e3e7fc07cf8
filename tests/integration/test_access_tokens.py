"""Access tokens in Postgres: whoever asks for one and dies, or hangs, keeps nobody from asking."""

import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import psycopg
import pytest

from sluice.adapters.postgres import Database, conninfo
from sluice.adapters.state import PostgresAccessTokenStore
from sluice.errors import StateUnavailable, SupplierUnavailable
from sluice.ports import ConnectionInfo, SealedToken

TOKEN = SealedToken(b"sealed", None)
PATIENCE = timedelta(seconds=30)

HOLDER = """
    import sys
    from datetime import timedelta
    from sluice.adapters.postgres import Database
    from sluice.adapters.state import PostgresAccessTokenStore
    from sluice.errors import StateUnavailable
    from sluice.ports import ConnectionInfo

    host, port, login, password, name = sys.argv[1:]
    info = ConnectionInfo("sluice_state", "postgres", host or None, int(port), login, password, name, {})

    def ask():
        print("asking", flush=True)
        sys.stdin.read()

    store = PostgresAccessTokenStore(Database(info, StateUnavailable))
    store.renew("shop", is_spent=lambda _: True, ask=ask, patience=timedelta(minutes=5))
"""


@pytest.fixture
def store(database: ConnectionInfo) -> Iterator[PostgresAccessTokenStore]:
    """An empty store."""
    opened = Database(database, StateUnavailable)
    yield PostgresAccessTokenStore(opened)
    opened.close()


def renew(store: PostgresAccessTokenStore, patience: timedelta = PATIENCE) -> SealedToken:
    """Renew the token."""
    return store.renew("shop", is_spent=lambda _: False, ask=lambda: TOKEN, patience=patience)


def test_who_is_killed_while_asking_blocks_nobody(store: PostgresAccessTokenStore, database: ConnectionInfo) -> None:
    """The next one asks as soon as the process is gone."""
    where = [database.host or "", str(database.port), database.login or "", database.password or "", database.schema or ""]
    command = [sys.executable, "-c", textwrap.dedent(HOLDER), *where]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "asking\n"
        with ThreadPoolExecutor(1) as thread:
            waiting = thread.submit(renew, store)
            with psycopg.connect(conninfo(database), autocommit=True) as watcher:
                while not watcher.execute("select from pg_locks where not granted").fetchall():
                    assert not waiting.done()
            holder.kill()
            assert waiting.result(timeout=30) == TOKEN


def test_who_waits_too_long_is_told_so(store: PostgresAccessTokenStore) -> None:
    """A token that another worker asks for is waited for as long as asking may take, and no longer."""
    is_asking, may_end = threading.Event(), threading.Event()

    def ask() -> SealedToken:
        is_asking.set()
        may_end.wait(30)
        return TOKEN

    with ThreadPoolExecutor(1) as thread:
        holder = thread.submit(store.renew, "shop", is_spent=lambda _: True, ask=ask, patience=PATIENCE)
        is_asking.wait(30)
        with pytest.raises(SupplierUnavailable, match="another worker has been asking for an access token"):
            renew(store, timedelta(milliseconds=50))
        may_end.set()
        assert holder.result(timeout=30) == TOKEN


def test_who_hangs_loses_his_turn(store: PostgresAccessTokenStore) -> None:
    """The server ends the transaction of a worker that it hears nothing of, whose token then counts for nothing."""
    late = SealedToken(b"late", None)
    is_asking, others_have_asked = threading.Event(), threading.Event()

    def hang() -> SealedToken:
        is_asking.set()
        others_have_asked.wait(30)
        return late

    with ThreadPoolExecutor(1) as thread:
        holder = thread.submit(store.renew, "shop", is_spent=lambda _: True, ask=hang, patience=timedelta(milliseconds=200))
        is_asking.wait(30)
        assert renew(store) == TOKEN
        others_have_asked.set()
        with pytest.raises(StateUnavailable):
            holder.result(timeout=30)
    assert store.get("shop") == TOKEN
