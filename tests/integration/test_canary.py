"""Two versions of the transformation side by side: a canary makes its share of the shards, and every row says who made it."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from sluice.errors import NotFound, RawDataGone, UsageInvalid
from sluice.flow.inline import run_inline
from sluice.flow.packet import evidence_of
from sluice.model import rows
from sluice.model.base import ObjectKey, ShardKey
from sluice.model.canary import CanarySpec
from sluice.model.comparison import Comparison
from sluice.model.ledger import Outcome
from sluice.model.lifecycle import RunStatus
from sluice.model.review import Choice
from sluice.model.run import Mode, Origin, Run, RunRequest
from sluice.model.spec import SyncSpec
from sluice.ports import ConnectionInfo
from sluice.upkeep.compare import Asked, compare
from tests.support.command_line import CommandLineHere
from tests.support.ledgered import Table
from tests.support.stall import SYNC, Stall, open_stall, price

REGIONS = ["north", "south"]
SHARE = "50%"
OTHERWISE = [{**field, **({"path": "list_price"} if field["name"] == "price" else {})} for field in SYNC["fields"]]
CANARY = {"version": 2, "share": SHARE, "fields": OTHERWISE}
SHARDED = {
    "shards": {"kind": "values", "name": "region", "values": REGIONS},
    "source": {**SYNC["source"], "query": {"region": "{{ shard.region }}"}, "watermark": None},
}
MADE = [key for key in REGIONS if CanarySpec.model_validate(CANARY).makes("prices", ShardKey(key))]


@pytest.fixture
def stall(tmp_path: Path, database: ConnectionInfo, artifacts: ConnectionInfo) -> Iterator[Stall]:
    with open_stall(tmp_path, database, artifacts, {**SHARDED, "canary": CANARY}, chunk_bytes=16_000_000) as stall:
        for region in REGIONS:
            stall.shop.things[region] = [price(f"of {region}", 1, list_price=2), price(f"same of {region}", 3, list_price=3)]
        yield stall


@pytest.fixture
def edit(tmp_path: Path) -> Any:
    """Edit the spec of the stall."""

    def edited(**changes: Any) -> None:
        (tmp_path / "include/syncs/prices.yaml").write_text(yaml.safe_dump({**SYNC, **SHARDED, **changes}, sort_keys=False))

    return edited


def run(stall: Stall, **changes: Any) -> Run:
    """Run the sync once."""
    return run_inline(stall.services, RunRequest(sync="prices", **{"mode": Mode.FULL, "origin": Origin(), **changes}))


def versions(stall: Stall) -> dict[str, set[int]]:
    """The versions that have made the rows of each shard, by the ledger."""
    found = stall.sql("select shard, array_agg(distinct transformer_version) from sluice_ledger.object group by shard")
    return {shard: set(made) for shard, made in found}


def test_a_version_that_takes_in_nothing_has_made_nothing(stall: Stall) -> None:
    """What it rejects is published as rejected, and is no part of what the publication has written."""
    for key in MADE:
        stall.shop.things[key] = [price(f"of {key}", 1, list_price="many")]
    made = run(stall)
    while made.status is RunStatus.WAITING:
        made = stall.answer(made, Choice.APPROVE)
    (publication,) = stall.publications()
    assert (publication.counts[Outcome.REJECTED], publication.transformer_versions) == (len(MADE), (1,))


def test_a_canary_makes_its_share_and_all_say_so(stall: Stall) -> None:
    """Shards, rows, events, the publication and the evidence of the review name the version; a second run has nothing to do."""
    first = run(stall)
    assert first.status is RunStatus.SUCCEEDED
    by_shard = {key: {2 if key in MADE else 1} for key in REGIONS}
    assert 0 < len(MADE) < len(REGIONS)
    assert versions(stall) == by_shard
    assert {shard.key: {shard.version_in(first)} for shard in stall.services.shards.of(first.id)} == by_shard
    assert stall.prices() == {
        **{f"of {key}": 2.0 if key in MADE else 1.0 for key in REGIONS},
        **{f"same of {key}": 3.0 for key in REGIONS},
    }
    assert {stall.events(f"of {key}")[0].transformer_version for key in MADE} == {2}
    assert stall.publications()[0].transformer_versions == (1, 2)
    found = evidence_of(stall.services, stall.review_of(first))
    assert found is not None
    assert [(made.version, made.shards, made.objects) for made in found.versions] == [
        (1, len(REGIONS) - len(MADE), 2 * (len(REGIONS) - len(MADE))),
        (2, len(MADE), 2 * len(MADE)),
    ]
    again = run(stall)
    assert (again.status, stall.review_of(again).figures.unchanged) == (RunStatus.SUCCEEDED, 2 * len(REGIONS))


def test_without_its_canary_its_rows_are_made_again(stall: Stall, edit: Any) -> None:
    """The supplier sends the same bytes: what the ledger remembers is another version's, so they are read anew."""
    run(stall)
    edit()
    last = run(stall)
    figures = stall.review_of(last).figures
    assert (figures.count(Outcome.CHANGED), figures.count(Outcome.REFRESHED)) == (len(MADE), len(MADE))
    assert versions(stall) == {key: {1} for key in REGIONS}
    assert set(stall.prices().values()) == {1.0, 3.0}


