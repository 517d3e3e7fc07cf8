"""Shards in groups: each worked on by itself, helped with by others, and answered for by its own group."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime

import pytest

from sluice.airflow_glue.shard_groups import fetch_group, spread, transform_group
from sluice.errors import (
    AnswerNotJson,
    Fenced,
    RateLimited,
    ShardsFailed,
    StateUnavailable,
    SupplierResting,
    SupplierUnavailable,
)
from sluice.model.base import RunId, ShardKey
from sluice.model.lifecycle import RunStatus, ShardStatus, Step
from sluice.model.shard import Shard
from tests.support.nouns import a_run
from tests.unit.fakes.memory import Memory
from tests.unit.fakes.shard_store import MemoryShardStore

RUN = RunId("run")


class Bench:
    """Shards in memory, and a fetch that does as it is told."""

    def __init__(self, keys: Iterable[str]) -> None:
        self.memory = Memory()
        self.memory.runs[RUN] = a_run(RUN, status=RunStatus.RUNNING, step=Step.FETCH)
        self.memory.lease_ttls[RUN] = self.memory.clock.now() - self.memory.clock.now()
        self.store = MemoryShardStore(self.memory)
        self.errors: dict[str, Exception] = {}
        self.meanwhile: dict[str, Callable[[], object]] = {}
        self.fetched: list[str] = []
        for key in keys:
            self.put(key, ShardStatus.PENDING)

    def put(self, key: str, status: ShardStatus, *, exhausted: bool = False) -> None:
        """Let a shard stand like this."""
        place = RUN, ShardKey(key)
        self.memory.shards[place] = Shard(
            run=RUN, key=place[1], params={}, status=status, exhausted=exhausted, token=self.memory.next_token()
        )

    def fetch(self, key: ShardKey) -> Shard:
        """Claim the shard and fetch it, or fail as told."""
        shard = self.store.claim(RUN, key)
        if key in self.meanwhile:
            self.meanwhile.pop(key)()
        if key in self.errors:
            raise self.errors[key]
        self.fetched.append(key)
        self.put(key, ShardStatus.RUNNING, exhausted=True)
        return shard

    def fetch_group(self, *keys: str) -> list[Shard]:
        """Let one mapped task fetch its group."""
        return fetch_group(self.store, RUN, [ShardKey(key) for key in keys], self.fetch)


def test_few_shards_have_a_task_each() -> None:
    """While the groups suffice, each shard's task carries its key."""
    keys = [ShardKey("a"), ShardKey("b")]
    assert spread(keys, 2) == [{"name": "a", "shards": ["a"]}, {"name": "b", "shards": ["b"]}]


def test_many_shards_are_spread_evenly_over_the_groups() -> None:
    """Every shard is in one group, and no group has two more than another."""
    keys = [ShardKey(f"{n:03}") for n in range(100)]
    groups = spread(keys, 7)
    sizes = [len(group["shards"]) for group in groups]  # type: ignore[arg-type]
    assert len(groups) == 7
    assert sorted(key for group in groups for key in group["shards"]) == keys  # type: ignore[attr-defined]
    assert max(sizes) - min(sizes) <= 1


def test_one_failing_shard_stops_no_other() -> None:
    """The rest of the group is fetched, and the error names the shard, the kind of error and its message."""
    bench = Bench(["a", "b", "c"])
    bench.errors["a"] = AnswerNotJson("no JSON")
    with pytest.raises(ShardsFailed, match="1 of 3 shards failed: a: AnswerNotJson: no JSON") as caught:
        bench.fetch_group("a", "b", "c")
    assert bench.fetched == ["b", "c"]
    assert not caught.value.facts["is_retryable"]


@pytest.mark.parametrize("error", [SupplierUnavailable("gone"), ZeroDivisionError("a mistake of ours")])
def test_a_group_is_worth_retrying_if_one_of_its_shards_is(error: Exception) -> None:
    """An error that may pass, or that nobody foresaw, lets Airflow retry the group."""
    bench = Bench(["a", "b", "c"])
    bench.errors |= {"a": AnswerNotJson("no JSON"), "b": error}
    with pytest.raises(ShardsFailed) as caught:
        bench.fetch_group("a", "b", "c")
    assert caught.value.facts["is_retryable"]


