"""Replays: what was fetched once is mapped again as the spec has it now, reviewed and published, and no supplier is asked."""

import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from structlog.testing import capture_logs

from sluice import log_events
from sluice.errors import NotFound, RawDataGone, SluiceError, UsageInvalid
from sluice.flow.inline import run_inline
from sluice.model.artifact import ArtifactKind
from sluice.model.base import RunId, ShardKey
from sluice.model.ledger import Outcome
from sluice.model.lifecycle import RunStatus, ShardStatus, Verdict
from sluice.model.review import Choice
from sluice.model.run import Mode, Origin, Redrive, Run, RunRequest, Window
from sluice.ports import ConnectionInfo
from sluice.upkeep.collection import collect
from tests.support.stall import SYNC, Stall, hours, open_stall, price

NOTED = [*SYNC["fields"], {"name": "note", "type": "text"}]


@pytest.fixture
def stall(tmp_path: Path, database: ConnectionInfo, artifacts: ConnectionInfo) -> Iterator[Stall]:
    with open_stall(tmp_path, database, artifacts) as stall:
        yield stall


@pytest.fixture
def edit(tmp_path: Path) -> Any:
    """Edit the spec of the stall."""

    def edited(**changes: Any) -> None:
        (tmp_path / "include/syncs/prices.yaml").write_text(yaml.safe_dump({**SYNC, **changes}, sort_keys=False))

    return edited


def replay(stall: Stall, of: Run | RunId, **changes: Any) -> Run:
    """Map again what a run has fetched."""
    named = of.id if isinstance(of, Run) else of
    facts = {"sync": "prices", "mode": Mode.REPLAY, "replays": named, "origin": Origin(), **changes}
    return run_inline(stall.services, RunRequest.model_validate(facts))


def notes(stall: Stall) -> list[tuple[Any, ...]]:
    """What the table holds in the new column."""
    return stall.sql("select id, note from prices order by id")


def test_a_new_field_is_filled_from_what_was_fetched(stall: Stall, edit: Any) -> None:
    """The supplier is not asked, and has forgotten it all: nothing is deleted, and no watermark moves."""
    first = stall.bring([price("a", 1, note="fine"), price("b", 2, hour=1)])
    marks, asked = stall.services.watermarks.of("prices"), len(stall.shop.asked)
    stall.shop.things["all"] = []
    edit(fields=NOTED)
    run = replay(stall, first)
    assert (run.status, run.mode, run.replays) == (RunStatus.SUCCEEDED, Mode.REPLAY, first.id)
    assert notes(stall) == [("a", "fine"), ("b", None)]
    assert stall.publications()[-1].counts == {Outcome.CHANGED: 2}
    assert (stall.services.watermarks.of("prices"), len(stall.shop.asked)) == (marks, asked)


def test_what_is_missing_from_old_data_is_not_gone(stall: Stall, edit: Any) -> None:
    """A replay says nothing of what has come since; and what was published of a newer version stays."""
    first = stall.bring([price("a", 1)])
    stall.bring([price("a", 9, 2), price("b", 2)])
    edit(fields=NOTED)
    run = replay(stall, first)
    assert run.status is RunStatus.SUCCEEDED
    assert stall.prices() == {"a": 9.0, "b": 2.0}
    assert stall.review_of(run).figures.count(Outcome.STALE) == 1


def test_it_goes_on_being_replayed(stall: Stall, edit: Any) -> None:
    """A replay of a replay maps the same data; and the same request again has the same result."""
    first = stall.bring([price("a", 1, note="fine")])
    again = replay(stall, replay(stall, first))
    edit(fields=NOTED)
    last = replay(stall, again)
    assert (last.status, notes(stall)) == (RunStatus.SUCCEEDED, [("a", "fine")])