def test_taking_it_back_gives_back_the_version(stall: Stall, edit: Any) -> None:
    """A rollback puts back row and version, and its events say which that was."""
    edit()
    run(stall)
    edit(canary=CANARY)
    run(stall)
    undone = stall.publications()[-1]
    undoing = run_inline(stall.services, RunRequest(sync="prices", mode=Mode.ROLLBACK, undoes=undone.id, origin=Origin()))
    with pytest.raises(RawDataGone, match=f"run {undoing.id} has fetched nothing that could be compared"):
        laid(stall, 1, 2, of=undoing.id)
    assert stall.answer(undoing, Choice.APPROVE).status is RunStatus.SUCCEEDED
    changed = ObjectKey(f"of {MADE[0]}")
    held = stall.ledger.object("prices", changed)
    assert held is not None
    assert (held.transformer_version, [event.transformer_version for event in stall.events(changed)]) == (1, [1, 2, 1])
    assert (stall.prices()[changed], stall.publications()[-1].transformer_versions) == (1.0, (1,))


def test_a_named_version_makes_all_shards(stall: Stall) -> None:
    """Whatever the share; a run without a version is another request."""
    keys = set()
    for version in (1, 2):
        named = run(stall, version=version)
        assert (named.transformer_version, versions(stall)) == (version, {key: {version} for key in REGIONS})
        assert {stall.prices()[f"of {key}"] for key in REGIONS} == {float(version)}
        keys.add(named.request_key)
    assert len({*keys, run(stall).request_key}) == 3


def test_a_replay_has_the_canary_as_well(stall: Stall, edit: Any) -> None:
    """Its shards are made as those of any run are; with a named version all of them are."""
    edit()
    first = run(stall)
    edit(canary=CANARY)
    replayed = run(stall, mode=Mode.REPLAY, replays=first.id)
    assert (replayed.status, versions(stall)[MADE[0]]) == (RunStatus.SUCCEEDED, {2})
    run(stall, mode=Mode.REPLAY, replays=first.id, version=2)
    assert versions(stall) == {key: {2} for key in REGIONS}


def test_a_diff_of_an_older_release_is_published(database: ConnectionInfo) -> None:
    """It names no versions: all of its rows were made by that of the run."""
    table = Table(database, SyncSpec.model_validate({**SYNC, "source": {**SYNC["source"], "records": ""}}))
    try:
        reviewed = table.review(price("a", 1))
        sink = pa.BufferOutputStream()
        pq.write_table(pq.read_table(pa.BufferReader(reviewed.diff)).drop_columns([rows.TRANSFORMER_VERSION]), sink)
        made = table.publish(replace(reviewed, diff=bytes(sink.getvalue())))
        assert (made.transformer_versions, table.ledger_of("a")["transformer_version"]) == ((1,), 1)
    finally:
        table.close()


def laid(stall: Stall, first: int, second: int, **asked: Any) -> Comparison:
    """Compare two versions, and see that nothing was written."""
    told: list[tuple[int, int]] = []
    before = stall.sql("select count(*) from sluice_state.artifact")
    found = compare(stall.services, stall.services.spec("prices"), Asked(first, second, **asked), lambda *at: told.append(at))
    assert stall.sql("select count(*) from sluice_state.artifact") == before
    assert told == [(chunk, found.chunks) for chunk in range(1, found.chunks + 1)]
    return found


def test_two_versions_are_compared_over_what_is_stored(stall: Stall) -> None:
    """All of it, whatever the ledger remembers: which objects differ, in which fields, with examples."""
    first = run(stall)
    found = laid(stall, 1, 2)
    assert (found.run, found.shards, found.objects) == (first.id, len(REGIONS), 2 * len(REGIONS))
    assert (found.equal, found.differing, found.rejects) == (len(REGIONS), len(REGIONS), ())
    (price_differs,) = found.fields
    assert (price_differs.field, price_differs.objects) == ("price", len(REGIONS))
    assert price_differs.samples[0] == (f"of {REGIONS[0]}", "1.00", "2.00")
    some = laid(stall, 2, 1, of=first.id, shards=(ShardKey(REGIONS[1]),), samples=1)
    assert (some.shards, some.objects, some.fields[0].samples) == (1, 2, ((f"of {REGIONS[1]}", "2.00", "1.00"),))