def test_a_pause_holds_back_the_whole_group() -> None:
    """Once a supplier sends one shard away none is asked for, neither its own nor another group's; all wait until then."""
    bench = Bench(["a", "b", "c", "d"])
    due = datetime(2026, 1, 1, tzinfo=UTC)
    bench.errors |= {"a": AnswerNotJson("no JSON"), "b": RateLimited("later", retry_after=400, until=due)}
    with pytest.raises(ShardsFailed, match=r"2 of 3 shards failed: a: .*; b: .*; 1 more wait") as caught:
        bench.fetch_group("a", "b", "c")
    assert bench.fetched == []
    assert caught.value.facts["until"] == due
    assert caught.value.facts["shards"] == ["a", "b", "c"]


def test_a_group_that_met_a_pause_while_helping_is_done() -> None:
    """It helps no further, and the pause is the matter of whose shard it was."""
    bench = Bench(["a", "b", "c", "d"])
    bench.errors["c"] = SupplierResting("it failed too often", until=datetime(2026, 1, 1, tzinfo=UTC))
    assert [shard.key for shard in bench.fetch_group("a", "b")] == ["a", "b"]
    assert bench.fetched == ["a", "b"]


def test_an_error_of_the_whole_run_stops_the_group_at_once() -> None:
    """What no shard can be fetched without is not tried again for each of them."""
    bench = Bench(["a", "b"])
    bench.errors["a"] = StateUnavailable("the database is gone")
    with pytest.raises(StateUnavailable):
        bench.fetch_group("a", "b")
    assert bench.fetched == []


def test_the_only_shard_of_a_task_fails_with_its_own_error() -> None:
    """A task of one shard says what happened, without a wrapping."""
    bench = Bench(["a"])
    bench.errors["a"] = AnswerNotJson("no JSON")
    with pytest.raises(AnswerNotJson):
        bench.fetch_group("a")


def test_a_group_that_is_done_helps_the_others() -> None:
    """Whoever is through takes pending shards of other groups, whose failures are not his."""
    bench = Bench(["a", "b", "c", "d"])
    bench.errors["c"] = SupplierUnavailable("gone")
    assert [shard.key for shard in bench.fetch_group("a", "b")] == ["a", "b"]
    assert bench.fetched == ["a", "b", "d"]


def test_a_group_takes_back_what_a_helper_left_unfinished() -> None:
    """A shard that another worker has taken is left to it at first, and taken over in the end unless it came in."""
    bench = Bench(["a", "b", "c"])
    bench.put("b", ShardStatus.RUNNING)
    bench.put("c", ShardStatus.RUNNING)
    bench.meanwhile["a"] = lambda: bench.put("c", ShardStatus.RUNNING, exhausted=True)
    bench.fetch_group("a", "b", "c")
    assert bench.fetched == ["a", "b"]


def test_a_helper_that_loses_a_shard_to_its_group_goes_on() -> None:
    """To be fenced while helping is no failure."""
    bench = Bench(["a", "b", "c"])
    bench.errors["c"] = Fenced("taken over")
    bench.fetch_group("a", "b")
    assert bench.fetched == ["a", "b"]


def test_a_retry_fetches_only_what_is_missing() -> None:
    """What came in before the retry is not claimed again."""
    bench = Bench([])
    bench.put("a", ShardStatus.SUCCEEDED, exhausted=True)
    bench.put("b", ShardStatus.RUNNING, exhausted=True)
    bench.put("c", ShardStatus.FAILED)
    bench.put("d", ShardStatus.RUNNING)
    bench.fetch_group("b", "c", "d")
    assert bench.fetched == ["c", "d"]


def test_only_what_was_fetched_is_transformed() -> None:
    """A shard without all its pages is left alone; a group without any fetched shard says so."""
    bench = Bench(["a", "b"])
    bench.put("c", ShardStatus.RUNNING, exhausted=True)
    seen: list[str] = []

    def transform(key: ShardKey) -> Shard:
        seen.append(key)
        return bench.memory.shards[RUN, key]

    keys = [ShardKey(key) for key in "abc"]
    assert [shard.key for shard in transform_group(bench.store, RUN, keys, transform)] == ["c"]
    assert seen == ["c"]
    with pytest.raises(ShardsFailed, match="nothing was fetched of a, b"):
        transform_group(bench.store, RUN, keys[:2], transform)


def test_of_hundreds_that_failed_some_are_named() -> None:
    """What is told of them fits a log, and a person's patience."""
    keys = [f"{number:03}" for number in range(300)]
    bench = Bench(keys)
    bench.errors |= {key: AnswerNotJson("no JSON") for key in keys}
    with pytest.raises(ShardsFailed, match=r"300 of 300 shards failed: 000: .*; 009: [^;]*; and 290 more$") as caught:
        bench.fetch_group(*keys)
    assert len(caught.value.facts["shards"]) == 300