def test_a_review_that_waits_gives_way_to_a_replay_of_its_run(stall: Stall, edit: Any) -> None:
    """Somebody mends the spec instead of answering; nobody has to answer what is out of date."""
    edit(review={"always": True})
    first = stall.bring([price("a", 1, note="fine")])
    assert first.status is RunStatus.WAITING
    edit(fields=NOTED)
    assert replay(stall, first).status is RunStatus.SUCCEEDED
    assert stall.review_of(first).verdict is Verdict.SUPERSEDED
    assert notes(stall) == [("a", "fine")]


def expire(stall: Stall, condition: str) -> None:
    """Let the time of artifacts be over, and collect what nobody needs."""
    stall.sql(f"update sluice_state.artifact set expires_at = now() - interval '1 day' where {condition}")
    collect(stall.services, dry_run=False)


def test_its_bytes_live_as_long_as_it_needs_them(stall: Stall, tmp_path: Path, edit: Any) -> None:
    """The time of the replayed run may be over: what the replay points to stays. After that, nothing is mapped by half."""
    first = stall.bring([price("a", 1, note="fine")])
    run = replay(stall, first)
    expire(stall, f"run = '{first.id}'")
    shutil.rmtree(tmp_path / "cache")
    edit(fields=NOTED)
    assert replay(stall, run).status is RunStatus.SUCCEEDED
    assert notes(stall) == [("a", "fine")]
    expire(stall, "kind = 'raw'")
    with pytest.raises(RawDataGone, match=f"what run {first.id} has fetched is not kept any more; run the sync in mode full"):
        replay(stall, first, force=True)


def test_lost_bytes_are_not_fetched_again(stall: Stall, tmp_path: Path, edit: Any) -> None:
    """The run fails, naming what was lost; what the supplier has today would be something else."""
    first = stall.bring([price("a", 1)])
    for pointer in stall.services.pointers.of(first.id, ArtifactKind.RAW):
        stall.services.artifacts.remove(pointer)
    shutil.rmtree(tmp_path / "cache")
    asked = len(stall.shop.asked)
    edit(fields=NOTED)
    run = replay(stall, first)
    (shard,) = stall.services.shards.of(run.id)
    assert (run.status, shard.status, len(stall.shop.asked)) == (RunStatus.FAILED, ShardStatus.FAILED, asked)
    assert shard.failure is not None
    assert (shard.failure.error, "a replay asks no supplier" in shard.failure.message) == ("RawDataGone", True)


WINDOW: Window = hours(0, 1)


@pytest.mark.parametrize(
    ("changes", "error", "why"),
    [
        ({"replays": "nobody"}, NotFound, "there is no run nobody"),
        ({"replays": None}, UsageInvalid, "a replay names the run whose raw data it maps again"),
        ({"mode": Mode.FULL}, UsageInvalid, "and only a replay names a run"),
        ({"window": WINDOW}, UsageInvalid, "or else a window in which the runs were begun"),
        ({"shards": (ShardKey("north"),)}, UsageInvalid, "has not fetched north to the end; there are: all"),
        ({"replays": None, "window": WINDOW}, RawDataGone, "no run of prices that was begun from 2026-01-01T00:00:00Z to"),
        ({"version": 7}, UsageInvalid, "prices is version 1, and no canary: there is no version 7"),
    ],
)
def test_what_cannot_be_replayed_is_refused_by_name(
    stall: Stall, changes: dict[str, Any], error: type[SluiceError], why: str
) -> None:
    """Before anything is done, and with what to do instead."""
    first = stall.bring([price("a", 1)])
    with pytest.raises(error, match=why):
        replay(stall, first, **changes)


def test_a_run_of_another_sync_is_refused(stall: Stall) -> None:
    """What one supplier has sent is not what another has."""
    first = stall.bring([price("a", 1)])
    stall.sql(f"update sluice_state.run set sync = 'rates' where id = '{first.id}'")
    with pytest.raises(UsageInvalid, match=f"run {first.id} is one of rates, not of prices"):
        replay(stall, first)


