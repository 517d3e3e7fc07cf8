"""The published table and its ledger, against a real Postgres: diffs, publications, fences."""

from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from io import BytesIO

import psycopg
import pyarrow as pa
import pytest

from sluice.adapters.ledger.store import PostgresLedger
from sluice.adapters.postgres import Database, conninfo
from sluice.adapters.targets.arrow_copy import read_parquet
from sluice.adapters.targets.postgres import PostgresTarget
from sluice.errors import ApprovalVoid, Fenced, LedgerMoved, TargetMismatch, TargetUnavailable
from sluice.model.artifact import ArtifactKind
from sluice.model.base import ObjectKey, ShardKey, Token
from sluice.model.ledger import Outcome, Publication
from sluice.model.lifecycle import Verdict
from sluice.model.spec import SyncSpec
from sluice.ports import ConnectionInfo, DiffCounts, DiffScope
from tests.support.nouns import a_pointer, a_review, a_run
from tests.support.rows import hash_of, rows_artifact, spec_of_places

SHARD = ShardKey("all")
PATIENCE = timedelta(minutes=5)


class Shop:
    """One target, driven the way a run drives it."""

    def __init__(self, info: ConnectionInfo, spec: SyncSpec) -> None:
        self.info = info
        self.spec = spec
        self.database = Database(info, TargetUnavailable)
        self.target = PostgresTarget(self.database, spec)
        self.ledger = PostgresLedger(self.database)

    def close(self) -> None:
        self.database.close()

    def diff(self, artifact: bytes, *, complete: bool = False, version: int = 1) -> tuple[bytes, DiffCounts]:
        with self.target.diffing() as diffing:
            diffing.stage(SHARD, 0, artifact)
            diffing.compare(DiffScope(complete=complete, transformer_version=version))
            diff = BytesIO()
            diffing.write_diff(diff)
            return diff.getvalue(), diffing.counts()

    def publish(self, diff: bytes, artifact: bytes, token: int, *, with_deletes: bool = True) -> Publication:
        run = a_run(f"run-{token}", sync=self.spec.sync, token=Token(token))
        review = a_review(f"review-{token}", run=run.id, verdict=Verdict.AUTO_APPROVED, sync=self.spec.sync)
        with self.target.publishing(Token(token), PATIENCE) as publishing:
            for shard, seq in publishing.load(BytesIO(diff), with_deletes=with_deletes):
                publishing.load_rows(shard, seq, artifact)
            return publishing.apply(run, review, a_pointer(run.id, kind=ArtifactKind.UNDO))

    def bring(self, objects: list[tuple[str, int | None, str]], token: int, *, complete: bool = False) -> Publication:
        artifact = rows_artifact(objects)
        return self.publish(self.diff(artifact, complete=complete)[0], artifact, token)

    def rows(self, query: str) -> list[tuple[object, ...]]:
        with psycopg.connect(conninfo(self.info)) as connection:
            return connection.execute(query).fetchall()

    def live(self) -> dict[object, object]:
        return dict(self.rows("select id, name from shop.places where _sluice_deleted_at is null"))


@pytest.fixture
def shop(database: ConnectionInfo) -> Iterator[Shop]:
    with closing(Shop(database, spec_of_places())) as shop:
        yield shop


def test_first_load_creates_table_rows_ledger_and_events(shop: Shop) -> None:
    """A first publication creates the table with its comments, and tells every object in ledger and events."""
    publication = shop.bring([("b", 1, "B"), ("a", 1, "A")], token=1)

    assert shop.live() == {"a": "A", "b": "B"}
    assert publication.counts == {Outcome.CREATED: 2}
    known = shop.ledger.object("places", ObjectKey("a"))
    assert known is not None
    assert (known.row_hash, known.source_version, known.publication) == (hash_of("a", "A"), 1, publication.id)
    assert [event.outcome for event in shop.ledger.events("places", ObjectKey("a"))] == [Outcome.CREATED]
    assert shop.rows("select col_description('shop.places'::regclass, 1)") == [("The supplier's id.",)]


def test_what_did_not_change_is_no_part_of_the_diff(shop: Shop) -> None:
    """The same objects again give an empty diff, and count as unchanged."""
    shop.bring([("a", 1, "A"), ("b", 1, "B")], token=1)
    diff, counts = shop.diff(rows_artifact([("a", 1, "A"), ("b", 1, "B")]))

    assert read_parquet(diff).num_rows == 0
    assert (counts.seen, counts.unchanged, counts.live_before, dict(counts.outcomes)) == (2, 2, 2, {})


def test_older_versions_are_stale_and_equal_ones_with_other_content_change(shop: Shop) -> None:
    """Older never overwrites newer; the same version with different content is a change."""
    shop.bring([("a", 5, "five"), ("b", 5, "five")], token=1)
    diff, counts = shop.diff(rows_artifact([("a", 3, "three"), ("b", 5, "other")]))

    assert dict(counts.outcomes) == {Outcome.CHANGED: 1, Outcome.STALE: 1}
    shop.publish(diff, rows_artifact([("a", 3, "three"), ("b", 5, "other")]), token=2)
    assert shop.live() == {"a": "five", "b": "other"}
    assert [event.outcome for event in shop.ledger.events("places", ObjectKey("a"))] == [Outcome.CREATED, Outcome.STALE]


