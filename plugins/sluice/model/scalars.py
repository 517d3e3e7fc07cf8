"""Small values as people write them: durations (`90s`), moments, sizes (`16MB`), limits (`5` or `2.5%`)."""

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, Final
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, model_validator

from sluice.model.base import Frozen

_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_LONGEST: Final = timedelta(days=36500)
_FIRST_YEAR: Final = 1000
_LAST_YEAR: Final = 9000
"""What people mean lies between them; beyond, a time zone or an interval more would be no date any more."""
_SIZES: Final = {"kB": 1000, "MB": 1000**2, "GB": 1000**3}


def as_written(value: Any) -> str:
    """Return a value as YAML has it, for messages: `null`, `true`, or as Python spells it."""
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _parse_duration(value: Any) -> Any:
    if isinstance(value, timedelta):
        return value
    if isinstance(value, str) and (match := re.fullmatch(r"(\d{1,9}(?:\.\d{1,6})?)\s*([smhd])", value, re.ASCII)):
        seconds = Decimal(match[1]) * _UNITS[match[2]]
        if seconds <= _LONGEST.total_seconds():
            return timedelta(seconds=int(seconds), microseconds=int(seconds % 1 * 1_000_000))
    raise ValueError(f"{as_written(value)} is no duration: a number and a unit, at most {_LONGEST.days}d: 90s, 15m, 24h or 7d")


def spell_duration(value: timedelta) -> str:
    """Return a duration as people write it, in the largest unit that keeps it whole."""
    seconds = Decimal(value // timedelta(microseconds=1)) / 1_000_000
    unit = next((unit for unit in "dhm" if seconds and seconds % _UNITS[unit] == 0), "s")
    return f"{(seconds / _UNITS[unit]).normalize():f}{unit}"


def parse_moment(value: Any) -> datetime:
    """Return a moment as people write it; raise `ValueError` if it is none, or leaves open in which time zone."""
    try:
        moment = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise ValueError(f"{value!r} is no time such as 2026-01-31T00:00:00Z") from None
    if moment.tzinfo is None:
        raise ValueError(f"{value} has no time zone; write {moment.isoformat()}Z for UTC")
    if not _FIRST_YEAR <= moment.year <= _LAST_YEAR:
        raise ValueError(f"{value} is not in the years {_FIRST_YEAR} to {_LAST_YEAR}")
    return moment


def spell_instant(moment: datetime) -> str:
    """Return a moment that has a time zone in UTC, as ISO 8601 with a `Z`."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _known_zone(name: str) -> str:
    try:
        return ZoneInfo(name).key
    except (ValueError, KeyError, OSError):
        raise ValueError(f"{name!r} is no time zone such as Europe/Berlin") from None


def _parse_size(value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and (match := re.fullmatch(r"(\d{1,9})\s*(kB|MB|GB)", value, re.ASCII)):
        return int(match[1]) * _SIZES[match[2]]
    raise ValueError(f"{as_written(value)} is no size: a whole number of bytes, or one with a unit: 512kB, 16MB or 1GB")


Duration = Annotated[timedelta, BeforeValidator(_parse_duration), PlainSerializer(spell_duration, when_used="json")]
"""A span of time; in YAML and JSON a number with its unit."""

ZoneName = Annotated[str, AfterValidator(_known_zone)]
"""A time zone by its name: `Europe/Berlin`."""

Size = Annotated[int, BeforeValidator(_parse_size), Field(gt=0)]
"""A number of bytes; in YAML with a decimal unit (1 MB is 1,000,000 bytes)."""


def _parse_share(value: Any) -> Any:
    if isinstance(value, Decimal):
        return value
    if isinstance(value, str) and (match := re.fullmatch(r"(\d{1,3}(?:\.\d{1,6})?)\s*%", value, re.ASCII)):
        return Decimal(match[1]) / 100
    raise ValueError(f"{as_written(value)} is no share: a number and a percent sign, above 0% and up to 100%: 50% or 2.5%")


Share = Annotated[
    Decimal,
    BeforeValidator(_parse_share),
    Field(gt=0, le=1),
    PlainSerializer(lambda share: f"{share * 100:f}%", when_used="json"),
]
"""A share of a total, above nothing; in YAML with a percent sign."""


def _parse_percentage(value: Any) -> Any:
    if isinstance(value, str) and (match := re.fullmatch(r"(\d{1,3}(?:\.\d{1,6})?)\s*%", value, re.ASCII)):
        return Decimal(match[1]) / 100
    return value


class Limit(Frozen):
    """How many objects may have an outcome: a number, a share of a total, or both, of which the stricter counts."""

    count: int | None = Field(default=None, ge=0)
    share: Annotated[Decimal | None, BeforeValidator(_parse_percentage)] = Field(default=None, ge=0, le=1)

    @model_validator(mode="after")
    def _limits_something(self) -> "Limit":
        if self.count is None and self.share is None:
            raise ValueError("a limit needs a count, a share, or both")
        return self

    def allows(self, number: int, total: int) -> bool:
        """Whether `number` out of `total` is within the limit; none is always within it."""
        if number == 0:
            return True
        return (self.count is None or number <= self.count) and (self.share is None or number <= self.share * total)

    def __str__(self) -> str:
        """As people write it."""
        share = None if self.share is None else f"{(self.share * 100).normalize():f}%"
        return " and ".join(str(part) for part in (self.count, share) if part is not None)


def _parse_limit(value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return Limit(count=value)
    if isinstance(value, str) and (match := re.fullmatch(r"(\d{1,3}(?:\.\d{1,6})?)\s*%", value, re.ASCII)):
        share = Decimal(match[1]) / 100
        if share <= 1:
            return Limit(share=share)
    if isinstance(value, Limit | dict):
        return value
    raise ValueError(
        f"{as_written(value)} is no limit: a whole number of objects, a share up to 100%, or both: 0, 500, 0.5% or "
        "{ count: 500, share: 5% }"
    )


LimitValue = Annotated[Limit, BeforeValidator(_parse_limit)]
"""A `Limit` as written in YAML."""
