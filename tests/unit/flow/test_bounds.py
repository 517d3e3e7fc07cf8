"""The bounds of a shard: what is asked with, and up to when an answer is believed."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sluice.flow.bounds import Bounds
from sluice.mapping.watermarks import ChunkMarks, mark_order
from sluice.model.base import RunId, ShardKey, Token
from sluice.model.fields import FieldSpec
from sluice.model.lifecycle import ShardStatus
from sluice.model.run import Mode, Run, Window
from sluice.model.shard import Shard
from sluice.model.spec import SyncSpec
from sluice.ports import Page, PageRequest
from tests.support.nouns import NOW, a_run
from tests.unit.fakes.clock import FakeClock
from tests.unit.flow.workshop import MAY, sync_spec

TOLD = datetime(2026, 1, 31, 11, 59, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
INCREMENTAL = a_run(mode=Mode.INCREMENTAL)


class Told:
    """A source that tells what time it is."""

    def __init__(self, moment: datetime | None) -> None:
        self.moment = moment
        self.asked = 0

    def now(self) -> datetime | None:
        self.asked += 1
        return self.moment

    def pages(self, request: PageRequest) -> Any:
        raise NotImplementedError


def spec_of(query: str = "{{ watermark }}", **watermark: Any) -> SyncSpec:
    """A sync with one template and this watermark."""
    source = sync_spec().source.model_dump()
    return sync_spec(source={**source, "query": {"q": query}, "watermark": {"fields": ["updated_at"], **watermark}})


def shard_of(**changes: Any) -> Shard:
    """A shard that nobody has begun."""
    facts = {"run": RunId("run-1"), "key": ShardKey("north"), "params": {}, "status": ShardStatus.RUNNING, "token": Token(1)}
    return Shard.model_validate({**facts, **changes})


def page(supplied_at: datetime | None) -> Page:
    """A page that was sent then."""
    return Page(b"[]", 0, None, supplied_at)


def begun(spec: SyncSpec, source: Told, run: Run = INCREMENTAL, **shard: Any) -> tuple[Bounds, PageRequest]:
    """Begin to fetch."""
    bounds = Bounds(run, spec, FakeClock())
    return bounds, bounds.request(shard_of(**shard), source)


def test_the_first_page_tells_until_when_and_the_last_when_it_ended() -> None:
    """By the supplier's own clock; of the first page the margin is taken off."""
    source = Told(NOW)
    bounds, request = begun(spec_of(margin="5m"), source)
    for at in (TOLD, TOLD + MINUTE):
        bounds.take(page(at))
    assert bounds.columns == {"until": TOLD - 5 * MINUTE, "supplied_at": TOLD + MINUTE}
    assert (source.asked, request.until) == (0, None)


def test_where_a_template_uses_it_the_time_is_asked_for_first() -> None:
    """Once: whoever goes on from a checkpoint keeps what was told then."""
    spec, source = spec_of("{{ watermark }}{{ until }}", margin="1m"), Told(TOLD)
    bounds, request = begun(spec, source)
    bounds.take(page(TOLD + MINUTE))
    assert (bounds.until, request.until) == (TOLD - MINUTE, "2026-01-31T11:58:00Z")
    bounds, request = begun(spec, Told(NOW), until=TOLD - MINUTE)
    assert (bounds.until, request.until) == (TOLD - MINUTE, "2026-01-31T11:58:00Z")


@pytest.mark.parametrize("query", ["{{ watermark }}", "{{ watermark }}{{ until }}"])
def test_a_supplier_that_tells_no_time(query: str) -> None:
    """Then the run's own beginning counts, and its clock when the last page came."""
    bounds, _ = begun(spec_of(query), Told(None))
    bounds.take(page(None))
    assert bounds.columns == {"until": INCREMENTAL.created_at, "supplied_at": FakeClock().now()}


@pytest.mark.parametrize(
    "run", [a_run(mode=Mode.FULL), a_run(mode=Mode.INCREMENTAL, window=Window(start=TOLD, end=TOLD + MINUTE))]
)
def test_only_what_asks_for_news_is_bounded_above(run: Run) -> None:
    """A full run that left out what has just changed would take it for gone; a window has an end of its own."""
    bounds, request = begun(spec_of("{{ watermark }}{{ until }}"), Told(TOLD), run)
    assert (request.until, bounds.until) == (None, TOLD)


@pytest.mark.parametrize("told", [datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)])
def test_a_clock_may_stand_at_either_end_of_the_calendar(told: datetime) -> None:
    """What is reckoned from it, by whatever time zone, stays within."""
    for kind in (
        {"margin": "5m"},
        {"type": "date", "zone": "Pacific/Kiritimati"},
        {"type": "instant", "zone": "Europe/Berlin"},
    ):
        field = {"name": "updated_at", "type": "timestamptz" if "type" not in kind else "text"}
        spec = spec_of("{{ watermark }}{{ until }}", **kind)
        spec = spec.model_copy(update={"fields": (*(f for f in spec.fields if f.name != "updated_at"), FieldSpec(**field))})
        bounds, request = begun(spec, Told(told))
        bounds.take(page(told))
        order = mark_order(spec)
        assert order is not None
        assert order.is_mark(str(request.until))
        assert ChunkMarks(order, bounds.until, bounds.supplied_at).postdated is None


def test_what_an_older_release_has_begun_is_bounded_by_its_run() -> None:
    """Its pages may be as old as the run, so a page of today tells nothing of when they were sent."""
    source = Told(TOLD + MINUTE)
    bounds = Bounds(INCREMENTAL, spec_of(), FakeClock())
    bounds.request(shard_of(pages=3, cursor="c"), source)
    bounds.take(Page(b"[]", 0, None, TOLD + MINUTE))
    assert (bounds.until, source.asked) == (INCREMENTAL.created_at, 0)


def test_the_watermark_is_lowered() -> None:
    """By the lookback, each time anew from what is kept."""
    _, request = begun(spec_of(lookback="1h"), Told(None), watermark=MAY)
    assert request.watermark == "2024-04-30T23:00:00Z"


def test_a_watermark_that_is_none_is_set_aside() -> None:
    """Then all is asked for: nothing is missed, and nobody has to mend anything."""
    _, request = begun(spec_of(), Told(None), watermark="17")
    assert request.watermark is None


def test_without_a_watermark_there_are_no_bounds() -> None:
    """And whatever a shard was planned with is passed on as it is."""
    source = {**sync_spec().source.model_dump(), "watermark": None, "query": {}}
    bounds, request = begun(sync_spec(source=source), Told(TOLD), a_run(mode=Mode.FULL), watermark="an etag")
    bounds.take(page(TOLD))
    assert (request.watermark, bounds.columns) == ("an etag", {"until": None, "supplied_at": None})
