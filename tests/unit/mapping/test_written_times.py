"""Dates and instants that suppliers write in ways of their own, and on clocks of their own."""

from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sluice.mapping.exact import exact_field
from sluice.mapping.violation import Violation
from sluice.model.fields import FieldSpec
from tests.unit.mapping.workbench import map_records, rows_of, sync_spec

BERLIN = ZoneInfo("Europe/Berlin")
DATES = st.sampled_from(["%d.%m.%Y", "%Y%m%d", "%m/%d/%Y", "%d %b %Y", "%Y-%j", "%G-W%V-%u"])
TIMES = st.sampled_from(["%d.%m.%Y %H:%M:%S.%f", "%m/%d/%Y %I:%M:%S.%f %p", "%Y%m%dT%H%M%S%f"])


def written(kind: str, **keys: Any) -> FieldSpec:
    """A field that is written so."""
    return FieldSpec.model_validate({"name": "at", "type": kind, **keys})


def spelled(moment: date, pattern: str) -> str:
    """A moment by a pattern; the years before 1000 with all their digits."""
    full = f"{moment.year:04}"
    return moment.strftime(pattern.replace("%Y", full))


@given(day=st.dates(date(1900, 1, 1)), pattern=DATES)
@settings(deadline=None)
def test_every_date_goes_round(day: date, pattern: str) -> None:
    """However it is written, the field holds the same day."""
    assert exact_field(written("date", format=pattern)).from_text(spelled(day, pattern)) == day.toordinal() - 719163


@given(
    wall=st.datetimes(datetime(1000, 1, 1), datetime(9999, 12, 30)),  # noqa: DTZ001 - what clocks show
    pattern=TIMES,
    zone=st.sampled_from(["Europe/Berlin", "America/New_York", "Asia/Kolkata", "Pacific/Apia"]),
)
@settings(deadline=None)
def test_every_instant_goes_round(wall: datetime, pattern: str, zone: str) -> None:
    """To the microsecond; on clocks as they went, wherever they show the time once."""
    first, second = (wall.replace(tzinfo=ZoneInfo(zone), fold=fold).utcoffset() for fold in (0, 1))
    assume(first == second)
    value = exact_field(written("timestamptz", format=pattern, zone=zone)).from_text(spelled(wall, pattern))
    elapsed = wall.replace(tzinfo=UTC) - (first or timedelta()) - datetime(1970, 1, 1, tzinfo=UTC)
    assert value == elapsed // timedelta(microseconds=1)
    iso = exact_field(written("timestamptz", zone=zone))
    assert iso.from_text(wall.isoformat()) == iso.from_text(f"{(wall - (first or timedelta())).isoformat()}Z") == value


@pytest.mark.parametrize(
    ("kind", "keys", "token", "value"),
    [
        ("date", {"format": "%d.%m.%Y"}, '"31.01.2024"', "2024-01-31"),
        ("date", {"format": "%Y%m%d"}, "20240131", "2024-01-31"),
        ("date", {"format": "%d%m%Y"}, "9022024", "2024-02-09"),
        ("date", {"format": "%m/%d/%Y"}, '"1/5/2024"', "2024-01-05"),
        ("date", {"format": "%a %d.%m.%Y"}, '"FRI 05.01.2024"', "2024-01-05"),
        ("timestamptz", {"format": "%Y%m%d%H%M%S%f", "zone": "UTC"}, '"2024013109080750"', "2024-01-31 09:08:07.500000+00:00"),
        ("timestamptz", {"format": "%Y%m%d%H%M%z"}, '"202401311100+01:00"', "2024-01-31 10:00:00+00:00"),
        ("date", {"format": "%Y-%m-%dT%H:%M:%S"}, '"2024-01-31T00:00:00"', "2024-01-31"),
        (
            "timestamptz",
            {"format": "%d.%m.%Y %H:%M", "zone": "Europe/Berlin"},
            '"31.01.2024 10:00"',
            "2024-01-31 09:00:00+00:00",
        ),
        ("timestamptz", {"format": "%d.%m.%Y %H:%M %z"}, '"31.01.2024 10:00 -0500"', "2024-01-31 15:00:00+00:00"),
        ("timestamptz", {"zone": "Europe/Berlin"}, '"2024-07-31T10:00:00"', "2024-07-31 08:00:00+00:00"),
        ("timestamptz", {"zone": "Europe/Berlin"}, '"2024-07-31T10:00:00Z"', "2024-07-31 10:00:00+00:00"),
        ("timestamptz", {"format": "%Y-%m-%d", "zone": "Asia/Tokyo"}, '"2024-01-31"', "2024-01-30 15:00:00+00:00"),
    ],
)
def test_written_otherwise(kind: str, keys: dict[str, str], token: str, value: str) -> None:
    """As texts, and as numbers where those are what the pattern makes."""
    chunk = map_records(sync_spec({"id": "text", "at": {"type": kind, **keys}}), f'{{"id": "1", "at": {token}}}')
    (row,) = rows_of(chunk)
    assert str(row["at"]) == value


