"""What other tools get wrong about what is new at a supplier, each with the right outcome, through whole runs."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from sluice.flow.packet import evidence_of
from sluice.model.base import ShardKey
from sluice.model.ledger import Outcome
from sluice.model.lifecycle import RunStatus
from sluice.model.rows import Postdated
from sluice.model.run import Mode, Run
from sluice.ports import ConnectionInfo
from tests.support.stall import SYNC, Stall, open_stall, price

Opened = Callable[..., AbstractContextManager[Stall]]
WHOLE = ShardKey("all")


@pytest.fixture
def opened(tmp_path: Path, database: ConnectionInfo, artifacts: ConnectionInfo) -> Opened:
    """Open a stall whose watermark is declared so, its field being of this type."""

    def open_it(watermark: dict[str, Any], field: dict[str, Any], **sync: Any) -> AbstractContextManager[Stall]:
        source = {**SYNC["source"], "watermark": {"fields": ["updated_at"], **watermark}, **sync.pop("source", {})}
        fields = [*SYNC["fields"][:-1], {"name": "updated_at", **field}, *sync.pop("fields", [])]
        return open_stall(tmp_path, database, artifacts, {"source": source, "fields": fields, **sync})

    return open_it


@pytest.fixture
def stall(opened: Opened) -> Iterator[Stall]:
    """A stall whose things are dated with offsets."""
    with opened({}, {"type": "timestamptz"}) as stall:
        yield stall


def bring(stall: Stall, *things: dict[str, Any]) -> Run:
    """Let the supplier have just these things, and ask it for what is new."""
    run = stall.bring(things, Mode.INCREMENTAL)
    assert run.status is RunStatus.SUCCEEDED
    return run


def counted(stall: Stall, run: Run) -> dict[str, int]:
    """What a run has seen, and what became of it."""
    figures = stall.review_of(run).figures
    return {"seen": figures.seen, "unchanged": figures.unchanged, **{str(name): n for name, n in figures.outcomes.items()}}


def mark(stall: Stall) -> str | None:
    """From where on the next run asks, before any lookback."""
    return stall.services.watermarks.of("prices").get(WHOLE)


def since(stall: Stall) -> str | None:
    """From where on the last request asked."""
    return stall.shop.asked[-1].since


def at(time: str, **more: Any) -> dict[str, Any]:
    """A time as the supplier writes it."""
    return {"updated_at": time, **more}


def test_what_appears_at_the_very_instant_of_the_watermark_is_not_missed(stall: Stall) -> None:
    """(1, t=10:00), then (2, t=10:00): the second run brings 2, and 1 is unchanged."""
    bring(stall, price("1", 10, hour=10))
    second = bring(stall, price("1", 10, hour=10), price("2", 20, hour=10))
    assert since(stall) == "2026-01-01T10:00:00Z"
    assert counted(stall, second) == {"seen": 2, "unchanged": 1, "created": 1}
    assert stall.prices() == {"1": 10.0, "2": 20.0}


@pytest.mark.parametrize(("watermark", "kind"), [({}, "timestamptz"), ({"type": "instant"}, "text")])
def test_offsets_are_compared_as_instants(opened: Opened, watermark: dict[str, Any], kind: str) -> None:
    """10:00+02:00, then 09:00Z, which is later: it arrives, and the watermark is its."""
    with opened(watermark, {"type": kind}) as stall:
        stall.shop.reads = datetime.fromisoformat
        first, later = at("2026-01-01T10:00:00+02:00"), at("2026-01-01T09:00:00Z")
        bring(stall, price("1", 10, **first))
        second = bring(stall, price("1", 10, **first), price("2", 20, **later))
        assert counted(stall, second) == {"seen": 2, "unchanged": 1, "created": 1}
        assert mark(stall) == "2026-01-01T09:00:00Z"


def test_seven_digits_go_back_as_they_came(opened: Opened) -> None:
    """Finer than any column of ours, yet nothing is rounded: not the request, and not the order."""
    finer = "2026-01-01T10:00:00.1234567Z"
    with opened({"type": "instant"}, {"type": "text"}) as stall:
        bring(stall, price("1", 10, **at(finer)), price("2", 20, **at("2026-01-01T10:00:00.1234566Z")))
        assert mark(stall) == finer
        second = bring(stall, price("1", 10, **at(finer)), price("3", 30, **at("2026-01-01T10:00:00.1234568Z")))
        assert since(stall) == finer
        assert counted(stall, second) == {"seen": 2, "unchanged": 1, "created": 1}


@pytest.mark.parametrize("times", [*permutations(["2025-10-26T01:30:00", "2025-10-26T01:10:00"])])
def test_the_hour_that_comes_twice_loses_nothing(opened: Opened, times: tuple[str, str]) -> None:
    """01:30 twice on the night the clocks go back: what is written the second time round arrives, whichever came first."""
    with opened({"type": "instant", "zone": "Europe/London"}, {"type": "text"}) as stall:
        bring(stall, price("1", 10, **at(times[0])))
        second = bring(stall, price("1", 10, **at(times[0])), price("2", 20, **at(times[1])))
        assert since(stall) == "2025-10-26T00:59:59"
        assert counted(stall, second) == {"seen": 2, "unchanged": 1, "created": 1}


@pytest.mark.parametrize(("collation", "moved"), [("numeric", "10"), ("binary", "9")])
def test_nine_and_ten_as_texts(opened: Opened, collation: str, moved: str) -> None:
    """Both arrive; where texts are numbers the watermark is the higher number, else the later word."""
    with opened({"collation": collation}, {"type": "text"}) as stall:
        bring(stall, price("1", 10, **at("9")), price("2", 20, **at("10")))
        assert (stall.prices(), mark(stall)) == ({"1": 10.0, "2": 20.0}, moved)


def test_what_commits_late_is_brought_by_the_lookback(opened: Opened) -> None:
    """A row with a time just below the saved watermark arrives, the others count as unchanged, and the watermark stands."""
    with opened({"lookback": "30m"}, {"type": "timestamptz"}) as stall:
        old, first = price("0", 5, hour=9), price("1", 10, hour=10)
        bring(stall, old, first)
        second = bring(stall, old, first, price("2", 20, **at("2026-01-01T09:45:00Z")))
        assert since(stall) == "2026-01-01T09:30:00Z"
        assert counted(stall, second) == {"seen": 2, "unchanged": 1, "created": 1}
        assert mark(stall) == "2026-01-01T10:00:00Z"


def test_a_row_dated_2099_moves_no_watermark(stall: Stall) -> None:
    """Both arrive, the first is flagged, the watermark is today's; the row of 2099 is asked for again, and is unchanged."""
    ahead, today = price("far", 10, **at("2099-01-01T00:00:00Z")), price("now", 20, hour=10)
    run = bring(stall, ahead, today)
    assert stall.prices() == {"far": 10.0, "now": 20.0}
    assert mark(stall) == "2026-01-01T10:00:00Z"
    found = evidence_of(stall.services, stall.review_of(run))
    assert found is not None
    assert found.postdated == Postdated(objects=1, key="far", value="2099-01-01T00:00:00Z")  # type: ignore[arg-type]
    again = bring(stall, ahead, today)
    assert counted(stall, again) == {"seen": 2, "unchanged": 2}
    assert mark(stall) == "2026-01-01T10:00:00Z"


