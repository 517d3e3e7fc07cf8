"""A journal that is written by several at a time, and read meanwhile: nobody who follows it misses an event."""

import threading
from collections.abc import Iterator

import pytest

from sluice.adapters.postgres import Database
from sluice.adapters.state import PostgresEventReader, PostgresRunStore, journal
from sluice.errors import StateUnavailable
from sluice.model.base import RunId, ShardKey
from sluice.ports import ConnectionInfo
from tests.support.nouns import POLICY, a_run

RUN = RunId("run-1")


@pytest.fixture
def state(database: ConnectionInfo) -> Iterator[Database]:
    """A state with a run in it."""
    opened = Database(database, StateUnavailable)
    PostgresRunStore(opened).open(a_run(), POLICY)
    yield opened
    opened.close()


def test_who_follows_sees_no_number_before_all_lower_ones(state: Database) -> None:
    """Of two transactions that overlap, the second to note an event waits for the first, however quick it is itself."""
    reader = PostgresEventReader(state)
    waits, done = threading.Event(), threading.Event()

    def note_second() -> None:
        with state.transaction() as connection:
            waits.set()
            journal.note_shard(connection, RUN, ShardKey("second"), "claim", "running")
        done.set()

    second = threading.Thread(target=note_second)
    with state.transaction() as connection:
        journal.note_shard(connection, RUN, ShardKey("first"), "claim", "running")
        second.start()
        assert waits.wait(10)
        _until_somebody_waits_for_a_lock(state)
        assert reader.after(RUN, 1, 9) == []
        assert not done.is_set()
    second.join(10)
    assert [(event.seq, event.name) for event in reader.after(RUN, 1, 9)] == [(2, "first"), (3, "second")]


def test_a_number_that_was_rolled_back_is_given_out_again(state: Database) -> None:
    """A transaction that comes to nothing leaves no gap for whoever follows to wait for."""
    with state.transaction() as connection:
        journal.note_shard(connection, RUN, ShardKey("lost"), "claim", "running")
        connection.rollback()
    with state.transaction() as connection:
        journal.note_shard(connection, RUN, ShardKey("kept"), "claim", "running")
    assert [(event.seq, event.name) for event in PostgresEventReader(state).after(RUN, 1, 9)] == [(2, "kept")]


def test_many_writers_and_one_who_follows(state: Database) -> None:
    """Events of several threads, read a few at a time while they are written, come each once and in order."""
    writers, each = 4, 25

    def write(writer: int) -> None:
        for number in range(each):
            with state.transaction() as connection:
                journal.note_shard(connection, RUN, ShardKey(f"{writer}-{number}"), "claim", "running")

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(writers)]
    for thread in threads:
        thread.start()
    reader, seen = PostgresEventReader(state), [1]
    while len(seen) <= writers * each and (any(thread.is_alive() for thread in threads) or reader.after(RUN, seen[-1], 1)):
        seen += [event.seq for event in reader.after(RUN, seen[-1], 7)]
    assert seen == list(range(1, writers * each + 2))


def _until_somebody_waits_for_a_lock(state: Database) -> None:
    waiting = "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
    while True:
        with state.transaction() as connection:
            if connection.execute(waiting).fetchone() is not None:
                return