LOCAL = {"format": "%Y-%m-%d %H:%M", "zone": "Europe/Berlin"}


@pytest.mark.parametrize(
    ("kind", "keys", "token", "error", "message"),
    [
        ("date", {"format": "%d.%m.%Y"}, '"31.02.2024"', "type", '"31.02.2024" is no date written as %d.%m.%Y'),
        ("date", {"format": "%d.%m.%Y"}, '"2024-01-31"', "type", '"2024-01-31" is no date written as %d.%m.%Y'),
        ("date", {"format": "%d.%m.%Y"}, '""', "type", "an empty string is no date"),
        ("date", {"format": "%d.%m.%Y"}, "true", "type", "true is a boolean, not date"),
        (
            "date",
            {"format": "%d.%m.%Y %H"},
            '"31.01.2024 01"',
            "precision",
            '"31.01.2024 01" has a time of day, which a date does not hold',
        ),
        (
            "timestamptz",
            LOCAL,
            '"2024-03-31 02:30"',
            "local-time",
            '"2024-03-31 02:30" does not come in Europe/Berlin, whose clocks go forward then',
        ),
        (
            "timestamptz",
            LOCAL,
            '"2024-10-27 02:30"',
            "local-time",
            '"2024-10-27 02:30" comes twice in Europe/Berlin, whose clocks go back then',
        ),
        ("timestamptz", {"zone": "Europe/Berlin"}, '"2024-10-27T02:30:00"', "local-time", None),
        ("timestamptz", {"zone": "Europe/Berlin"}, '"0001-01-01T00:00:00"', "out-of-range", None),
        ("timestamptz", {"zone": "Europe/Berlin"}, '"2024-10-27T02:30:00.1234567"', "precision", None),
        ("date", {"format": "%Y%m%d"}, "2024111", "type", '"2024111" is no date written as %Y%m%d'),
        ("date", {"format": "%d%m%Y"}, "1022024", "type", None),
        ("date", {"format": "%Y-%j"}, '"2023-366"', "type", None),
        ("date", {"format": "%a %d.%m.%Y"}, '"Mon 05.01.2024"', "type", None),
        ("timestamptz", {"format": "%Y-%m-%d %H:%M %p", "zone": "UTC"}, '"2024-01-31 09:00 PM"', "type", None),
        ("timestamptz", {"format": "%Y%m%d %H%M", "zone": "UTC"}, '"20240131 110"', "type", None),
        ("timestamptz", {"format": "%Y%m%d%H%M%S%f", "zone": "UTC"}, '"2024013111000"', "type", None),
        ("timestamptz", {"format": "%Y%m%d%H%M%z"}, '"2024013111+0000"', "type", None),
        ("timestamptz", LOCAL, f'"{"2024-10-27 02:30" + " " * 100}"', "type", None),
    ],
)
def test_what_is_no_such_time(kind: str, keys: dict[str, str], token: str, error: str, message: str | None) -> None:
    """It is rejected by name, and never taken for another."""
    chunk = map_records(sync_spec({"id": "text", "at": {"type": kind, **keys}}), f'{{"id": "1", "at": {token}}}')
    (reject,) = chunk.rejects
    assert (reject.key, reject.field, reject.error) == ("1", "at", error)
    assert message is None or reject.message == f"at: {message}"


def test_both_times_of_an_hour_that_comes_twice_are_told_by_their_offsets() -> None:
    """A zone is for texts that have none."""
    read = exact_field(written("timestamptz", zone="Europe/Berlin")).from_text
    assert read("2024-10-27T02:30:00+01:00") - read("2024-10-27T02:30:00+02:00") == 3_600_000_000
    with pytest.raises(Violation):
        read("2024-10-27T02:30:00")
