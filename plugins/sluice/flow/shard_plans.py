"""A spec and what its shards are wanted for come in; all its shards go out, each with the values its requests are made with."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from sluice.errors import ShardsUnusable, UsageInvalid
from sluice.model.base import ShardKey
from sluice.model.run import Mode, Run, Window
from sluice.model.scalars import spell_instant
from sluice.model.shard import ShardPlan
from sluice.model.sharding import MOST_SHARDS, BucketShards, RangeShards, ShardValues, WindowShards
from sluice.model.spec import SyncSpec
from sluice.ports import Services, ShardQuestion

WHOLE: Final = ShardKey("all")
"""The key of the only shard of a sync that declares none."""


def all_shards(
    services: Services, spec: SyncSpec, question: ShardQuestion, moved: Callable[[], None] = lambda: None
) -> list[ShardPlan]:
    """Return all shards of a sync; where its supplier lists them it is asked, and `moved` is called whenever it has answered.

    There are none only where an incremental run finds no new file. Raises `UsageInvalid` where no span of time is given,
    `ShardsUnusable`, and what `ShardFinder.find` raises.
    """
    match spec.sharding:
        case None:
            plans = [ShardPlan(key=WHOLE, params={})]
        case ShardValues() as values:
            plans = [ShardPlan(key=key, params={values.name: key}) for key in values.shard_keys]
        case RangeShards() as ranges:
            plans = list(_ranges(ranges))
        case WindowShards() as windows:
            plans = list(_windows(spec, windows, question))
        case BucketShards() as buckets:
            plans = list(_buckets(buckets))
        case _:
            plans = services.shard_finder(spec, services.policy(spec.stage)).find(question, moved)
    if len(plans) > MOST_SHARDS:
        raise ShardsUnusable(
            f"{spec.sync} would have {len(plans):,} shards, and {MOST_SHARDS:,} are the most: cut it into larger ones"
        )
    if not plans and question.mode is not Mode.INCREMENTAL:
        raise ShardsUnusable(f"there is no shard of {spec.sync}: what lists nothing is taken for out of order, not for empty")
    return plans


def by_version(spec: SyncSpec, plans: Sequence[ShardPlan]) -> list[ShardPlan]:
    """Return the plans with the version of the transformation that makes each, where a canary takes part."""
    canary = spec.canary
    if canary is None:
        return list(plans)
    return [
        plan.model_copy(
            update={"transformer_version": canary.version if canary.makes(spec.sync, plan.key) else spec.version},
        )
        for plan in plans
    ]


def question_of(services: Services, run: Run) -> ShardQuestion:
    """Return for what the shards of a run are wanted."""
    marks = marks_of(services, run.sync, run.mode, run.window)
    return ShardQuestion(mode=run.mode, window=run.window, begun_at=run.created_at, marks=marks)


def marks_of(services: Services, sync: str, mode: Mode, window: Window | None) -> Mapping[ShardKey, str]:
    """Return the watermarks from which a run goes on: none in a full run, and none within a window, most of which is below."""
    return services.watermarks.of(sync) if mode is Mode.INCREMENTAL and window is None else {}


def _ranges(ranges: RangeShards) -> Iterator[ShardPlan]:
    for key, (start, last) in zip(ranges.shard_keys, ranges.bounds(), strict=True):
        yield ShardPlan(key=key, params={"start": str(start), "end": str(last + 1), "last": str(last)})


def _windows(spec: SyncSpec, windows: WindowShards, question: ShardQuestion) -> Iterator[ShardPlan]:
    """Yield a shard for each span: of the run's window, else from the declared start to when the run was begun."""
    start = windows.start if question.window is None else question.window.start
    end = question.begun_at if question.window is None else question.window.end
    if start is None:
        raise UsageInvalid(f"{spec.sync} is cut into spans of time: give the run a window, or the spec shards.start")
    if start >= end:
        raise UsageInvalid(f"shards.start of {spec.sync} is {spell_instant(start)}, and the run begins before that")
    try:
        spans = windows.spans(start, end)
    except ValueError as exc:
        raise UsageInvalid(f"shards of {spec.sync}: {exc}") from exc
    for first, behind in spans:
        begins, ends = spell_instant(first), spell_instant(behind)
        yield ShardPlan(key=ShardKey(begins), params={"start": begins, "end": ends})


def _buckets(buckets: BucketShards) -> Iterator[ShardPlan]:
    for number, key in enumerate(buckets.shard_keys):
        yield ShardPlan(key=key, params={"bucket": str(number), "buckets": str(buckets.count)})
