"""The contract of `RedriveStore` and `LetterDesk`, and of what `DeadLetterStore` keeps beyond the letters of a cause."""

from collections.abc import Sequence

import pytest

from sluice.errors import Fenced, NotFound
from sluice.model.artifact import ArtifactKind
from sluice.model.audit import Act
from sluice.model.base import ObjectKey, ShardKey
from sluice.model.lifecycle import Step
from sluice.model.reject import Cause, Counted, DeadLetterStatus, RawAddress, Reject, Seen
from sluice.model.run import Mode, Redrive, Run, Window
from sluice.model.shard import Shard
from tests.contract.conftest import MOST_LETTERS, Stores
from tests.support.nouns import MINUTE, POLICY, a_pointer, a_reject, a_run, an_actor, plans

PARIS = ShardKey("paris")
STARS = Cause(error="out-of-range", field="stars")
ALL = Redrive()


@pytest.fixture
def run(stores: Stores) -> Run:
    """A run."""
    return stores.runs.open(a_run(), POLICY)


@pytest.fixture
def paris(stores: Stores, run: Run) -> Shard:
    """A shard of the run that somebody works on."""
    return claimed(stores, run)


def claimed(stores: Stores, run: Run) -> Shard:
    """Return the shard of a run, claimed."""
    stores.shards.plan(run, plans(PARIS), {})
    return stores.shards.claim(run.id, PARIS)


def later(stores: Stores, name: str = "run-2", **changes: object) -> Run:
    """Return another run."""
    return stores.runs.open(a_run(name, request_key=name, **changes), POLICY)


def hashed(key: str | None, frame: int = 0, raw: str = "0", artifact: str = "raw-0") -> Reject:
    """Return a reject whose bytes have a hash."""
    return a_reject(key, frame, artifact).model_copy(update={"raw_hash": raw * 32})


def many(number: int, artifact: str = "raw-0") -> list[Reject]:
    """Return so many rejects of one cause, each of an object of its own."""
    return [a_reject(f"h{place}", place, artifact) for place in range(number)]


def keys(stores: Stores) -> list[str | None]:
    """Return the objects with an open letter."""
    return sorted(str(letter.reject.key) for letter in stores.letter_desk.selected("hotels", Redrive(), 99))


def test_beyond_its_bound_a_cause_is_counted(stores: Stores, run: Run, paris: Shard) -> None:
    """The first objects have letters, the others are lines of the artifact; recording them again changes nothing."""
    other = a_reject("x", 9).model_copy(update={"field": "name"})
    for _ in range(2):
        stores.dead_letters.record(run, paris, [*many(5), other], "rejects-0")
        assert keys(stores) == ["h0", "h1", "h2", "x"]
        (rest,) = stores.dead_letters.lines("hotels")
        assert (rest.cause, rest.objects, rest.lines) == (STARS, 2, ((MOST_LETTERS, 5),))
        assert (rest.artifact, rest.raw_artifact, rest.run, rest.shard) == ("rejects-0", "raw-0", run.id, PARIS)
    groups = stores.letter_desk.groups("hotels")
    assert [(group.cause, group.objects, group.letters) for group in groups] == [
        (STARS, 5, 3),
        (Cause(error="out-of-range", field="name"), 1, 1),
    ]
    assert stores.letter_desk.groups("rates") == []


def counted(stores: Stores, number: int, rejects: Sequence[Reject]) -> list[Counted]:
    """Return where objects of the rest stand."""
    rest = stores.dead_letters.lines("hotels")[number]
    lines = [line for start, end in rest.lines for line in range(start, end)]
    return [Counted(rest.id, line, rejects[line].identity, rejects[line].raw_hash) for line in lines]


def test_what_comes_again_leaves_the_rest(stores: Stores, run: Run, paris: Shard) -> None:
    """Right or wrong; once all have, nothing is left of it. Telling it twice changes nothing."""
    stores.dead_letters.record(run, paris, many(6), "rejects-0")
    stands = counted(stores, 0, many(6))
    run = stores.runs.enter(run.id, Step.PUBLISH, MINUTE)
    for _ in range(2):
        stores.dead_letters.settle(run, [Seen("key h4"), Seen("key h0"), Seen("key z")], stands)
        assert stores.dead_letters.lines("hotels")[0].lines == ((3, 4), (5, 6))
    stores.dead_letters.settle(run, [Seen("key h3"), Seen("key h5")], stands)
    assert stores.dead_letters.lines("hotels") == []


