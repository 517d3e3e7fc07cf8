"""Instants as suppliers write them in texts come in; their exact places in time, and earlier ones spelled alike, go out.

A text is kept as it came, with all its digits, and is never rounded: its place is its microsecond and the digits behind that.
One without an offset is read in a zone. In the hour that comes twice when clocks go back it may mean either of two instants; in
the one that is left out when they go forward, none. Both are read as the earlier instant they may stand for.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from sluice.mapping.violation import LOCAL_TIME, OUT_OF_RANGE, TYPE, Violation, shown
from sluice.model.scalars import spell_instant

Place = tuple[int, str]
"""Microseconds since 1970, and the digits that follow, without trailing zeros: the order of such pairs is that of instants."""

_WRITTEN: Final = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}(?::[0-9]{2})?)"
    r"(?:(?<=:[0-9]{2}:[0-9]{2})\.([0-9]+))?([Zz]|[+-][0-9]{2}(?::?[0-5][0-9])?)?"
).fullmatch
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - reckoned with apart from its offset
_FIRST: Final = datetime(1, 1, 1)  # noqa: DTZ001 - as above
_MICROSECOND: Final = timedelta(microseconds=1)
_SECOND: Final = timedelta(seconds=1)
_MICROSECOND_DIGITS: Final = 6
_SEPARATOR: Final = 10


@dataclass(frozen=True)
class _Parts:
    """A text taken apart."""

    wall: datetime
    """What clocks show, in whole seconds."""
    separator: str
    fraction: str
    offset: str


@dataclass(frozen=True)
class WrittenInstants:
    """Reads texts; those without an offset in one zone."""

    zone: ZoneInfo | None
    """None: UTC, and what is spelled here has its offset."""

    def place(self, text: str) -> Place:
        """Return where in time a text stands; raise `Violation` if it is no instant."""
        parts = _taken_apart(text)
        elapsed = parts.wall - _EPOCH - self._offset(parts, text)
        digits = parts.fraction[:_MICROSECOND_DIGITS].ljust(_MICROSECOND_DIGITS, "0")
        return elapsed // _SECOND * 10**_MICROSECOND_DIGITS + int(digits), parts.fraction[_MICROSECOND_DIGITS:].rstrip("0")

    def lowered(self, text: str, lookback: timedelta) -> str:
        """Return a text from which on nothing at or above this one is missed, less a lookback, in the same spelling.

        Without an offset it never stands in an hour that comes twice, but before that: a supplier that goes by the text alone
        would miss what it wrote when its clocks had gone back.
        """
        parts, seconds = _taken_apart(text), -(-lookback // _SECOND) * _SECOND
        if parts.offset:
            return _spelled(parts, _earlier(parts.wall, seconds), parts.offset) if seconds else text
        zone = self.zone or UTC
        wall = _earlier(parts.wall, seconds) if self.zone is None else _earlier_in(self.zone, parts.wall, seconds)
        start = _start_of_twice(wall, zone) if isinstance(zone, ZoneInfo) else None
        if start is not None:
            wall = _earlier(start, _SECOND)
        return text if wall == parts.wall else _spelled(parts, wall, "")

    def spelled(self, moment: datetime) -> str:
        """Return a moment as a text: on the clocks of the zone, or in UTC with its Z."""
        if self.zone is None:
            return spell_instant(moment)
        return moment.astimezone(self.zone).replace(tzinfo=None).isoformat()

    def _offset(self, parts: _Parts, text: str) -> timedelta:
        if parts.offset:
            try:
                return datetime.fromisoformat(f"2000-01-01T00:00{parts.offset.upper()}").utcoffset() or timedelta()
            except ValueError:
                raise Violation(OUT_OF_RANGE, f"{shown(text)} has an offset that no clock has") from None
        return timedelta() if self.zone is None else _offsets(parts.wall, self.zone)[0]


def place_of(moment: datetime) -> Place:
    """Return where in time a moment stands."""
    return (moment.astimezone(UTC).replace(tzinfo=None) - _EPOCH) // _MICROSECOND, ""


def offset_in(zone: ZoneInfo, wall: datetime, text: str) -> timedelta:
    """Return the offset from UTC that clocks of a zone have when they show a time, which came as a text.

    Raises `Violation` if they never show it, or twice: then the text alone does not say when it was.
    """
    first, second = _as_clocks_go(wall, zone)
    if first > second:
        raise Violation(LOCAL_TIME, f"{shown(text)} comes twice in {zone.key}, whose clocks go back then")
    if first < second:
        raise Violation(LOCAL_TIME, f"{shown(text)} does not come in {zone.key}, whose clocks go forward then")
    return first


def _taken_apart(text: str) -> _Parts:
    match = _WRITTEN(text)
    if not match:
        raise Violation(TYPE, f"{shown(text)} is no timestamp (YYYY-MM-DDThh:mm:ss, with or without an offset)")
    wall, fraction, offset = match.groups()
    try:
        return _Parts(datetime.fromisoformat(wall.upper()), text[_SEPARATOR], fraction or "", offset or "")
    except ValueError:
        raise Violation(OUT_OF_RANGE, f"{shown(text)} is not in the calendar (years 0001 to 9999)") from None


def _spelled(parts: _Parts, wall: datetime, offset: str) -> str:
    fraction = f".{parts.fraction}" if parts.fraction else ""
    return f"{wall.isoformat(parts.separator, 'seconds')}{fraction}{offset}"


def _earlier(wall: datetime, seconds: timedelta) -> datetime:
    return wall - seconds if wall - _FIRST >= seconds else _FIRST


def _earlier_in(zone: ZoneInfo, wall: datetime, seconds: timedelta) -> datetime:
    """Return what the clocks of a zone showed so much earlier."""
    if not seconds:
        return wall
    try:
        return ((wall - _offsets(wall, zone)[0] - seconds).replace(tzinfo=UTC).astimezone(zone)).replace(tzinfo=None)
    except OverflowError:
        return _FIRST


def _offsets(wall: datetime, zone: ZoneInfo) -> tuple[timedelta, timedelta]:
    """Return the offsets of the earlier and the later instant that clocks may mean; mostly they are one."""
    found = _as_clocks_go(wall, zone)
    return max(found), min(found)


def _start_of_twice(wall: datetime, zone: ZoneInfo) -> datetime | None:
    """Return when the hour begins that comes twice and that the clocks show; None if they show another."""
    if not _comes_twice(wall, zone):
        return None
    earlier, later = _offsets(wall, zone)
    before, inside = _earlier(wall, earlier - later), wall
    while inside - before > _SECOND:
        middle = before + (inside - before) // 2 // _SECOND * _SECOND
        before, inside = (before, middle) if _comes_twice(middle, zone) else (middle, inside)
    return inside


def _comes_twice(wall: datetime, zone: ZoneInfo) -> bool:
    first, second = _as_clocks_go(wall, zone)
    return first > second


def _as_clocks_go(wall: datetime, zone: ZoneInfo) -> tuple[timedelta, timedelta]:
    """Return the offset before and behind a change of the clocks at that time; mostly there is none, and they are one."""
    first, second = (wall.replace(tzinfo=zone, fold=fold).utcoffset() or timedelta() for fold in (0, 1))
    return first, second