def test_dead_letters_of_what_comes_right_are_closed(stall: Stall, edit: Any) -> None:
    """The spec was wrong, not the data: once it is mended the object arrives."""
    needed = {"name": "note", "type": "text", "required": True}
    edit(fields=[*SYNC["fields"], {**needed, "path": "remark"}])
    first = stall.bring([price("a", 1, note="fine", remark="fine"), price("b", 2, note="poor")])
    stall.answer(first, Choice.APPROVE)
    assert [letter.reject.key for letter in stall.services.letter_desk.selected("prices", Redrive(), 9)] == ["b"]
    edit(fields=[*SYNC["fields"], needed])
    replay(stall, first)
    assert (notes(stall), stall.services.letter_desk.selected("prices", Redrive(), 9)) == ([("a", "fine"), ("b", "poor")], [])


def of_window(stall: Stall, first: Run, last: Run, **changes: Any) -> Run:
    """Map again what all runs have fetched that were begun from one to another."""
    window = Window(start=first.created_at, end=last.created_at + timedelta(microseconds=1))
    facts = {"sync": "prices", "mode": Mode.REPLAY, "window": window, "origin": Origin(), **changes}
    return run_inline(stall.services, RunRequest.model_validate(facts))


def test_a_window_is_mapped_again(stall: Stall, edit: Any) -> None:
    """All its runs in one: versions decide, ties go to the later run; nothing is asked, nothing deleted, no watermark moves."""
    first = stall.bring([price("a", 1, note="old"), price("b", 2, 5, note="newer")])
    things = [price("a", 1, note="new", hour=1), price("b", 2, 4, note="older"), price("c", 3, note="came")]
    second = stall.bring(things)
    stall.bring([*things, price("d", 4, note="outside")])
    before, marks, asked = stall.prices(), stall.services.watermarks.of("prices"), len(stall.shop.asked)
    edit(fields=NOTED)
    run = of_window(stall, first, second)
    assert (run.status, run.mode, run.replays) == (RunStatus.SUCCEEDED, Mode.REPLAY, None)
    assert notes(stall) == [("a", "new"), ("b", "newer"), ("c", "came"), ("d", None)]
    assert (stall.prices(), stall.services.watermarks.of("prices"), len(stall.shop.asked)) == (before, marks, asked)


def test_a_window_is_replayed_as_a_whole_or_not_at_all(stall: Stall) -> None:
    """Where something of it is not kept any more, that is named, and what to do instead."""
    first = stall.bring([price("a", 1)])
    second = stall.bring([price("a", 2, 2)])
    expire(stall, f"kind = 'raw' and run = '{first.id}'")
    with pytest.raises(RawDataGone, match=f"what was fetched by {first.id} .all. is not kept any more; leave those shards out"):
        of_window(stall, first, second)


def test_a_window_that_has_got_another_run_is_another_request(stall: Stall, edit: Any) -> None:
    """The result of an earlier replay does not stand for what has come since."""
    first = stall.bring([price("a", 1, note="fine")])
    window = Window(start=first.created_at, end=first.created_at + timedelta(hours=1))
    edit(fields=NOTED)
    ask = RunRequest(sync="prices", mode=Mode.REPLAY, window=window, origin=Origin())
    once, again = run_inline(stall.services, ask), run_inline(stall.services, ask)
    assert once.request_key == again.request_key
    stall.bring([price("a", 1, note="fine"), price("b", 2)])
    assert run_inline(stall.services, ask).request_key != once.request_key


UNVERSIONED = {"object": {"key": ["id"]}}


def test_older_data_overwrites_nothing_newer_though_no_version_tells(stall: Stall, edit: Any) -> None:
    """What a later run has written or deleted stays, counted as stale; what that run left alone is mapped again."""
    edit(**UNVERSIONED)
    first = stall.bring([price("a", 1, note="a"), price("b", 2, note="b"), price("gone", 3, note="gone")])
    later = stall.bring([price("a", 1, note="a"), price("b", 9, note="b")])
    stall.answer(later, Choice.APPROVE, deletes_at_most=1)
    edit(fields=NOTED, **UNVERSIONED)
    run = replay(stall, first)
    assert (stall.prices(), stall.review_of(run).figures.count(Outcome.STALE)) == ({"a": 1.0, "b": 9.0}, 2)
    assert notes(stall)[:2] == [("a", "a"), ("b", None)]