def test_a_replay_takes_out_of_the_rest_what_is_its_own(stores: Stores, run: Run, paris: Shard) -> None:
    """Its data may be old."""
    stores.dead_letters.record(run, paris, many(4), "rejects-0")
    replay = later(stores, mode=Mode.REPLAY, replays="somebody")
    stores.dead_letters.settle(replay, [Seen("key h3")], counted(stores, 0, many(4)))
    assert len(stores.dead_letters.lines("hotels")) == 1


def test_who_has_lost_the_run_settles_nothing(stores: Stores, run: Run, paris: Shard) -> None:
    """Nor does it close what was not met."""
    stores.dead_letters.record(run, paris, many(4), "rejects-0")
    stores.runs.enter(run.id, Step.PUBLISH, MINUTE)
    for write in (
        lambda: stores.dead_letters.settle(run, [Seen("key h3")], counted(stores, 0, many(4))),
        lambda: stores.dead_letters.close_absent(run),
        lambda: stores.redrives.close(run, [PARIS], [], []),
    ):
        with pytest.raises(Fenced):
            write()
    assert stores.dead_letters.lines("hotels")[0].objects == 1


def test_what_a_run_that_saw_all_has_not_met_is_closed(stores: Stores, run: Run, paris: Shard) -> None:
    """What stands in chunks of its own is met, whoever has met it first."""
    raw, rejects = (a_pointer(shard=PARIS, kind=kind) for kind in (ArtifactKind.RAW, ArtifactKind.REJECTS))
    stores.dead_letters.record(run, paris, many(4), "elsewhere")
    own = [a_reject(f"m{place}", place, raw.key).model_copy(update={"field": "name"}) for place in range(4)]
    stores.dead_letters.record(run, paris, own, rejects.key)
    whole = later(stores, created_at=a_run().created_at.replace(year=2100))
    claimed(stores, whole)
    for pointer in (raw, rejects):
        stores.pointers.add(pointer.model_copy(update={"ref": pointer.ref.model_copy(update={"run": whole.id})}))
    assert stores.dead_letters.close_absent(whole) == 3
    assert (keys(stores), [rest.artifact for rest in stores.dead_letters.lines("hotels")]) == (
        ["m0", "m1", "m2"],
        [rejects.key],
    )
    closed = stores.letter_desk.of_object("hotels", ObjectKey("h0"), 9)[0]
    assert (closed.status, closed.ended_by, closed.reason) == (
        DeadLetterStatus.CLOSED,
        whole.id,
        "a run that saw all there is did not meet it",
    )


def test_bytes_tell_objects_without_a_key_apart(stores: Stores, run: Run, paris: Shard) -> None:
    """Delivered again, wherever they stand by then, they are one more attempt; other bytes are another letter."""
    stores.dead_letters.record(run, paris, [hashed(None, raw="a"), hashed(None, 1, raw="b")], "rejects-0")
    again = later(stores)
    stores.dead_letters.record(again, claimed(stores, again), [hashed(None, 7, raw="a", artifact="raw-1")], "rejects-1")
    found = {letter.reject.raw_hash: letter for letter in stores.letter_desk.selected("hotels", Redrive(), 9)}
    assert {raw: (letter.attempts, letter.run) for raw, letter in found.items()} == {
        "a" * 32: (2, again.id),
        "b" * 32: (1, run.id),
    }
    assert found["a" * 32].reject.address == RawAddress(artifact="raw-1", frame=7, index=2)


def test_the_same_bytes_under_another_version_are_one_more_attempt(stores: Stores, run: Run, paris: Shard) -> None:
    """The letter tells by which version, and what is wrong by that."""
    stores.dead_letters.record(run, paris, [hashed("h1")], "rejects-0")
    other = later(stores, transformer_version=2)
    worse = hashed("h1").model_copy(update={"message": "name: missing"})
    stores.dead_letters.record(other, claimed(stores, other), [worse], "rejects-1")
    (letter,) = stores.letter_desk.selected("hotels", Redrive(), 9)
    assert (letter.attempts, letter.transformer_version, letter.reject.message) == (2, 2, "name: missing")