def test_absence_is_deletion_only_where_everything_was_seen(shop: Shop) -> None:
    """A partial run deletes nothing; a complete one takes the absent object out softly, and it can come back."""
    shop.bring([("a", 1, "A"), ("b", 1, "B")], token=1)
    assert dict(shop.diff(rows_artifact([("a", 1, "A")]))[1].outcomes) == {}

    gone = shop.bring([("a", 1, "A")], token=2, complete=True)
    assert (gone.counts, shop.live()) == ({Outcome.DELETED: 1}, {"a": "A"})
    back = shop.bring([("a", 1, "A"), ("b", 1, "B")], token=3, complete=True)
    assert (back.counts, shop.live()) == ({Outcome.REAPPEARED: 1}, {"a": "A", "b": "B"})


def test_a_rejected_object_is_not_absent(shop: Shop) -> None:
    """An object that was delivered in a form nobody could take in stays as it is."""
    shop.bring([("a", 1, "A"), ("b", 1, "B")], token=1)
    with shop.target.diffing() as diffing:
        diffing.stage(SHARD, 0, rows_artifact([("a", 1, "A")]))
        diffing.stage_rejected([ObjectKey("b")])
        diffing.compare(DiffScope(complete=True, transformer_version=1))
        assert dict(diffing.counts().outcomes) == {Outcome.REJECTED: 1}


def test_deletions_can_be_left_out(shop: Shop) -> None:
    """An approval without deletions writes all but them."""
    shop.bring([("a", 1, "A"), ("b", 1, "B")], token=1)
    artifact = rows_artifact([("a", 2, "A2")])
    diff, _ = shop.diff(artifact, complete=True)
    assert shop.publish(diff, artifact, 2, with_deletes=False).counts == {Outcome.CHANGED: 1}
    assert shop.live() == {"a": "A2", "b": "B"}


@pytest.mark.parametrize(("deletes", "left"), [("hard", [("a",)]), ("soft", [("a",), ("b",)])])
def test_deletions_are_hard_or_soft_as_declared(database: ConnectionInfo, deletes: str, left: list[tuple[str]]) -> None:
    """A hard deletion removes the row; a soft one marks it."""
    with closing(Shop(database, spec_of_places(deletes))) as shop:
        shop.bring([("a", 1, "A"), ("b", 1, "B")], token=1)
        shop.bring([("a", 1, "A")], token=2, complete=True)
        assert shop.rows("select id from shop.places order by id") == left


def test_of_one_object_delivered_twice_the_highest_version_wins(shop: Shop) -> None:
    """Duplicates resolve to the highest version, and at equal versions to the later place."""
    shop.bring([("a", 2, "newest"), ("a", 1, "oldest"), ("b", 1, "early"), ("b", 1, "late")], token=1)
    assert shop.live() == {"a": "newest", "b": "late"}


def test_an_older_token_is_fenced_and_changes_nothing(shop: Shop) -> None:
    """The target itself refuses a writer whose token is older than one it has seen."""
    shop.bring([("a", 1, "A")], token=7)
    artifact = rows_artifact([("a", 2, "zombie")])
    diff, _ = shop.diff(artifact)
    with pytest.raises(Fenced):
        shop.publish(diff, artifact, token=6)
    assert shop.live() == {"a": "A"}


def test_rows_that_are_not_the_reviewed_ones_void_the_approval(shop: Shop) -> None:
    """What is written must hash as what was reviewed; else nothing is written."""
    diff, _ = shop.diff(rows_artifact([("a", 1, "A"), ("b", 1, "B")]))
    with pytest.raises(ApprovalVoid):
        shop.publish(diff, rows_artifact([("a", 1, "A"), ("b", 1, "tampered")]), token=1)
    with pytest.raises(ApprovalVoid):
        shop.publish(diff, rows_artifact([("a", 1, "A")]), token=2)
    assert shop.rows("select to_regclass('shop.places')") == [(None,)]
    assert shop.rows("select count(*) from sluice_ledger.object") == [(0,)]


def test_a_ledger_that_moved_shrinks_the_approval(shop: Shop) -> None:
    """Between review and publication another run published: newer stays, the same is skipped, older gives way."""
    shop.bring([(key, 1, "old") for key in "abcd"], token=1)
    late = rows_artifact([("a", 2, "late"), ("b", 3, "late"), ("c", 2, "same")])
    diff, _ = shop.diff(late, complete=True)
    shop.bring([("a", 3, "early"), ("b", 2, "early"), ("c", 2, "same"), ("d", 2, "early")], token=2)

    publication = shop.publish(diff, late, token=3)
    assert publication.counts == {Outcome.CHANGED: 1, Outcome.STALE: 1}
    assert shop.live() == {"a": "early", "b": "late", "c": "same", "d": "early"}