def test_what_was_taken_back_is_no_newer_data(stall: Stall, edit: Any) -> None:
    """A publication went wrong and was taken back: what it had written does not stand in the way, nor does the undoing."""
    edit(**UNVERSIONED)
    first = stall.bring([price("a", 1, note="a"), price("b", 2, note="b")])
    stall.bring([price("a", 1, note="a"), price("b", 9, note="b")])
    undone = stall.publications()[-1]
    undoing = RunRequest(sync="prices", mode=Mode.ROLLBACK, undoes=undone.id, origin=Origin())
    stall.answer(run_inline(stall.services, undoing), Choice.APPROVE)
    edit(fields=NOTED, **UNVERSIONED)
    run = replay(stall, first)
    assert (run.status, stall.review_of(run).figures.count(Outcome.STALE)) == (RunStatus.SUCCEEDED, 0)
    assert notes(stall) == [("a", "a"), ("b", "b")]


def test_what_was_deleted_since_does_not_reappear(stall: Stall, edit: Any) -> None:
    """With a version, too: the one that was deleted is the one that comes again."""
    first = stall.bring([price("a", 1), price("gone", 3)])
    later = stall.bring([price("a", 1)])
    stall.answer(later, Choice.APPROVE, deletes_at_most=1)
    edit(fields=NOTED)
    run = replay(stall, first)
    assert (stall.prices(), stall.review_of(run).figures.count(Outcome.STALE)) == ({"a": 1.0}, 1)


def test_the_same_chunk_is_not_mapped_twice(stall: Stall, edit: Any) -> None:
    """A replay under the same spec has what its run has made of the raw data, rejects and all; under another, nothing."""
    needed = {"name": "note", "type": "text", "required": True}
    edit(fields=[*SYNC["fields"], needed])
    first = stall.bring([price("a", 1, note="fine"), price("b", 2)])
    stall.answer(first, Choice.APPROVE)
    with capture_logs() as logs:
        run = replay(stall, first)
    (reused,) = [entry for entry in logs if entry["event"] == log_events.CHUNK_REUSED]
    assert (reused["objects"], reused["rejected"], reused["made_in"]) == (1, 1, first.id)
    assert log_events.CHUNK_TRANSFORMED not in {entry["event"] for entry in logs}
    for kind in (ArtifactKind.ROWS, ArtifactKind.REJECTS):
        (pointer,), (made,) = stall.services.pointers.of(run.id, kind), stall.services.pointers.of(first.id, kind)
        assert pointer.sha256 == made.sha256
    assert stall.review_of(run).figures.count(Outcome.REJECTED) == 1
    edit(fields=[*SYNC["fields"], needed], version=2)
    with capture_logs() as logs:
        replay(stall, first)
    assert log_events.CHUNK_REUSED not in {entry["event"] for entry in logs}


def test_damaged_rows_are_not_reused(stall: Stall, tmp_path: Path) -> None:
    """They are made anew, of the raw data; and what the ledger has forgotten meanwhile is mapped in full."""
    first = stall.bring([price("a", 1)])
    again = replay(stall, first)
    for pointer in stall.services.pointers.of(first.id, ArtifactKind.ROWS):
        stall.services.artifacts.remove(pointer)
    shutil.rmtree(tmp_path / "cache")
    with capture_logs() as logs:
        run = replay(stall, first, force=True)
    assert (again.status, run.status) == (RunStatus.SUCCEEDED, RunStatus.SUCCEEDED)
    assert {log_events.ARTIFACT_CORRUPT, log_events.CHUNK_TRANSFORMED} <= {entry["event"] for entry in logs}