def test_what_was_discarded_stays_so_with_the_same_bytes(stores: Stores, run: Run, paris: Shard) -> None:
    """Who gave it up, why, and how often it has come since is kept; other bytes open a letter."""
    stores.dead_letters.record(run, paris, [hashed("h1"), hashed(None, 1, "b")], "rejects-0")
    assert stores.letter_desk.discard("hotels", ALL, an_actor("closed for good")) == 2
    (told,) = stores.audit.of("hotels", None, 10)
    assert (told.act, told.by, told.facts["objects"]) == (Act.DISCARD, an_actor("closed for good"), 2)
    again = later(stores)
    shard = claimed(stores, again)
    stores.dead_letters.record(again, shard, [hashed("h1", 5), hashed(None, 6, "b")], "rejects-1")
    assert stores.letter_desk.selected("hotels", Redrive(), 9) == []
    given_up = stores.letter_desk.of_object("hotels", ObjectKey("h1"), 9)
    assert [(x.status, x.attempts, x.ended_by, x.reason) for x in given_up] == [
        (DeadLetterStatus.DISCARDED, 2, "ada", "closed for good")
    ]
    stores.dead_letters.record(again, shard, [hashed("h1", 7, "c")], "rejects-2")
    assert keys(stores) == ["h1"]


def test_what_was_discarded_of_the_rest_stays_so_too(stores: Stores, run: Run, paris: Shard) -> None:
    """Its new letter, or its new line, goes the same way; with other bytes it stays."""
    first = [hashed(f"h{place}", place, f"{place:x}") for place in range(6)]
    stores.dead_letters.record(run, paris, first, "rejects-0")
    assert stores.letter_desk.discard("hotels", Redrive(cause=str(STARS)), an_actor("nobody sells them")) == 6
    again = later(stores)
    second = [hashed(f"h{place}", place, f"{place % 5:x}", "raw-1") for place in range(6)]
    stores.dead_letters.record(again, claimed(stores, again), [second[3], second[5], *second], "rejects-1")
    rejects = [second[3], second[5], *second]
    seen = [Seen(r.identity, r.raw_hash, "rejects-1", line, r.address) for line, r in enumerate(rejects)]
    stores.dead_letters.settle(stores.runs.enter(again.id, Step.REVIEW, MINUTE), seen, counted(stores, 0, first))
    assert keys(stores) == ["h5"]
    assert [rest.status for rest in stores.dead_letters.lines("hotels")] == [DeadLetterStatus.DISCARDED]


def test_selected_letters_by_shard_in_the_order_of_their_bytes(stores: Stores, run: Run, paris: Shard) -> None:
    """By number, by cause or all, behind an address; and what tells one selection from another."""
    stores.dead_letters.record(run, paris, [a_reject("b", 2), a_reject("a", 1, "raw-9"), a_reject("c", 0)], "rejects-0")
    stores.dead_letters.record(run, paris, [a_reject(f"d{place}", place) for place in range(4)], "rejects-1")
    redriving = later(stores, mode=Mode.REDRIVE, redrives=Redrive(cause=str(STARS)))
    assert stores.redrives.shards("hotels", ALL) == {PARIS: 7}
    found = stores.redrives.letters(redriving, PARIS, None, 9)
    assert [letter.reject.key for letter in found] == ["c", "b", "a"]
    behind = stores.redrives.letters(redriving, PARIS, found[0].reject.address, 1)
    assert [letter.reject.key for letter in behind] == ["b"]
    assert stores.redrives.letters(redriving, ShardKey("rome"), None, 9) == []
    (rest,) = stores.redrives.lines(redriving, PARIS, 0)
    assert rest.objects == 4
    assert stores.redrives.lines(redriving, PARIS, rest.id) == []
    chosen = Redrive(letters=(found[1].id,))
    assert stores.redrives.shards("hotels", chosen) == {PARIS: 1}
    assert [letter.reject.key for letter in stores.letter_desk.selected("hotels", chosen, 9)] == ["b"]
    newest, *older = stores.letter_desk.selected("hotels", ALL, 9)
    assert stores.letter_desk.selected("hotels", ALL, 2, before=newest.id) == older[:2]
    assert stores.redrives.shards("hotels", Redrive(cause="type:name")) == {}
    assert (
        stores.redrives.state("hotels", ALL) == stores.redrives.state("hotels", ALL) != stores.redrives.state("hotels", chosen)
    )


