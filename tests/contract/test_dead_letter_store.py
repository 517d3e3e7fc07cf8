"""The contract of `DeadLetterStore`."""

import pytest

from sluice.errors import Fenced
from sluice.model.base import ObjectKey, ShardKey
from sluice.model.lifecycle import Step
from sluice.model.reject import DeadLetterStatus
from sluice.model.run import Redrive, Run
from sluice.model.shard import Shard
from tests.contract.conftest import Stores
from tests.support.nouns import MINUTE, POLICY, a_reject, a_run, plans

PARIS = ShardKey("paris")


@pytest.fixture
def run(stores: Stores) -> Run:
    """A run."""
    return stores.runs.open(a_run(), POLICY)


@pytest.fixture
def paris(stores: Stores, run: Run) -> Shard:
    """A shard of the run that somebody works on."""
    return claimed(stores, run, PARIS)


def claimed(stores: Stores, run: Run, key: ShardKey) -> Shard:
    """Return a shard of a run, claimed."""
    stores.shards.plan(run, plans(key), {})
    return stores.shards.claim(run.id, key)


def test_a_reject_opens_a_dead_letter_with_its_address(stores: Stores, run: Run, paris: Shard) -> None:
    """Object, rule and bytes can be found again."""
    stores.dead_letters.record(run, paris, [a_reject("h1")], "rejects-0")
    (letter,) = stores.letter_desk.selected("hotels", Redrive(), 10)
    assert (letter.sync, letter.run, letter.shard, letter.reject) == ("hotels", run.id, PARIS, a_reject("h1"))
    assert (letter.attempts, letter.status, letter.first_seen) == (1, DeadLetterStatus.OPEN, letter.last_seen)


def test_recording_the_same_delivery_again_changes_nothing(stores: Stores, run: Run, paris: Shard) -> None:
    """A transformer that is tried again counts nothing twice, keys or no keys."""
    rejects = [a_reject("h1"), a_reject(None, frame=1)]
    stores.dead_letters.record(run, paris, rejects, "rejects-0")
    before = stores.letter_desk.selected("hotels", Redrive(), 10)
    stores.dead_letters.record(run, paris, rejects, "rejects-0")
    assert stores.letter_desk.selected("hotels", Redrive(), 10) == before
    assert len(before) == 2


def test_a_new_delivery_of_an_open_object_is_one_more_attempt(stores: Stores, run: Run, paris: Shard) -> None:
    """The letter tells the latest error and address, and since when the object is wrong."""
    stores.dead_letters.record(run, paris, [a_reject("h1")], "rejects-0")
    (first,) = stores.letter_desk.selected("hotels", Redrive(), 10)
    later = stores.runs.open(a_run("run-2", request_key="2"), POLICY)
    again = a_reject("h1", artifact="raw-1", message="name: missing")
    stores.dead_letters.record(later, claimed(stores, later, ShardKey("rome")), [again], "rejects-0")
    (letter,) = stores.letter_desk.selected("hotels", Redrive(), 10)
    assert (letter.id, letter.attempts, letter.reject, letter.run, letter.shard) == (first.id, 2, again, "run-2", "rome")
    assert first.first_seen == letter.first_seen <= letter.last_seen


def test_one_object_twice_in_a_delivery_is_one_letter(stores: Stores, run: Run, paris: Shard) -> None:
    """The later of the two stands."""
    stores.dead_letters.record(run, paris, [a_reject("h1"), a_reject("h1", frame=5)], "rejects-0")
    (letter,) = stores.letter_desk.selected("hotels", Redrive(), 10)
    assert (letter.attempts, letter.reject.address.frame) == (1, 5)


def test_closing_counts_what_was_open_and_a_later_reject_opens_anew(stores: Stores, run: Run, paris: Shard) -> None:
    """An object that came right and goes wrong again has a new letter."""
    stores.dead_letters.record(run, paris, [a_reject("h1"), a_reject("h2", frame=1), a_reject(None, frame=2)], "rejects-0")
    rates = stores.runs.open(a_run("run-2", sync="rates", request_key="2"), POLICY)
    assert stores.dead_letters.close(run, [ObjectKey("h1"), ObjectKey("h3")]) == 1
    assert stores.dead_letters.close(run, [ObjectKey("h1")]) == 0
    assert stores.dead_letters.close(rates, [ObjectKey("h2")]) == 0
    assert stores.dead_letters.close(run, []) == 0
    stores.dead_letters.record(run, paris, [a_reject("h1", frame=9)], "rejects-0")
    letters = {letter.reject.key: letter for letter in stores.letter_desk.selected("hotels", Redrive(), 10)}
    assert set(letters) == {"h1", "h2", None}
    assert letters[ObjectKey("h1")].attempts == 1


def test_open_letters_come_newest_first_up_to_a_limit(stores: Stores, run: Run, paris: Shard) -> None:
    """The list is of one sync."""
    for number in range(3):
        stores.dead_letters.record(run, paris, [a_reject(f"h{number}", frame=number)], "rejects-0")
    assert [letter.reject.key for letter in stores.letter_desk.selected("hotels", Redrive(), 2)] == ["h2", "h1"]
    assert stores.letter_desk.selected("rates", Redrive(), 10) == []


def test_what_the_supplier_sent_cannot_keep_a_letter_from_being_written(stores: Stores, run: Run, paris: Shard) -> None:
    """A message with a NUL byte or half a surrogate pair is kept as text."""
    stores.dead_letters.record(run, paris, [a_reject("h1", message="name: \x00 and \ud800")], "rejects-0")
    (letter,) = stores.letter_desk.selected("hotels", Redrive(), 10)
    assert letter.reject.message.startswith("name: ")


def test_no_rejects_are_no_letters(stores: Stores, run: Run, paris: Shard) -> None:
    """A clean chunk writes nothing."""
    stores.dead_letters.record(run, paris, [], "rejects-0")
    assert stores.letter_desk.selected("hotels", Redrive(), 10) == []


def test_who_has_lost_the_shard_opens_no_letter(stores: Stores, run: Run, paris: Shard) -> None:
    """What its successor has noted of an object stands."""
    present = stores.shards.claim(run.id, PARIS)
    stores.dead_letters.record(run, present, [a_reject("h1", frame=2)], "rejects-0")
    before = stores.letter_desk.selected("hotels", Redrive(), 10)
    with pytest.raises(Fenced):
        stores.dead_letters.record(run, paris, [a_reject("h1")], "rejects-0")
    assert stores.letter_desk.selected("hotels", Redrive(), 10) == before


def test_who_has_lost_the_run_closes_no_letter(stores: Stores, run: Run, paris: Shard) -> None:
    """An object that somebody has rejected since stays a dead letter."""
    stores.dead_letters.record(run, paris, [a_reject("h1")], "rejects-0")
    present = stores.runs.enter(run.id, Step.PUBLISH, MINUTE)
    with pytest.raises(Fenced):
        stores.dead_letters.close(run, [ObjectKey("h1")])
    assert len(stores.letter_desk.selected("hotels", Redrive(), 10)) == 1
    assert stores.dead_letters.close(present, [ObjectKey("h1")]) == 1