def test_a_ledger_that_moved_without_versions_has_to_be_reviewed_again(shop: Shop) -> None:
    """Where no version tells which is newer, nothing is written."""
    shop.bring([("a", None, "old")], token=1)
    late = rows_artifact([("a", None, "late")])
    diff, _ = shop.diff(late)
    shop.bring([("a", None, "early")], token=2)
    with pytest.raises(LedgerMoved):
        shop.publish(diff, late, token=3)
    assert shop.live() == {"a": "early"}


def test_rows_left_out_for_a_ledger_that_forgot_are_asked_for(shop: Shop) -> None:
    """An artifact without rows whose objects turn out changed has to be mapped again."""
    shop.bring([("a", 1, "A")], token=1)
    with shop.target.diffing() as diffing:
        diffing.stage(SHARD, 4, rows_artifact([("a", 2, "B")], mapped=False))
        scope = DiffScope(complete=False, transformer_version=1)
        assert diffing.compare(scope) == [(SHARD, 4)]
        diffing.unstage(SHARD, 4)
        diffing.stage(SHARD, 4, rows_artifact([("a", 2, "B")]))
        assert diffing.compare(scope) == []


def test_what_a_row_has_outdone_counts_again_without_it(shop: Shop) -> None:
    """An older version of an object is what counts of it, once the chunk of the newer one is taken back."""
    with shop.target.diffing() as diffing:
        diffing.stage(SHARD, 4, rows_artifact([("a", 2, "newer")]))
        diffing.stage(SHARD, 5, rows_artifact([("a", 1, "older"), ("b", 1, "B")]))
        scope = DiffScope(complete=False, transformer_version=1)
        diffing.compare(scope)
        assert diffing.counts().seen == 2
        diffing.unstage(SHARD, 4)
        diffing.compare(scope)
        assert diffing.counts().seen == 2


def test_before_images_hold_what_is_overwritten(shop: Shop) -> None:
    """The undo artifact has the target's and the ledger's rows as they were."""
    shop.bring([("a", 1, "A"), ("b", 1, "B")], token=1)
    artifact = rows_artifact([("a", 2, 'say "hi"\n, ')])
    diff, _ = shop.diff(artifact, complete=True)
    with shop.target.publishing(Token(2), PATIENCE) as publishing:
        publishing.load(BytesIO(diff), with_deletes=True)
        images = BytesIO()
        number = publishing.before_images(images)
    table = read_parquet(images.getvalue())
    assert number == 2
    assert table["key"].to_pylist() == ["a", "b"]
    assert table["outcome"].to_pylist() == ["changed", "deleted"]
    assert '"name":"A"' in table["row"].to_pylist()[0]
    assert table.schema.field("ledger").type == pa.string()


@pytest.mark.parametrize("name", ["", "NULL", "\\N", '"', "a\tb", "a\r\nb", "\\.", "日本 🏨", ",", " "])
def test_text_arrives_as_it_was_sent(shop: Shop, name: str) -> None:
    """Nothing that CSV finds special is altered on the way into the table."""
    shop.bring([("a", 1, name)], token=1)
    assert shop.live() == {"a": name}


def test_a_table_that_does_not_fit_is_refused_with_its_mend(shop: Shop) -> None:
    """Each difference between table and spec is named with the statement that removes it."""
    with psycopg.connect(conninfo(shop.info)) as connection:
        connection.execute("create schema shop")
        connection.execute("create table shop.places (id text, name integer, extra text not null)")
    with pytest.raises(TargetMismatch) as refused:
        shop.target.check()
    assert refused.value.message.splitlines()[1:] == [
        'column name is integer, not text: alter table "shop"."places" alter column "name" type text using "name"::text',
        'column extra is not in the spec and takes no null: alter table "shop"."places" alter column "extra" drop not null',
        'no unique key on (id): alter table "shop"."places" add unique ("id")',
    ]


def test_columns_of_the_user_are_left_alone(shop: Shop) -> None:
    """A column the spec does not know keeps its values through a change of the row."""
    shop.bring([("a", 1, "A")], token=1)
    with psycopg.connect(conninfo(shop.info)) as connection:
        connection.execute("alter table shop.places add column note text")
        connection.execute("update shop.places set note = 'mine'")
    shop.bring([("a", 2, "A2")], token=2)
    assert shop.rows("select name, note from shop.places") == [("A2", "mine")]


def test_a_publication_that_falls_silent_lets_the_others_through(shop: Shop) -> None:
    """The server ends its transaction and gives the lock back; the silent one finds out, and has written nothing."""
    shop.bring([("a", 1, "A")], token=1)
    artifact = rows_artifact([("a", 2, "silent")])
    diff, _ = shop.diff(artifact)
    silent = shop.target.publishing(Token(2), timedelta(milliseconds=50))
    publishing = silent.__enter__()
    publishing.load(BytesIO(diff), with_deletes=True)
    # Waits for the lock, which nobody but the server can take from the silent one.
    shop.bring([("a", 3, "successor")], token=3)
    with pytest.raises(psycopg.Error, match="idle-in-transaction") as refused:
        publishing.load_rows(SHARD, 0, artifact)
    with pytest.raises(TargetUnavailable):
        silent.__exit__(type(refused.value), refused.value, None)
    assert shop.live() == {"a": "successor"}
