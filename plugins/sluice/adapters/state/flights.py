"""Flights and fences: inside a transaction, a run or a token goes in; it returns if the writer may go on, and raises if not.

Every change of a token locks the lease first, and so does every write that depends on one: what `still_run` and `still_shard`
have found holds until the transaction ends. Only a run's row that nobody can read is given a newer token without that.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Final

import psycopg
from psycopg.rows import DictRow

from sluice.adapters.queries import Queries
from sluice.errors import CalledOff, Fenced, FlightTaken, NotFound
from sluice.guard import takeover
from sluice.model.base import RunId, ShardKey, Token

_SQL: Final = Queries(__package__, "lease.sql")

Connection = psycopg.Connection[DictRow]


def take(connection: Connection, run: RunId, ttl: timedelta | None = None) -> None:
    """Give the run its request's flight, or raise `FlightTaken`; `Fenced` if another has taken over from it, and may be done.

    Without a ttl: for as long as the run was opened with. `CalledOff` if a person has cancelled it.
    """
    holder = _hold(connection, run, ttl)
    over = connection.execute(_SQL["over"], {"run": run, "error": takeover.TAKEN_OVER}).fetchone()
    if over is not None and over["is_called_off"]:
        raise CalledOff(f"run {run} is over: {over['failure_message']}", run=run)
    if holder is not None:
        raise FlightTaken(
            f"run {holder['owner']} of the same request is alive; its lease ends at {holder['expires_at']:%Y-%m-%dT%H:%M:%SZ}",
            owner=holder["owner"],
            expires_at=holder["expires_at"],
        )
    if over is not None:
        raise Fenced(f"run {run} is over: {over['failure_message']}", run=run)


@contextmanager
def locked(connection: Connection, run: RunId) -> Iterator[None]:
    """Lock the flight of the run's request, whoever has it, and leave it as it is: for who does not work, but acts by hand."""
    if connection.execute(_SQL["lock"], {"run": run}).fetchone() is None:
        raise NotFound(f"there is no run {run}: `sluice runs` lists them", run=run)
    yield
    connection.execute(_SQL["unlock"], {"run": run})


def release(connection: Connection, run: RunId) -> None:
    """Give the flight back, if the run has it."""
    connection.execute(_SQL["release"], {"run": run})


def still_run(connection: Connection, run: RunId, token: Token, ttl: timedelta | None = None) -> None:
    """Extend the run's flight; raise `Fenced` unless `token` is the run's and nobody else has the flight."""
    _extend(connection, run, ttl)
    _compare(connection, "run_token", {"run": run}, token, f"run {run}")


def keep(connection: Connection, run: RunId) -> bool:
    """Give a flight that was just extended back if the run ended, or began to wait, before that; else return True."""
    return connection.execute(_SQL["release_unless_running"], {"run": run}).rowcount == 0


def hold_out(connection: Connection, run: RunId, silence: timedelta) -> None:
    """Keep a flight that was just extended for so long, even if somebody extends it by less meanwhile."""
    connection.execute(_SQL["hold_out"], {"run": run, "silence": silence})


def still_shard(connection: Connection, run: RunId, shard: ShardKey, token: Token, ttl: timedelta | None = None) -> None:
    """Extend the run's flight; raise `Fenced` unless `token` is the shard's and nobody else has the flight."""
    _extend(connection, run, ttl)
    _compare(connection, "shard_token", {"run": run, "shard": shard}, token, f"shard {shard} of run {run}")


def _hold(connection: Connection, run: RunId, ttl: timedelta | None) -> DictRow | None:
    """Return None if the run has the flight now, else who has it; his lease is locked all the same, so he keeps it."""
    if connection.execute(_SQL["hold"], {"run": run, "ttl": ttl}).fetchone() is not None:
        return None
    holder = connection.execute(_SQL["holder"], {"run": run}).fetchone()
    if holder is None:
        raise NotFound(f"there is no run {run}: `sluice runs` lists them", run=run)
    return holder


def _extend(connection: Connection, run: RunId, ttl: timedelta | None) -> None:
    holder = _hold(connection, run, ttl)
    if holder is not None:
        raise Fenced(f"run {holder['owner']} works on the request of run {run} now", owner=holder["owner"])


def _compare(connection: Connection, query: str, facts: dict[str, Any], token: Token, what: str) -> None:
    row = connection.execute(_SQL[query], facts).fetchone()
    if row is None:
        raise NotFound(f"there is no {what}", **facts)
    if row["token"] != token:
        raise Fenced(f"{what} was taken over: it holds token {row['token']}, not {token}", token=row["token"])
