"""One suite for the ledger in memory and the one beside a table: what it answers about objects and publications."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import psycopg
import pytest
from psycopg.types.json import Jsonb

from sluice.adapters.ledger.store import PostgresLedger
from sluice.adapters.postgres import Database, conninfo
from sluice.errors import TargetUnavailable
from sluice.model.base import ObjectKey, PublicationId, ReviewId, RunId, ShardKey
from sluice.model.ledger import LedgerObject, ObjectState, Outcome, Publication
from sluice.ports import ConnectionInfo, Ledger
from tests.support.nouns import NOW
from tests.unit.fakes.ledger import MemoryLedger

PUBLICATION = Publication(
    id=PublicationId(1),
    sync="hotels",
    review=ReviewId("r1"),
    run=RunId("run-1"),
    counts={Outcome.CREATED: 3},
    approved_by="ada",
    applied_at=NOW,
)


@dataclass(frozen=True)
class Written:
    """A ledger, and how tests write it, since its port does not."""

    ledger: Ledger
    write: Callable[[str, str], None]
    """Lets a sync hold a live object of this key."""


def held(sync: str, key: str) -> LedgerObject:
    """Return what is written."""
    return LedgerObject(
        sync=sync,
        key=ObjectKey(key),
        shard=ShardKey("north"),
        raw_hash=b"r" * 16,
        row_hash=b"h" * 16,
        transformer_version=1,
        source_version=7,
        state=ObjectState.LIVE,
        first_seen=NOW,
        last_changed_run=RunId("run-1"),
        publication=PUBLICATION.id,
    )


@pytest.fixture(params=["memory", "postgres"])
def written(request: pytest.FixtureRequest) -> Iterator[Written]:
    """A ledger with one publication."""
    if request.param == "memory":
        memory = MemoryLedger()
        memory.published.append(PUBLICATION)
        yield Written(memory, lambda sync, key: memory.objects.update({(sync, ObjectKey(key)): held(sync, key)}))
        return
    info: ConnectionInfo = request.getfixturevalue("database")
    with psycopg.connect(conninfo(info), autocommit=True) as connection:
        connection.execute(
            "insert into sluice_ledger.publication (sync, review, run, counts, approved_by, applied_at)"
            " values ('hotels', 'r1', 'run-1', %s, 'ada', %s)",
            (Jsonb({"created": 3}), NOW),
        )

        def write(sync: str, key: str) -> None:
            columns = held(sync, key).model_dump()
            names = ", ".join(columns)
            places = ", ".join(f"%({name})s" for name in columns)
            connection.execute(f"insert into sluice_ledger.object ({names}) values ({places})".encode(), columns)

        database = Database(info, TargetUnavailable)
        yield Written(PostgresLedger(database), write)
        database.close()


def test_some_objects_are_asked_for_at_once(written: Written) -> None:
    """Those of the sync that are known; an object alone is the same."""
    written.write("hotels", "a")
    written.write("hotels", "b")
    written.write("flats", "c")
    keys = [ObjectKey("b"), ObjectKey("c"), ObjectKey("d")]
    assert written.ledger.known("hotels", keys) == {"b": held("hotels", "b")}
    assert written.ledger.object("hotels", ObjectKey("b")) == held("hotels", "b")
    assert written.ledger.known("hotels", []) == {}


def test_keys_around_one_come_in_the_order_of_their_bytes(written: Written) -> None:
    """As many on either side as are asked for, of the sync alone, and not itself."""
    for key in ("Z", "a", "aé", "az", "b"):
        written.write("hotels", key)
    written.write("flats", "ab")
    assert written.ledger.near("hotels", ObjectKey("az"), 2) == ["Z", "a", "aé", "b"]
    assert written.ledger.near("hotels", ObjectKey("ab"), 1) == ["a", "az"]
    assert written.ledger.near("hotels", ObjectKey("0"), 3) == ["Z", "a", "az"]
    assert written.ledger.near("rates", ObjectKey("a"), 3) == []


def test_a_publication_is_found_by_its_number_and_by_its_review(written: Written) -> None:
    """The same one; there is none of another number, nor one before the first."""
    found = written.ledger.publication(PUBLICATION.id)
    assert found == PUBLICATION == written.ledger.publication_of(ReviewId("r1"))
    assert written.ledger.publication(PublicationId(2)) is None
    assert written.ledger.publications("hotels", 9) == written.ledger.publications("hotels", 1, PublicationId(2)) == [found]
    assert written.ledger.publications("hotels", 9, PUBLICATION.id) == written.ledger.publications("flats", 9) == []
