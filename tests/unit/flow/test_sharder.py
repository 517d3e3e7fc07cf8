"""Shards come from the pinned spec, restricted to what was asked for, each with its watermark."""

from datetime import UTC, datetime, timedelta

import pytest
from structlog.testing import capture_logs

from sluice import log_events
from sluice.errors import RedoNeeded, ShardsUnusable, StateUnreadable, SupplierUnavailable, UsageInvalid
from sluice.flow.admission import admit
from sluice.flow.fetcher import fetch
from sluice.flow.shard_plans import WHOLE
from sluice.flow.sharder import plan_shards
from sluice.model.base import RunId, ShardKey, Token
from sluice.model.canary import CanarySpec
from sluice.model.lifecycle import RunStatus, ShardStatus, Step
from sluice.model.run import Mode, Origin, RunRequest, Window
from sluice.model.shard import ShardPlan
from sluice.model.sharding import ShardValues
from tests.unit.fakes.shard_finder import ListedShardFinder
from tests.unit.flow.test_shard_plans import LISTED
from tests.unit.flow.workshop import MAY, NORTH, RUN, Workshop, page, sync_spec

SPRING = datetime(2024, 3, 20, tzinfo=UTC)
FILES = {"kind": "files", "connection": "drop", "files": ["*.csv"], "format": "csv"}


def test_plans_a_shard_for_each_value() -> None:
    """Each declared value becomes a pending shard that its templates can see, and the run stands at `shard`."""
    workshop = Workshop()
    workshop.admit()
    with capture_logs() as logs:
        shards = plan_shards(workshop.services, RUN)
    assert [(shard.key, shard.params, shard.status, shard.watermark) for shard in shards] == [
        ("north", {"region": "north"}, ShardStatus.PENDING, None),
        ("south", {"region": "south"}, ShardStatus.PENDING, None),
    ]
    run = workshop.memory.runs[RUN]
    assert (run.status, run.step) == (RunStatus.RUNNING, Step.SHARD)
    planned = [entry for entry in logs if entry["event"] == log_events.SHARDS_PLANNED]
    assert [(entry["shards"], entry["with_watermark"]) for entry in planned] == [(2, 0)]


def test_a_sync_without_shards_has_one() -> None:
    """Where the spec declares none, the whole is one shard without values."""
    workshop = Workshop(spec=sync_spec(shards=None))
    workshop.admit()
    (shard,) = plan_shards(workshop.services, RUN)
    assert (shard.key, shard.params) == (WHOLE, {})


@pytest.mark.parametrize(("mode", "mark"), [(Mode.INCREMENTAL, "2024-01-01"), (Mode.FULL, None)])
def test_only_incremental_runs_start_at_watermarks(mode: Mode, mark: str | None) -> None:
    """An incremental run takes each shard's own watermark; a full run looks at everything."""
    workshop = Workshop()
    workshop.memory.watermarks["hotels", NORTH] = ("2024-01-01", Token(0))
    workshop.memory.watermarks["hotels", ShardKey("gone")] = ("2023-01-01", Token(0))
    workshop.admit(mode=mode)
    assert [shard.watermark for shard in plan_shards(workshop.services, RUN)] == [mark, None]


def test_a_window_is_not_cut_off_at_the_watermark() -> None:
    """It says itself what is asked for, most of it published long ago."""
    source = sync_spec().source
    assert source.kind == "rest"
    query = source.query | {"until": "{{ window.end }}"}
    workshop = Workshop(spec=sync_spec(source=source.model_copy(update={"query": query})))
    workshop.memory.watermarks["hotels", NORTH] = ("2024-05-01", Token(0))
    workshop.admit(mode=Mode.INCREMENTAL, window=Window(start=SPRING, end=SPRING + timedelta(days=9)))
    assert [shard.watermark for shard in plan_shards(workshop.services, RUN)] == [None, None]


def test_a_subset_is_planned_alone() -> None:
    """A run that asks for some shards gets those."""
    workshop = Workshop()
    workshop.admit(shards=("south",))
    assert [shard.key for shard in plan_shards(workshop.services, RUN)] == ["south"]


def test_unknown_shards_are_refused() -> None:
    """A shard nobody declared is named, with those that are; the run fails by it."""
    workshop = Workshop()
    workshop.admit(shards=("east", "north"))
    with pytest.raises(UsageInvalid, match="hotels has no shard east; its shards: north, south"):
        plan_shards(workshop.services, RUN)
    assert workshop.memory.shards == {}
    assert workshop.memory.runs[RUN].status is RunStatus.FAILED


def test_planning_again_changes_no_shard() -> None:
    """Shards that exist stay as they are, cursor, watermark and all."""
    workshop = Workshop()
    workshop.admit()
    plan_shards(workshop.services, RUN)
    workshop.services.shards.claim(RUN, NORTH)
    before = dict(workshop.memory.shards)
    workshop.memory.watermarks["hotels", NORTH] = ("2024-01-01", Token(0))
    plan_shards(workshop.services, RUN)
    assert workshop.memory.shards == before


def city(name: str) -> ShardPlan:
    """Plan a shard that a supplier has listed."""
    return ShardPlan(key=ShardKey(name), params={"city": name})


def test_a_supplier_is_asked_once_for_what_there_is() -> None:
    """A sharder that is tried again stays with its plan: what is listed by then belongs to the next run."""
    workshop = Workshop(spec=sync_spec(shards=LISTED), finder=ListedShardFinder([city("oslo")], [city("rome")]))
    workshop.admit()
    assert [shard.key for shard in plan_shards(workshop.services, RUN)] == ["oslo"]
    assert [shard.key for shard in plan_shards(workshop.services, RUN)] == ["oslo"]
    assert len(workshop.finder.questions) == 1