def test_what_a_redrive_takes_up_and_does_not_reject_is_closed(stores: Stores, run: Run, paris: Shard) -> None:
    """With a key or without; what it rejects again is the same letter, and what it could not take up stays open."""
    bad = [hashed("right"), hashed(None, 1, "b"), hashed("wrong", 2, "c"), *many(3, "raw-7")]
    stores.dead_letters.record(run, paris, bad, "rejects-0")
    redriving = later(stores, mode=Mode.REDRIVE, redrives=ALL)
    shard = claimed(stores, redriving)
    found = {letter.reject.key: letter for letter in stores.redrives.letters(redriving, PARIS, None, 9)}
    stores.redrives.take_up(shard, {letter.id: letter.reject.raw_hash or "f" * 32 for letter in found.values()})
    (rest,) = stores.redrives.lines(redriving, PARIS, 0)
    stores.redrives.take_up_lines(shard, rest.id, [3, 5])
    taken = stores.redrives.taken(redriving.id)
    assert {letter.reject.key: letter.delivered_at for letter in taken} == dict.fromkeys(
        ("right", "wrong", None), run.created_at
    )
    stores.dead_letters.record(redriving, shard, [hashed("wrong", 9, "c", "raw-1")], "rejects-1")
    assert stores.redrives.close(redriving, [ShardKey("rome")], [], []) == 0
    assert stores.redrives.close(redriving, [PARIS], [ObjectKey("right")], []) == 2
    (left,) = stores.letter_desk.selected("hotels", Redrive(), 9)
    assert (left.id, left.reject.key, left.attempts, left.redriven_by) == (found[ObjectKey("wrong")].id, "wrong", 2, ())
    assert stores.dead_letters.lines("hotels")[0].lines == ((4, 5),)
    closed = stores.letter_desk.get(found[ObjectKey("right")].id)
    assert (closed.ended_by, closed.reason) == (redriving.id, "a later delivery of it was published")


def test_letters_of_the_same_bytes_become_one(stores: Stores, run: Run, paris: Shard) -> None:
    """An older release has met the same garbage twice, and took no hash of it: in vain is one attempt more of one letter."""
    stores.dead_letters.record(run, paris, [a_reject(None, 0), a_reject(None, 1)], "rejects-0")
    redriving = later(stores, mode=Mode.REDRIVE, redrives=ALL)
    shard = claimed(stores, redriving)
    found = stores.redrives.letters(redriving, PARIS, None, 9)
    for _ in range(2):
        stores.redrives.take_up(shard, {letter.id: "f" * 32 for letter in found})
    assert {(x.reject.key, x.delivered_at) for x in stores.redrives.taken(redriving.id)} == {(None, run.created_at)}
    stores.dead_letters.record(redriving, shard, [hashed(None, 5, "f", "raw-1")], "rejects-1")
    assert stores.redrives.close(redriving, [PARIS], [], []) == 1
    (left,) = stores.letter_desk.selected("hotels", Redrive(), 9)
    assert (left.id, left.attempts, left.reject.address.artifact) == (found[0].id, 2, "raw-1")
    assert stores.letter_desk.get(found[1].id).reason == "another letter is of the same bytes"


def test_other_bytes_of_the_same_letters_are_another_selection(stores: Stores, run: Run, paris: Shard) -> None:
    """A redrive of them is not answered with the outcome of the last one; in vain, with the same bytes, it is."""
    stores.dead_letters.record(run, paris, [hashed("h1"), hashed(None, 1, "b")], "rejects-0")
    state = stores.redrives.state("hotels", ALL)
    again = later(stores)
    shard = claimed(stores, again)
    stores.dead_letters.record(again, shard, [hashed("h1", 5, "0", "raw-1")], "rejects-1")
    assert stores.redrives.state("hotels", ALL) == state
    stores.dead_letters.record(again, shard, [hashed("h1", 6, "c", "raw-1")], "rejects-2")
    assert stores.redrives.state("hotels", ALL) != state


