"""Redrives of objects without a letter of their own, or with one without a key: known by their bytes, and as old as these."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from sluice.adapters.postgres import Database
from sluice.adapters.state import PostgresDeadLetterStore
from sluice.errors import StateUnavailable
from sluice.flow.inline import run_inline
from sluice.model.lifecycle import RunStatus
from sluice.model.review import Choice
from sluice.model.run import Mode, Origin, Redrive, ReviewMode, RunRequest
from sluice.ports import ConnectionInfo
from tests.integration.test_redrive import SOON, UNVERSIONED, bad, good, mended, nameless, redrive
from tests.support.nouns import an_actor
from tests.support.stall import SYNC, Stall, open_stall


@pytest.fixture
def state(database: ConnectionInfo) -> Iterator[Database]:
    state = Database(database, StateUnavailable)
    yield state
    state.close()


@pytest.fixture
def stall(tmp_path: Path, database: ConnectionInfo, artifacts: ConnectionInfo, state: Database) -> Iterator[Stall]:
    with open_stall(tmp_path, database, artifacts, {"review": SOON}) as stall:
        bound_letters(stall, state, 0)
        yield stall


@pytest.fixture
def edit(tmp_path: Path) -> Any:
    """Edit the spec of the stall."""

    def edited(**changes: Any) -> None:
        text = yaml.safe_dump({**SYNC, "review": SOON, **changes}, sort_keys=False)
        (tmp_path / "include/syncs/prices.yaml").write_text(text)

    return edited


def bound_letters(stall: Stall, state: Database, most: int) -> None:
    """Let a cause have so many letters."""
    stall.services = replace(stall.services, dead_letters=PostgresDeadLetterStore(state, most))


def counted(stall: Stall) -> int:
    """How many objects are open."""
    return sum(group.objects for group in stall.services.letter_desk.groups("prices"))


def test_each_object_is_as_old_as_its_own_bytes(stall: Stall, edit: Any) -> None:
    """A row of `c` was written after `b` was delivered, and before `c` was; being redriven in vain makes neither older."""
    edit(**UNVERSIONED)
    stall.bring([good("a"), bad("b")])
    stall.bring([good("c", hour=1)], mode=Mode.INCREMENTAL)
    stall.bring([bad("c", 7, hour=2)], mode=Mode.INCREMENTAL)
    assert redrive(stall).status is RunStatus.SUCCEEDED
    assert (counted(stall), stall.prices()["c"]) == (2, 1.0)
    edit(**mended(**UNVERSIONED))
    assert redrive(stall).status is RunStatus.SUCCEEDED
    assert (counted(stall), stall.prices()) == (0, {"a": 1.0, "b": 5.0, "c": 7.0})


def test_what_was_published_since_stays_also_where_there_is_no_letter(stall: Stall, edit: Any) -> None:
    """While the redrive waits, the object comes right by itself, and stands among the rest no more."""
    edit(**UNVERSIONED)
    stall.bring([good("a"), bad("b"), good("d")])
    stall.bring([bad("d", 6, hour=1)], mode=Mode.INCREMENTAL)
    edit(**mended(**UNVERSIONED))
    run = redrive(stall, review=ReviewMode.ALWAYS)
    stall.bring([good("b", 7, hour=2)], mode=Mode.INCREMENTAL)
    while run.status is RunStatus.WAITING:
        run = stall.answer(run, Choice.APPROVE)
    assert (run.status, stall.prices()) == (RunStatus.SUCCEEDED, {"a": 1.0, "b": 7.0, "d": 6.0})


def test_letters_without_a_key_are_told_apart(stall: Stall, state: Database, edit: Any) -> None:
    """One is newer than what is published of its object, the other one older."""
    bound_letters(stall, state, 9)
    edit(**UNVERSIONED)
    stall.bring([good("a"), good("z"), nameless(3, name="b")])
    stall.bring([good("b", 7, hour=1), good("e", hour=1)], mode=Mode.INCREMENTAL)
    stall.bring([nameless(9, name="e", hour=2)], mode=Mode.INCREMENTAL)
    edit(**mended("id", "name", **UNVERSIONED))
    assert redrive(stall).status is RunStatus.SUCCEEDED
    assert stall.prices() == {"a": 1.0, "b": 7.0, "e": 9.0, "z": 1.0}
    assert stall.sql("select status, reason from sluice_state.dead_letter order by id") == [
        ("closed", "a later delivery of it was published"),
        ("closed", None),
    ]


@pytest.mark.parametrize("most", [0, 9])
def test_what_has_a_key_by_now_is_counted_once(stall: Stall, state: Database, edit: Any, most: int) -> None:
    """It is wrong otherwise, as it turns out, and comes right in the end."""
    bound_letters(stall, state, most)
    stall.bring([good("a"), {**bad("b", name="b"), "id": [3]}])
    edit(**mended("id", "name"))
    assert redrive(stall, cause="type:id").status is RunStatus.SUCCEEDED
    (group,) = stall.services.letter_desk.groups("prices")
    assert (str(group.cause), group.objects, group.letters) == ("type:price", 1, most // 9)
    edit(fields=[*mended("id", "name")["fields"][:1], *mended()["fields"][1:]], version=3)
    assert redrive(stall).status is RunStatus.SUCCEEDED
    assert (stall.prices(), counted(stall)) == ({"a": 1.0, "b": 5.0}, 0)


@pytest.mark.parametrize("most", [0, 9])
def test_what_is_given_up_meanwhile_is_left_out(stall: Stall, state: Database, edit: Any, most: int) -> None:
    """Though nobody could name it, or it had no letter; the others go on."""
    bound_letters(stall, state, most)
    stall.bring([good("a"), nameless(3, name="b"), bad("c", name="c")])
    edit(fields=[*mended("id", "name")["fields"][:1], *mended()["fields"][1:]], version=2)
    run = redrive(stall, review=ReviewMode.ALWAYS)
    assert run.status is RunStatus.WAITING
    assert stall.services.letter_desk.discard("prices", Redrive(cause="type:id"), an_actor("not for sale")) == 1
    while run.status is RunStatus.WAITING:
        run = stall.answer(run, Choice.APPROVE)
    assert (run.status, stall.prices()) == (RunStatus.SUCCEEDED, {"a": 1.0, "c": 5.0})


@pytest.mark.parametrize("most", [0, 1])
def test_older_bytes_of_a_replay_count_nothing_twice(stall: Stall, state: Database, edit: Any, most: int) -> None:
    """What stands among the rest of a newer run is counted there; redriven, it is what the supplier has said last."""
    first = stall.bring([good("a"), bad("b")])
    newest = stall.bring([good("a"), bad("b", 6)])
    bound_letters(stall, state, most)
    facts = {"sync": "prices", "mode": Mode.REPLAY, "replays": first.id, "origin": Origin()}
    assert run_inline(stall.services, RunRequest.model_validate(facts)).status is RunStatus.SUCCEEDED
    assert [rest.run for rest in stall.services.dead_letters.lines("prices")] == [newest.id]
    assert counted(stall) == 1
    edit(**mended())
    redrive(stall)
    assert (stall.prices(), counted(stall)) == ({"a": 1.0, "b": 6.0}, 0)


def test_what_was_given_up_without_a_letter_gets_none(stall: Stall, state: Database) -> None:
    """However often it is delivered."""
    bound_letters(stall, state, 1)
    things = [good("a"), *(bad(f"b{number}") for number in range(4))]
    stall.bring(things)
    stall.services.letter_desk.discard("prices", Redrive(), an_actor("not for sale"))
    for _ in range(2):
        stall.bring(things)
    assert stall.sql("select status, attempts from sluice_state.dead_letter") == [("discarded", 3)]
    assert counted(stall) == 0
