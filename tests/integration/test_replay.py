"""Replays: what was fetched once is mapped again as the spec has it now, reviewed and published, and no supplier is asked."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from sluice.errors import NotFound, RawDataGone, SluiceError, UsageInvalid
from sluice.flow.inline import run_inline
from sluice.model.artifact import ArtifactKind
from sluice.model.base import RunId, ShardKey
from sluice.model.ledger import Outcome
from sluice.model.lifecycle import RunStatus, ShardStatus, Verdict
from sluice.model.review import Choice
from sluice.model.run import Mode, Origin, Run, RunRequest, Window
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
        ({"mode": Mode.FULL}, UsageInvalid, "a replay names the run whose raw data it maps again"),
        ({"window": WINDOW}, UsageInvalid, "run it without a window"),
        ({"shards": (ShardKey("north"),)}, UsageInvalid, "has not fetched north to the end; it has: all"),
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
    assert [letter.reject.key for letter in stall.services.dead_letters.open_for("prices", 9)] == ["b"]
    edit(fields=[*SYNC["fields"], needed])
    replay(stall, first)
    assert (notes(stall), stall.services.dead_letters.open_for("prices", 9)) == ([("a", "fine"), ("b", "poor")], [])