def test_a_list_that_cannot_be_had_plans_nothing() -> None:
    """The next try asks again; a list that is no good fails the run."""
    lost = SupplierUnavailable("503")
    workshop = Workshop(spec=sync_spec(shards=LISTED), finder=ListedShardFinder(lost, ShardsUnusable("empty")))
    workshop.admit()
    with pytest.raises(SupplierUnavailable):
        plan_shards(workshop.services, RUN)
    assert (workshop.memory.shards, workshop.memory.runs[RUN].status) == ({}, RunStatus.RUNNING)
    with pytest.raises(ShardsUnusable):
        plan_shards(workshop.services, RUN)
    assert (workshop.memory.shards, workshop.memory.runs[RUN].status) == ({}, RunStatus.FAILED)


def test_a_file_that_is_not_new_is_told_from_none() -> None:
    """Who asks for it by name learns which runs have it."""
    workshop = Workshop(spec=sync_spec(source=FILES, shards=None), finder=ListedShardFinder([]))
    workshop.admit(mode=Mode.INCREMENTAL, shards=("a.csv",))
    with pytest.raises(UsageInvalid, match=r"no shard a\.csv; its shards: none \(files that are as they were published"):
        plan_shards(workshop.services, RUN)


def test_a_run_with_nothing_new_has_succeeded() -> None:
    """An incremental run that finds no new file is over, and nobody waits for shards."""
    workshop = Workshop(spec=sync_spec(source=FILES, shards=None), finder=ListedShardFinder([]))
    workshop.admit(mode=Mode.INCREMENTAL)
    for _ in range(2):
        assert plan_shards(workshop.services, RUN) == []
        assert workshop.memory.runs[RUN].status is RunStatus.SUCCEEDED


def test_of_thousands_of_shards_some_are_named() -> None:
    """Who asks for one that there is not is not answered with a page of others."""
    plans = [city(f"{number:04}") for number in range(2_000)]
    workshop = Workshop(spec=sync_spec(shards=LISTED), finder=ListedShardFinder(plans))
    workshop.admit(shards=("0001", "oslo"))
    with pytest.raises(UsageInvalid, match=r"no shard oslo; its shards: 0000, .*, 0009, and 1,990 more$"):
        plan_shards(workshop.services, RUN)


def test_who_goes_on_from_a_dead_run_stays_with_its_plan() -> None:
    """What is listed by then belongs to the next run, or values could be missed between two lists."""
    workshop = Workshop(spec=sync_spec(shards=LISTED), finder=ListedShardFinder([city("oslo"), city("rome")], [city("bern")]))
    workshop.begin(mode=Mode.FULL)
    workshop.supply(page(1, ("a", MAY), is_last=True))
    fetch(workshop.services, RUN, ShardKey("oslo"))
    workshop.memory.clock.move(timedelta(hours=1))
    second = RunId("run-2")
    admit(workshop.services, RunRequest(sync="hotels", mode=Mode.FULL, origin=Origin()), second)
    shards = plan_shards(workshop.services, second)
    assert [(shard.key, shard.exhausted, shard.params) for shard in shards] == [
        ("oslo", True, {"city": "oslo"}),
        ("rome", False, {"city": "rome"}),
    ]
    assert len(workshop.finder.questions) == 1


def test_files_that_came_after_a_dead_run_join_its_plan() -> None:
    """Each file is read by itself, so that none has to wait for the next run; a sharder that is tried again stays with them."""
    finder = ListedShardFinder([city("may")], [city("may"), city("june")], [city("july")])
    workshop = Workshop(spec=sync_spec(source=FILES, shards=None), finder=finder)
    workshop.begin(mode=Mode.FULL)
    workshop.memory.clock.move(timedelta(hours=1))
    second = RunId("run-2")
    admit(workshop.services, RunRequest(sync="hotels", mode=Mode.FULL, origin=Origin()), second)
    for _ in range(2):
        assert [shard.key for shard in plan_shards(workshop.services, second)] == ["june", "may"]
    assert len(finder.questions) == 2


def test_a_listed_shard_whose_row_makes_no_sense_is_asked_for_again() -> None:
    """Its values are in the list alone; where that has it no more, nobody can say what it was."""
    for now, mended in ((["oslo", "rome"], True), (["rome"], False)):
        finder = ListedShardFinder([city("oslo"), city("rome")], [city(name) for name in now])
        workshop = Workshop(spec=sync_spec(shards=LISTED), finder=finder)
        workshop.begin(mode=Mode.FULL)
        workshop.memory.unreadable.add(("shard", "oslo"))
        with pytest.raises(RedoNeeded if mended else StateUnreadable):
            plan_shards(workshop.services, RUN)
        assert (("shard", "oslo") in workshop.memory.unreadable) is not mended


@pytest.mark.parametrize(("version", "made"), [(None, {1, 2}), (1, {1}), (2, {2})])
def test_a_canary_makes_its_share_unless_a_version_is_named(version: int | None, made: set[int]) -> None:
    """Each shard says by which version it is made; a named version makes all of them."""
    values = ShardValues(kind="values", name="region", values=tuple(f"region-{number}" for number in range(40)))
    canary = CanarySpec.model_validate({"version": 2, "share": "50%"})
    workshop = Workshop(spec=sync_spec(shards=values, canary=canary))
    run = workshop.admit(version=version)
    shards = plan_shards(workshop.services, RUN)
    assert {shard.version_in(run) for shard in shards} == made
    if version is None:
        assert [shard.version_in(run) == 2 for shard in shards] == [canary.makes("hotels", shard.key) for shard in shards]
