"""Redrives, end to end: dead letters enter the normal path again from their stored bytes, and no supplier is asked."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from sluice.errors import NotFound
from sluice.flow.inline import run_inline
from sluice.model.artifact import ArtifactKind
from sluice.model.ledger import Outcome
from sluice.model.lifecycle import RunStatus
from sluice.model.reject import DeadLetter, DeadLetterStatus
from sluice.model.review import Choice
from sluice.model.run import Mode, Origin, Redrive, ReviewMode, Run, RunRequest
from sluice.ports import ConnectionInfo
from tests.support.nouns import an_actor
from tests.support.stall import SYNC, Stall, open_stall, price

UNVERSIONED = {"object": {"key": ["id"]}}


SOON = {"first_load": "auto-approve", "auto_approve": dict.fromkeys(("created", "changed", "rejected", "deleted"), "100%")}


@pytest.fixture
def stall(tmp_path: Path, database: ConnectionInfo, artifacts: ConnectionInfo) -> Iterator[Stall]:
    with open_stall(tmp_path, database, artifacts, {"review": SOON}) as stall:
        yield stall


@pytest.fixture
def edit(tmp_path: Path) -> Any:
    """Edit the spec of the stall."""

    def edited(**changes: Any) -> None:
        (tmp_path / "include/syncs/prices.yaml").write_text(
            yaml.safe_dump({**SYNC, "review": SOON, **changes}, sort_keys=False)
        )

    return edited


def mended(name: str = "price", path: str = "cost", **changes: Any) -> dict[str, Any]:
    """A spec that finds a field where its good value is."""
    fields = [{**field, "path": path} if field["name"] == name else field for field in SYNC["fields"]]
    return {"fields": fields, "version": 2, **changes}


def good(key: str, amount: float = 1, version: int = 1, **more: Any) -> dict[str, Any]:
    """An object whose price can be read from either place."""
    return price(key, amount, version, cost=amount, **more)


def bad(key: str, amount: float = 5, **more: Any) -> dict[str, Any]:
    """An object whose price can be read from one place alone."""
    return {**good(key, amount, **more), "price": "many"}


def nameless(amount: float, **more: Any) -> dict[str, Any]:
    """An object whose key cannot be read."""
    return {**good("", amount, **more), "id": [amount]}


def redrive(stall: Stall, *letters: int, cause: str | None = None, **changes: Any) -> Run:
    """Take up dead letters."""
    chosen = Redrive(letters=letters, cause=cause)
    facts = {"sync": "prices", "mode": Mode.REDRIVE, "redrives": chosen, "origin": Origin(), **changes}
    return run_inline(stall.services, RunRequest.model_validate(facts))


def letters(stall: Stall) -> list[DeadLetter]:
    """The open letters, the newest first."""
    return stall.services.letter_desk.selected("prices", Redrive(), 99)


def standing(stall: Stall) -> list[tuple[Any, ...]]:
    """Each letter ever opened: object, status, attempts."""
    return stall.sql("select object_key, status, attempts from sluice_state.dead_letter order by id")


def test_in_vain_at_first_and_right_once_the_spec_takes_it(stall: Stall, edit: Any) -> None:
    """One attempt more of the same letters, key or no key; then the stored bytes are published, and no supplier was asked."""
    stall.bring([good("a"), good("e"), bad("b", name="b"), nameless(3, name="c"), nameless(4, name="d")])
    before = {letter.id: letter.first_seen for letter in letters(stall)}
    assert len(before) == 3
    asked, marks = len(stall.shop.asked), stall.services.watermarks.of("prices")
    assert redrive(stall).status is RunStatus.SUCCEEDED
    assert {letter.id: letter.first_seen for letter in letters(stall)} == before
    assert {letter.attempts for letter in letters(stall)} == {2}
    fields = [*mended("id", "name")["fields"][:1], *mended()["fields"][1:]]
    edit(fields=fields, version=2)
    run = redrive(stall, cause="type:id")
    assert (run.status, run.mode) == (RunStatus.SUCCEEDED, Mode.REDRIVE)
    assert {row[:2] for row in standing(stall)} == {("b", "open"), (None, "closed")}
    assert redrive(stall).status is RunStatus.SUCCEEDED
    assert stall.prices() == {"a": 1.0, "b": 5.0, "c": 3.0, "d": 4.0, "e": 1.0}
    assert stall.publications()[-1].counts == {Outcome.CREATED: 1}
    assert (len(stall.shop.asked), stall.services.watermarks.of("prices")) == (asked, marks)
    assert {row[1:] for row in standing(stall)} == {("closed", 2)}
    with pytest.raises(NotFound, match="prices has no open dead letter"):
        redrive(stall)


def test_garbage_that_comes_daily_is_one_letter(stall: Stall) -> None:
    """Its bytes tell it from other garbage; once a run that sees all does not bring it, it is closed."""
    for day in range(2):
        stall.bring([good("a"), nameless(3), nameless(4)])
        assert [letter.attempts for letter in letters(stall)] == [day + 1, day + 1]
    stall.bring([good("a")])
    assert {status for _, status, _ in standing(stall)} == {"closed"}


def test_chosen_ones_and_what_is_turned_down(stall: Stall, edit: Any) -> None:
    """By number or by cause; the others stay as they are, and so does what a person rejects: it can be taken up again."""
    stall.bring([bad("a"), bad("b"), {**good("c"), "more": 1, "version": "x"}])
    first = min(letter.id for letter in letters(stall))
    edit(**mended())
    run = redrive(stall, first, review=ReviewMode.ALWAYS)
    assert run.status is RunStatus.WAITING
    assert stall.answer(run, Choice.REJECT).status is RunStatus.CANCELLED
    assert {row[1:] for row in standing(stall)} == {("open", 1)}
    redrive(stall, first)
    assert [row[:2] for row in standing(stall)] == [("a", "closed"), ("b", "open"), ("c", "open")]
    redrive(stall, cause="type:price")
    assert [row[:2] for row in standing(stall)] == [("a", "closed"), ("b", "closed"), ("c", "open")]


def test_the_same_letter_in_two_redrives_that_wait(stall: Stall, edit: Any) -> None:
    """The first is approved, the second turned down: the object is published, and its letter closed by the first."""
    stall.bring([bad("a"), bad("b")])
    first = min(letter.id for letter in letters(stall))
    edit(**mended())
    runs = [redrive(stall, *chosen, review=ReviewMode.ALWAYS) for chosen in ((), (first,))]
    assert [run.status for run in runs] == [RunStatus.WAITING, RunStatus.WAITING]
    assert stall.answer(runs[0], Choice.APPROVE).status is RunStatus.SUCCEEDED
    assert stall.answer(runs[1], Choice.REJECT).status is RunStatus.CANCELLED
    assert (stall.prices(), letters(stall)) == ({"a": 5.0, "b": 5.0}, [])


def test_an_older_record_never_overwrites_a_newer_one(stall: Stall, edit: Any) -> None:
    """While a redrive waits, the object comes right by itself: the newer values stay, with versions or without."""
    for changes in ({}, UNVERSIONED):
        edit(**changes)
        stall.sql("truncate sluice_state.dead_letter")
        stall.bring([good("a"), bad("b")])
        edit(**mended(**changes))
        run = redrive(stall, review=ReviewMode.ALWAYS)
        assert run.status is RunStatus.WAITING
        stall.bring([good("a"), good("b", 7, version=2)])
        while run.status is RunStatus.WAITING:
            run = stall.answer(run, Choice.APPROVE)
        assert (run.status, stall.prices()["b"]) == (RunStatus.SUCCEEDED, 7.0)
        stall.bring([good("a")])


def test_old_bytes_of_a_replay_do_not_overwrite_what_came_since(stall: Stall, edit: Any) -> None:
    """Rejected in a replay, an object has a letter of old bytes: what a later run has published of it stays."""
    edit(**mended(**UNVERSIONED))
    first = stall.bring([good("a"), bad("b")])
    stall.bring([good("a"), good("b", 7)])
    edit(**UNVERSIONED, version=3)
    facts = {"sync": "prices", "mode": Mode.REPLAY, "replays": first.id, "origin": Origin()}
    run_inline(stall.services, RunRequest.model_validate(facts))
    assert [letter.reject.key for letter in letters(stall)] == ["b"]
    edit(**mended(**{**UNVERSIONED, "version": 4}))
    assert redrive(stall).status is RunStatus.SUCCEEDED
    assert stall.prices()["b"] == 7.0
    assert stall.sql("select status, reason from sluice_state.dead_letter") == [
        ("closed", "a later delivery of it was published")
    ]


def test_old_bytes_that_nobody_could_name_do_not_overwrite_what_came_since(stall: Stall, edit: Any) -> None:
    """The letter had no key; what has one by now is as old as its bytes all the same."""
    edit(**UNVERSIONED)
    stall.bring([good("a"), nameless(3, name="b")])
    stall.bring([good("b", 7, hour=1)], mode=Mode.INCREMENTAL)
    edit(**mended("id", "name", **UNVERSIONED))
    assert redrive(stall).status is RunStatus.SUCCEEDED
    assert (stall.prices(), standing(stall)) == ({"a": 1.0, "b": 7.0}, [(None, "closed", 1)])


def test_lost_bytes_are_told_and_stop_no_other(stall: Stall, tmp_path: Path, edit: Any) -> None:
    """The letter whose bytes are gone stays open, the other one comes right."""
    first = stall.bring([bad("b")])
    stall.bring([bad("c")], mode=Mode.INCREMENTAL)
    for pointer in stall.services.pointers.of(first.id, ArtifactKind.RAW):
        stall.services.artifacts.remove(pointer)
    shutil.rmtree(tmp_path / "cache")
    edit(**mended())
    assert redrive(stall).status is RunStatus.SUCCEEDED
    assert (stall.prices(), [row[:2] for row in standing(stall)]) == ({"c": 5.0}, [("b", "open"), ("c", "closed")])


def test_a_run_of_the_supplier_closes_and_discarded_ones_are_left(stall: Stall, edit: Any) -> None:
    """What a person has given up is taken up by no redrive, and the same bytes open no letter again; other bytes do."""
    stall.bring([good("a"), bad("b")])
    assert stall.services.letter_desk.discard("prices", Redrive(), an_actor("not for sale")) == 1
    stall.bring([good("a"), bad("b")])
    assert letters(stall) == []
    with pytest.raises(NotFound):
        redrive(stall)
    stall.bring([good("a"), bad("b", 6)])
    (letter,) = letters(stall)
    assert letter.reject.key == "b"
    given_up = stall.services.letter_desk.get(letter.id - 1)
    assert (given_up.status, given_up.attempts, given_up.ended_by, given_up.reason) == (
        DeadLetterStatus.DISCARDED,
        2,
        "ada",
        "not for sale",
    )


class Dying:
    """A store of redrives whose process dies where one of its methods is called."""

    def __init__(self, stall: Stall, method: str) -> None:
        self._redrives = stall.services.redrives
        self._method = method

    def __getattr__(self, name: str) -> Any:
        if name == self._method:
            raise KeyboardInterrupt
        return getattr(self._redrives, name)


def test_killed_anywhere_it_goes_on(stall: Stall, edit: Any) -> None:
    """While it fetches, before its review, behind its publication: asked for again, all comes right, and every letter ends."""
    stall.bring([good("a"), bad("b"), nameless(3, name="b")])
    edit(**mended("id", "name"))
    alive = stall.services
    for method in ("take_up", "taken", "close"):
        stall.services = replace(alive, redrives=Dying(stall, method))
        with pytest.raises(KeyboardInterrupt):
            redrive(stall, cause="type:id")
        stall.services = alive
    assert redrive(stall, cause="type:id").status is RunStatus.SUCCEEDED
    assert {row[:2] for row in standing(stall)} == {("b", "open"), (None, "closed")}
    assert stall.prices() == {"a": 1.0, "b": 3.0}


class Interrupted:
    """A store, or a target, which lets the supplier deliver something right before one of its methods is called, once."""

    def __init__(self, inner: Any, method: str, deliver: Callable[[], None]) -> None:
        self._inner = inner
        self._method = method
        self._deliver = deliver

    def __getattr__(self, name: str) -> Any:
        if name == self._method:
            self._deliver()
        return getattr(self._inner, name)


def delivering(stall: Stall, things: Sequence[dict[str, Any]]) -> Callable[[], None]:
    """Return what lets a daily run bring these things, undisturbed, when it is called first."""
    alive = stall.services

    def deliver() -> None:
        if stall.services is not alive:
            stall.services = alive
            stall.bring(things)

    return deliver


def test_a_daily_run_in_the_middle_of_a_redrive_in_vain(stall: Stall, edit: Any) -> None:
    """The letter is of the newer bytes then; of an object that came right it stays closed, and there is no other."""
    stall.bring([good("a"), bad("b", 5), bad("c", 5)])
    daily = delivering(stall, [good("a"), bad("b", 6), good("c", 6)])
    stall.services = replace(stall.services, dead_letters=Interrupted(stall.services.dead_letters, "record", daily))
    assert redrive(stall).status is RunStatus.SUCCEEDED
    assert standing(stall) == [("b", "open", 2), ("c", "closed", 1)]
    edit(**mended())
    redrive(stall)
    assert stall.prices() == {"a": 1.0, "b": 6.0, "c": 6.0}


def test_a_replay_of_older_bytes_leaves_the_letter_of_newer_ones(stall: Stall, edit: Any) -> None:
    """What is redriven is what the supplier has said last."""
    first = stall.bring([good("a"), bad("b", 5)])
    stall.bring([good("a"), bad("b", 6)])
    facts = {"sync": "prices", "mode": Mode.REPLAY, "replays": first.id, "origin": Origin()}
    run_inline(stall.services, RunRequest.model_validate(facts))
    edit(**mended())
    redrive(stall)
    assert (stall.prices()["b"], standing(stall)) == (6.0, [("b", "closed", 2)])


def test_nothing_is_written_of_a_letter_that_ends_at_the_last_moment(stall: Stall, edit: Any) -> None:
    """The supplier says again what the table holds: that changes nothing there, and closes the letter."""
    edit(**UNVERSIONED)
    stall.bring([good("a"), good("b", 5)])
    stall.bring([good("a"), bad("b", 9)])
    edit(**mended(**UNVERSIONED))
    daily, target = delivering(stall, [good("a"), good("b", 5)]), stall.services.target
    stall.services = replace(stall.services, target=lambda spec: Interrupted(target(spec), "publishing", daily))
    assert redrive(stall).status is RunStatus.SUCCEEDED
    assert (stall.prices()["b"], standing(stall)) == (5.0, [("b", "closed", 1)])


def test_two_redrives_at_once(stall: Stall, edit: Any) -> None:
    """Of the same letters or of some of them: each object is published once, and each letter ends."""
    things = [*(good(f"a{number}") for number in range(20)), *(bad(f"b{number}") for number in range(10))]
    stall.bring(things)
    edit(**mended())
    with ThreadPoolExecutor() as pool:
        runs = [pool.submit(redrive, stall, cause=cause) for cause in (None, "type:price")]
    assert {run.result().status for run in runs} == {RunStatus.SUCCEEDED}
    assert {row[1:] for row in standing(stall)} == {("closed", 1)}
    assert (len(stall.prices()), sum(one.counts.get(Outcome.CREATED, 0) for one in stall.publications())) == (30, 30)