def test_each_redrive_has_what_it_has_taken_up(stores: Stores, run: Run, paris: Shard) -> None:
    """Several take up the same letters, and lines; one of them rejects some again, which the other one closes all the same."""
    rejects = [hashed(f"h{place}", place, f"{place:x}") for place in range(6)]
    stores.dead_letters.record(run, paris, rejects, "rejects-0")
    runs = [later(stores, f"run-{number}", mode=Mode.REDRIVE, redrives=ALL) for number in (2, 3)]
    shards = [claimed(stores, redriving) for redriving in runs]
    (rest,) = stores.dead_letters.lines("hotels")
    for redriving, shard, lines in zip(runs, shards, ([3, 5], [4]), strict=True):
        found = stores.redrives.letters(redriving, PARIS, None, 9)
        stores.redrives.take_up(shard, {letter.id: letter.reject.raw_hash or "" for letter in found})
        stores.redrives.take_up_lines(shard, rest.id, lines)
    assert [stores.redrives.lines(one, PARIS, 0)[0].taken for one in runs] == [((3, 4), (5, 6)), ((4, 5),)]
    stores.dead_letters.record(runs[1], shards[1], [hashed("h1", 8, "1", "raw-1")], "rejects-1")
    assert {letter.redriven_by for letter in stores.letter_desk.selected("hotels", ALL, 9)} == {
        ("run-2", "run-3"),
        ("run-2",),
    }
    assert stores.redrives.close(runs[0], [PARIS], [], []) == 3
    assert stores.dead_letters.lines("hotels")[0].lines == ((4, 5),)
    assert stores.redrives.close(runs[1], [PARIS], [], []) == 0
    assert stores.dead_letters.lines("hotels") == []


def ended(stores: Stores, redriving: Run) -> list[str | None]:
    """Return the objects whose letters have ended since a run has taken them up, and not by it."""
    taken = stores.redrives.taken(redriving.id)
    return [x.reject.key for x in taken if x.status is not DeadLetterStatus.OPEN and x.ended_by != redriving.id]


def test_letters_that_end_otherwise_are_overtaken(stores: Stores, run: Run, paris: Shard) -> None:
    """They came right in another run, or a person gave them up, while a redrive had their bytes."""
    stores.dead_letters.record(run, paris, [hashed("h1"), hashed("h2", 1), hashed("h3", 2)], "rejects-0")
    redriving = later(stores, mode=Mode.REDRIVE, redrives=ALL)
    shard = claimed(stores, redriving)
    found = stores.redrives.letters(redriving, PARIS, None, 9)
    stores.redrives.take_up(shard, {letter.id: "0" * 32 for letter in found})
    assert ended(stores, redriving) == []
    stores.dead_letters.close(run, [ObjectKey("h2")])
    stores.letter_desk.discard("hotels", Redrive(letters=(found[0].id,)), an_actor("gone"))
    assert ended(stores, redriving) == ["h1", "h2"]
    stores.redrives.close(redriving, [PARIS], [], [])
    assert ended(stores, redriving) == ["h1", "h2"]


def test_older_bytes_take_no_letter_from_newer_ones(stores: Stores, run: Run, paris: Shard) -> None:
    """A run that was admitted before the one that has met an object last leaves its letter as it is, and opens no other."""
    newer = later(stores, created_at=run.created_at + MINUTE)
    stores.dead_letters.record(newer, claimed(stores, newer), [hashed("h1", 1, "b", "raw-2")], "rejects-2")
    stores.dead_letters.record(run, paris, [hashed("h1"), hashed("h2", 2)], "rejects-0")
    found = {letter.reject.key: letter for letter in stores.letter_desk.selected("hotels", Redrive(), 9)}
    assert (found[ObjectKey("h1")].run, found[ObjectKey("h1")].attempts) == (newer.id, 1)
    assert (found[ObjectKey("h1")].reject.raw_hash, sorted(map(str, found))) == ("b" * 32, ["h1", "h2"])