def test_compare_as_a_person_calls_it(
    stall: Stall, tmp_path: Path, database: ConnectionInfo, artifacts: ConnectionInfo
) -> None:
    """A table of what differs, or all of it as JSON; it ends with 0 though they differ, with 2 where it makes no sense."""
    first = run(stall)
    sluice = CommandLineHere(tmp_path, {"sluice_state": database, "sluice_target": database, "sluice_artifacts": artifacts})
    told = sluice.ask("compare", "prices", "1", "2", "--of", first.id, "--shard", REGIONS[0], "--limit", "1")
    assert (told["objects"], told["differing"], told["fields"][0]["samples"]) == (2, 1, [[f"of {REGIONS[0]}", "1.00", "2.00"]])
    shown = sluice.call("compare", "prices", "1", "2")
    assert (shown.returncode, shown.stderr) == (0, "")
    lines = [" ".join(line.split()) for line in shown.stdout.splitlines()]
    assert f"differing {len(REGIONS)}" in lines
    assert f"price {len(REGIONS)} of {REGIONS[0]} '1.00' '2.00'" in lines
    assert sluice.ask("compare", "prices", "1", "1", code=2)["message"].startswith("version 1 would be compared with itself")


def test_what_one_version_alone_rejects_is_told_with_why(stall: Stall, edit: Any) -> None:
    """An object that neither takes in is no difference between them."""
    stall.shop.things[REGIONS[0]] = [
        price("a", 1, list_price="a lot"),
        price("b", None, list_price="much"),
        price("c", 2, list_price=2),
    ]
    stall.shop.things[REGIONS[1]] = [price("d", "dear", list_price="dear")]
    found = laid(stall, 1, 2, of=run(stall).id)
    (reject,) = found.rejects
    assert (reject.version, reject.field, reject.objects) == (2, "price", 2)
    assert [key for key, _ in reject.samples] == ["a", "b"]
    assert (found.rejected_by_both, found.rejected_by_one(1), found.rejected_by_one(2)) == (1, 0, 2)
    assert found.objects == found.equal + found.differing + 3


def test_a_version_of_an_older_run_is_still_known(stall: Stall, edit: Any) -> None:
    """By the spec it was admitted with; fields that one of the two lacks are named, and not compared."""
    run(stall)
    edit(version=3, fields=[*OTHERWISE, {"name": "note", "type": "text"}])
    found = laid(stall, 1, 3)
    assert (found.differing, found.only_in_first, found.only_in_second) == (len(REGIONS), (), ("note",))
    assert laid(stall, 2, 3).differing == 0
    with pytest.raises(NotFound, match="prices declares version 3, and of no run is a spec kept that had version 9"):
        laid(stall, 9, 3)


def test_what_cannot_be_compared_is_refused_by_name(stall: Stall) -> None:
    """Before anything is mapped."""
    with pytest.raises(NotFound, match="no full run of prices has succeeded"):
        laid(stall, 1, 2)
    first = run(stall)
    with pytest.raises(UsageInvalid, match="compared with itself"):
        laid(stall, 1, 1)
    with pytest.raises(UsageInvalid, match="has no shard atlantis"):
        laid(stall, 1, 2, shards=(ShardKey("atlantis"),))
    stall.sql(f"update sluice_state.artifact set superseded_at = now() where run = '{first.id}' and shard = '{REGIONS[0]}'")
    with pytest.raises(RawDataGone, match=f"of shard {REGIONS[0]} is not kept any more"):
        laid(stall, 1, 2)
    assert laid(stall, 1, 2, shards=(ShardKey(REGIONS[1]),)).shards == 1


def test_a_rejected_object_names_the_version_that_rejects_it(stall: Stall) -> None:
    """Its event is that of the canary where the canary makes its shard."""
    for region in REGIONS:
        stall.shop.things[region] = [price(f"of {region}", 1, list_price=1)]
    run(stall)
    for region in REGIONS:
        things = [price(f"of {region}", "dear", list_price="dear"), price(f"new of {region}", 1, list_price=1)]
        stall.shop.things[region] = things
    last = stall.answer(run(stall), Choice.APPROVE)
    assert last.status is RunStatus.SUCCEEDED
    told = {key: stall.events(f"of {key}")[-1] for key in REGIONS}
    assert {event.outcome for event in told.values()} == {Outcome.REJECTED}
    assert {key for key, event in told.items() if event.transformer_version == 2} == set(MADE)