def test_within_the_margin_nothing_is_believed_to_be_complete(opened: Opened) -> None:
    """What is younger than the margin is taken in, moves no watermark, and is asked for again; yet it is not postdated."""
    now = datetime.now(UTC)
    young, old = (f"{now - timedelta(minutes=minutes):%Y-%m-%dT%H:%M:%SZ}" for minutes in (30, 90))
    with opened({"margin": "1h"}, {"type": "timestamptz"}) as stall:
        run = bring(stall, price("1", 10, **at(young)), price("2", 20, **at(old)))
        assert (stall.prices(), mark(stall)) == ({"1": 10.0, "2": 20.0}, old)
        found = evidence_of(stall.services, stall.review_of(run))
        assert found is not None
        assert found.postdated is None


def test_a_template_may_bound_what_is_asked_for(opened: Opened) -> None:
    """By the supplier's own time, less the margin, where something new is asked for; a full run asks for all there is."""
    query = {"region": "all", "since": "{{ watermark }}", "until": "{{ until }}"}
    with opened({"margin": "1h"}, {"type": "timestamptz"}, source={"query": query}) as stall:
        before = datetime.now(UTC) - timedelta(hours=1, minutes=1)
        bring(stall, price("1", 10, hour=10))
        until = stall.shop.asked[-1].until
        assert until is not None
        assert before < datetime.fromisoformat(until) < datetime.now(UTC) - timedelta(minutes=59)
        stall.bring([price("1", 10, hour=10)], Mode.FULL)
        assert stall.shop.asked[-1].until is None


@pytest.mark.parametrize(
    ("field", "first", "second"),
    [
        ({"type": "timestamptz", "format": "epoch_s"}, 1767261600, "1767261600.000001"),
        ({"type": "timestamptz", "format": "epoch_ms"}, "1767261600000", 1767261600001),
    ],
)
def test_an_epoch_goes_back_as_the_number_it_is(opened: Opened, field: dict[str, Any], first: Any, second: Any) -> None:
    """In seconds, milliseconds and as text: exactly, and the supplier is asked in its own form."""
    with opened({}, field) as stall:
        stall.shop.reads = float
        bring(stall, price("1", 10, updated_at=first))
        bring(stall, price("1", 10, updated_at=first), price("2", 20, updated_at=second))
        assert since(stall) == str(first)
        assert mark(stall) == str(second)
        ((gap,),) = stall.sql("select extract(microseconds from max(updated_at) - min(updated_at)) from prices")
        assert gap == (1 if field["format"] == "epoch_s" else 1000)


