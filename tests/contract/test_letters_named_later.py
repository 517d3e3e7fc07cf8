"""The contract of `DeadLetterStore` where a redrive tells the key of what nobody could name before."""

from datetime import timedelta

import pytest

from sluice.model.base import ShardKey
from sluice.model.reject import DeadLetter, DeadLetterStatus, Reject
from sluice.model.run import Mode, Redrive, Run
from sluice.model.shard import Shard
from tests.contract.conftest import Stores
from tests.support.nouns import POLICY, a_reject, a_run, an_actor, plans

PARIS = ShardKey("paris")
ALL = Redrive()
HOUR = timedelta(hours=1)


def hashed(key: str | None, raw: str, frame: int = 0, artifact: str = "raw-0") -> Reject:
    """Return a reject whose bytes have a hash."""
    return a_reject(key, frame, artifact).model_copy(update={"raw_hash": raw * 32})


def opened(stores: Stores, number: int, **changes: object) -> tuple[Run, Shard]:
    """Return a run of its own hour, and its shard, claimed."""
    began = a_run().created_at + number * HOUR
    run = stores.runs.open(a_run(f"run-{number}", request_key=str(number), created_at=began, **changes), POLICY)
    stores.shards.plan(run, plans(PARIS), {})
    return run, stores.shards.claim(run.id, PARIS)


def redriving(stores: Stores) -> tuple[Run, Shard]:
    """Return a redrive that has taken up all letters, and its shard."""
    run, shard = opened(stores, 9, mode=Mode.REDRIVE, redrives=ALL)
    found = stores.redrives.letters(run, PARIS, None, 9)
    stores.redrives.take_up(shard, {letter.id: letter.reject.raw_hash or "" for letter in found})
    return run, shard


def letters(stores: Stores) -> list[DeadLetter]:
    """Return the open letters, by number."""
    return sorted(stores.letter_desk.selected("hotels", ALL, 9), key=lambda letter: letter.id)


def test_it_stays_one_letter_and_has_its_key(stores: Stores) -> None:
    """One attempt more, however often that is told; what is not rejected is closed, and it is not."""
    run, paris = opened(stores, 1)
    stores.dead_letters.record(run, paris, [hashed(None, "a"), hashed(None, "b", 1)], "rejects-0")
    first = letters(stores)[0]
    again, shard = redriving(stores)
    for _ in range(2):
        stores.dead_letters.record(again, shard, [hashed("h1", "a", 5, "raw-9")], "rejects-9")
        assert [(x.id, x.reject.key, x.attempts) for x in letters(stores)] == [(first.id, "h1", 2), (first.id + 1, None, 1)]
    assert stores.redrives.close(again, [PARIS], [], []) == 1
    (left,) = letters(stores)
    assert (left.id, left.first_seen, left.delivered_at) == (first.id, first.first_seen, first.delivered_at)


@pytest.mark.parametrize("is_newer", [True, False])
def test_of_two_letters_of_one_object_the_newer_stays(stores: Stores, is_newer: bool) -> None:
    """The other one is closed, and says why; that holds though the redrive is turned down."""
    for number, (key, raw) in enumerate([("h1", "b"), (None, "a")] if is_newer else [(None, "a"), ("h1", "b")], start=1):
        run, paris = opened(stores, number)
        stores.dead_letters.record(run, paris, [hashed(key, raw, artifact=f"raw-{number}")], f"rejects-{number}")
    older, newer = letters(stores)
    again, shard = redriving(stores)
    in_vain = [hashed("h1", "a", 0, "raw-9"), hashed("h1", "b", 1, "raw-9")]
    for rejects in (in_vain, in_vain[::-1]):
        stores.dead_letters.record(again, shard, rejects, "rejects-9")
        (left,) = letters(stores)
        assert (left.id, left.reject.key, left.attempts) == (newer.id, "h1", 2)
        assert left.reject.raw_hash == newer.reject.raw_hash
    gone = stores.letter_desk.get(older.id)
    assert (gone.status, gone.ended_by, gone.reason) == (
        DeadLetterStatus.CLOSED,
        again.id,
        "another letter is of the same object",
    )


def test_two_that_nobody_could_name_are_of_one_object(stores: Stores) -> None:
    """The newer one of them stays."""
    for number, raw in enumerate("ab", start=1):
        run, paris = opened(stores, number)
        stores.dead_letters.record(run, paris, [hashed(None, raw, artifact=f"raw-{number}")], f"rejects-{number}")
    ids = [letter.id for letter in letters(stores)]
    again, shard = redriving(stores)
    stores.dead_letters.record(again, shard, [hashed("h1", "b", 0, "raw-9"), hashed("h1", "a", 1, "raw-9")], "rejects-9")
    assert [(x.id, x.reject.key, x.attempts) for x in letters(stores)] == [(ids[1], "h1", 2)]


def test_what_was_given_up_meanwhile_has_no_letter_of_its_key(stores: Stores) -> None:
    """Nor does what a person has discarded come again under its name."""
    run, paris = opened(stores, 1)
    stores.dead_letters.record(run, paris, [hashed(None, "a")], "rejects-0")
    again, shard = redriving(stores)
    stores.letter_desk.discard("hotels", ALL, an_actor("not for sale"))
    stores.dead_letters.record(again, shard, [hashed("h1", "a", 5, "raw-9")], "rejects-9")
    assert letters(stores) == []