def test_the_same_bytes_are_as_old_as_they_were(stores: Stores, run: Run, paris: Shard) -> None:
    """A replay of a window maps them by another version: one attempt more, and no other delivery."""
    stores.dead_letters.record(run, paris, [hashed("h1")], "rejects-0")
    window = Window(start=run.created_at - MINUTE, end=run.created_at + MINUTE)
    replay = later(stores, mode=Mode.REPLAY, window=window, transformer_version=2, created_at=window.start)
    stores.dead_letters.record(replay, claimed(stores, replay), [hashed("h1")], "rejects-1")
    redriving = later(stores, "run-3", mode=Mode.REDRIVE, redrives=ALL)
    (letter,) = stores.redrives.letters(redriving, PARIS, None, 9)
    stores.redrives.take_up(claimed(stores, redriving), {letter.id: "0" * 32})
    assert (letter.attempts, letter.transformer_version) == (2, 2)
    assert [(x.reject.key, x.delivered_at) for x in stores.redrives.taken(redriving.id)] == [("h1", run.created_at)]


def test_a_redrive_in_vain_leaves_what_came_meanwhile(stores: Stores, run: Run, paris: Shard) -> None:
    """Rejected in newer bytes, the letter is those'; come right or given up, the object has no letter again."""
    stores.dead_letters.record(run, paris, [hashed("again"), hashed("right", 1), hashed(None, 2)], "rejects-0")
    redriving = later(stores, mode=Mode.REDRIVE, redrives=ALL)
    shard = claimed(stores, redriving)
    found = {letter.reject.key: letter.id for letter in stores.redrives.letters(redriving, PARIS, None, 9)}
    stores.redrives.take_up(shard, dict.fromkeys(found.values(), "0" * 32))
    daily = later(stores, "run-3")
    stores.dead_letters.record(daily, claimed(stores, daily), [hashed("again", 1, "b", "raw-2")], "rejects-2")
    stores.dead_letters.close(daily, [ObjectKey("right")])
    stores.letter_desk.discard("hotels", Redrive(letters=(found[None],)), an_actor("gone"))
    in_vain = [hashed(key, place, artifact="raw-1") for place, key in enumerate(("again", "right", None))]
    stores.dead_letters.record(redriving, shard, in_vain, "rejects-1")
    (left,) = stores.letter_desk.selected("hotels", Redrive(), 9)
    assert (left.id, left.run, left.attempts) == (found[ObjectKey("again")], daily.id, 2)
    assert left.reject == hashed("again", 1, "b", "raw-2")


def test_who_has_lost_the_shard_takes_up_nothing(stores: Stores, run: Run, paris: Shard) -> None:
    """Its successor does."""
    stores.dead_letters.record(run, paris, [a_reject("h1")], "rejects-0")
    (letter,) = stores.letter_desk.selected("hotels", Redrive(), 9)
    stores.shards.claim(run.id, PARIS)
    with pytest.raises(Fenced):
        stores.redrives.take_up(paris, {letter.id: "0" * 32})
    assert stores.letter_desk.get(letter.id).redriven_by == ()


def test_a_letter_that_is_not_there_is_named(stores: Stores) -> None:
    """And an object without one has none."""
    with pytest.raises(NotFound, match="there is no dead letter 7"):
        stores.letter_desk.get(7)
    assert stores.letter_desk.of_object("hotels", ObjectKey("h1"), 9) == []


@pytest.mark.parametrize("chosen", [Redrive(letters=(10**30,)), Redrive(cause="a\x00:b"), Redrive(cause="\ud800")])
def test_what_no_letter_can_have_selects_none(stores: Stores, run: Run, paris: Shard, chosen: Redrive) -> None:
    """However large a number, and whatever is written for a cause; least of all does it select all of them."""
    stores.dead_letters.record(run, paris, [a_reject("h1")], "rejects-0")
    assert stores.redrives.shards("hotels", chosen) == {}
    assert stores.letter_desk.discard("hotels", chosen, an_actor("gone")) == 0
