"""Durations, sizes and limits: what is read, what is refused, and that they come back from JSON as they were."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from pydantic import TypeAdapter, ValidationError

from sluice.model.scalars import Duration, Limit, LimitValue, Size, spell_duration, spell_instant

DURATION: TypeAdapter[timedelta] = TypeAdapter(Duration)
SIZE: TypeAdapter[int] = TypeAdapter(Size)
LIMIT: TypeAdapter[Limit] = TypeAdapter(LimitValue)


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("90s", 90), ("15m", 900), ("24h", 86400), ("7d", 604800), ("0s", 0), ("1.5h", 5400), ("0.25s", 0.25), ("5 m", 300)],
)
def test_a_duration_is_a_number_and_a_unit(written: str, seconds: float) -> None:
    """Each unit counts for what it says, and fractions are exact."""
    assert DURATION.validate_python(written) == timedelta(seconds=seconds)


@pytest.mark.parametrize("written", ["", "5", 5, None, "5 days", "-5s", "1h30m", "P1D", "36501d", "999999999d", "٣s", True])
def test_what_is_no_duration_is_refused(written: Any) -> None:
    """A number without a unit, a sign, other notations, and what no clock could hold are refused."""
    with pytest.raises(ValidationError, match=r"is no duration: a number and a unit"):
        DURATION.validate_python(written)


@pytest.mark.parametrize(
    ("value", "spelled"),
    [
        (timedelta(0), "0s"),
        (timedelta(seconds=90), "90s"),
        (timedelta(hours=36), "36h"),
        (timedelta(days=100), "100d"),
        (timedelta(milliseconds=1500), "1.5s"),
        (timedelta(microseconds=1), "0.000001s"),
    ],
)
def test_a_duration_survives_json(value: timedelta, spelled: str) -> None:
    """JSON holds a duration as people write it, and gives the same one back."""
    assert spell_duration(value) == spelled
    assert DURATION.validate_json(DURATION.dump_json(value)) == value


@pytest.mark.parametrize(("written", "expected"), [(512, 512), ("512kB", 512_000), ("16MB", 16_000_000), ("1 GB", 10**9)])
def test_a_size_has_a_decimal_unit_or_none(written: Any, expected: int) -> None:
    """A size without a unit is in bytes; 1 MB is a million of them."""
    assert SIZE.validate_python(written) == expected


@pytest.mark.parametrize("written", [0, -1, "", "16", "16MiB", "1.5MB", "16mb", True, None])
def test_what_is_no_size_is_refused(written: Any) -> None:
    """Nothing, signs, fractions and other units are refused."""
    with pytest.raises(ValidationError):
        SIZE.validate_python(written)


@pytest.mark.parametrize(
    ("written", "number", "total", "allowed"),
    [
        (0, 0, 0, True),
        (0, 1, 100, False),
        (500, 500, 0, True),
        (500, 501, 10**6, False),
        ("0%", 0, 0, True),
        ("0%", 1, 10**6, False),
        ("5%", 5, 100, True),
        ("5%", 6, 100, False),
        ("0.1%", 1, 1000, True),
        ("0.1%", 1, 999, False),
        ("100%", 1, 0, False),
    ],
)
def test_a_limit_allows_up_to_itself(written: Any, number: int, total: int, allowed: bool) -> None:
    """A limit is inclusive, exact in its decimals, and a share of nothing allows nothing."""
    assert LIMIT.validate_python(written).allows(number, total) is allowed


@pytest.mark.parametrize("written", [-1, "-1%", "101%", "100.1%", "5", "", None, True, 0.5])
def test_what_is_no_limit_is_refused(written: Any) -> None:
    """Negative numbers, more than everything, and shares without their sign are refused."""
    with pytest.raises(ValidationError, match="is no limit"):
        LIMIT.validate_python(written)


@pytest.mark.parametrize("written", [0, 500, "5%", "0.5%", "100%"])
def test_a_limit_survives_json(written: Any) -> None:
    """JSON gives the same limit back, and text spells it as it was written."""
    limit = LIMIT.validate_python(written)
    assert LIMIT.validate_json(LIMIT.dump_json(limit)) == limit
    assert str(limit) == str(written)


def test_a_share_is_exact() -> None:
    """A share is a decimal, not a float."""
    assert LIMIT.validate_python("0.1%").share == Decimal("0.001")


@pytest.mark.parametrize(
    ("moment", "spelled"),
    [
        (datetime(2026, 7, 1, 12, tzinfo=UTC), "2026-07-01T12:00:00Z"),
        (datetime(2026, 7, 1, 12, 0, 0, 5, tzinfo=ZoneInfo("Europe/Berlin")), "2026-07-01T10:00:00.000005Z"),
        (datetime.min.replace(tzinfo=UTC), "0001-01-01T00:00:00Z"),
        (datetime.max.replace(tzinfo=UTC), "9999-12-31T23:59:59.999999Z"),
    ],
)
def test_an_instant_is_spelled_in_utc(moment: datetime, spelled: str) -> None:
    """Whatever zone it came in, with no more digits than it has."""
    assert spell_instant(moment) == spelled