def test_the_first_and_the_last_day_there_is(opened: Opened) -> None:
    """Dates 0001 and 9999 are held as they are, and a lookback below the first stops there."""
    with opened({"lookback": "30d"}, {"type": "date"}, fields=[{"name": "until", "type": "date"}]) as stall:
        bring(stall, price("1", 10, updated_at="0001-01-01", until="9999-12-31"))
        assert stall.sql("select updated_at::text, until::text from prices") == [("0001-01-01", "9999-12-31")]
        bring(stall, price("1", 10, updated_at="0001-01-01", until="9999-12-31"))
        assert (since(stall), mark(stall)) == ("0001-01-01", "0001-01-01")


def test_an_id_that_is_a_number_on_one_page_and_a_text_on_the_next(stall: Stall) -> None:
    """A field of type text reads both as one object: neither is lost, none is there twice, and the newer version counts."""
    filler = [price(f"x{number}", 1, hour=2) for number in range(2)]
    things = [price("7", 10, version=1, hour=1) | {"id": 7}, *filler, price("7", 20, version=2, hour=3)]
    run = stall.bring(things)
    assert stall.shop.pages_asked()["all"] == 2
    assert counted(stall, run) == {"seen": 3, "unchanged": 0, "created": 3}
    assert stall.prices() == {"7": 20.0, "x0": 1.0, "x1": 1.0}
    assert [(event.outcome, event.source_version) for event in stall.events("7")] == [(Outcome.CREATED, 2)]


def test_of_several_fields_the_first_that_is_not_null_counts(opened: Opened) -> None:
    """What was never changed is new by when it was created."""
    source = {"watermark": {"fields": ["changed_at", "updated_at"]}}
    fields = [{"name": "changed_at", "type": "timestamptz"}]
    with opened({}, {"type": "timestamptz"}, source=source, fields=fields) as stall:
        bring(stall, price("1", 10, hour=3, changed_at=None), price("2", 20, hour=9, changed_at="2026-01-01T02:00:00Z"))
        assert mark(stall) == "2026-01-01T03:00:00Z"


def test_a_watermark_of_another_type_is_set_aside(opened: Opened) -> None:
    """Somebody has made a number of what was a date: nothing is missed, everything is asked for once more."""
    with opened({}, {"type": "bigint"}) as stall:
        bring(stall, price("1", 10, updated_at=7))
        stall.sql("update sluice_state.watermark set value = '2026-01-01T00:00:00Z'")
        bring(stall, price("1", 10, updated_at=7), price("2", 20, updated_at=3))
        assert since(stall) is None
        assert (stall.prices(), mark(stall)) == ({"1": 10.0, "2": 20.0}, "7")


def test_a_table_is_asked_from_its_watermark_on(tmp_path: Path, database: ConnectionInfo, artifacts: ConnectionInfo) -> None:
    """Rows dated ahead of the database's clock are taken in as well; what commits late is brought by the lookback."""
    watermark = {"fields": ["updated_at"], "lookback": "30m"}
    source = {"kind": "sql", "connection": "warehouse", "table": "stock", "key": ["id"], "watermark": watermark}
    with open_stall(tmp_path, database, artifacts, {"source": source}) as stall:
        stall.sql("create table stock (id text primary key, price numeric, version bigint, more jsonb, updated_at timestamptz)")
        stall.sql("insert into stock values ('far', 1, 1, null, '2099-01-01Z'), ('now', 2, 1, null, '2026-01-01T10:00Z')")
        run = bring(stall)
        assert (stall.prices(), mark(stall)) == ({"far": 1.0, "now": 2.0}, "2026-01-01T10:00:00Z")
        found = evidence_of(stall.services, stall.review_of(run))
        assert found is not None
        assert str(found.postdated) == "dated after the fetch: 1, first: far 2099-01-01T00:00:00Z"
        stall.sql(
            "insert into stock values ('late', 3, 1, null, '2026-01-01T09:45Z'), ('old', 4, 1, null, '2026-01-01T09:00Z')"
        )
        assert counted(stall, bring(stall)) == {"seen": 3, "unchanged": 2, "created": 1}
        assert (stall.prices(), mark(stall)) == ({"far": 1.0, "now": 2.0, "late": 3.0}, "2026-01-01T10:00:00Z")
