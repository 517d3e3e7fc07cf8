"""The pattern and the zone in which a supplier writes its times come in; what reads such texts exactly goes out."""

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from sluice.mapping.violation import PRECISION, TYPE, Violation, shown
from sluice.mapping.written_instants import offset_in
from sluice.model.formats import LONGEST

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def date_reader(pattern: str) -> Callable[[str], date]:
    """Return what reads dates written so."""

    def read(text: str) -> date:
        moment = _parsed(text, pattern, "date")
        if moment.time() != time():
            raise Violation(PRECISION, f"{shown(text)} has a time of day, which a date does not hold")
        return moment.date()

    return read


def moment_reader(pattern: str, zone: str | None) -> Callable[[str], timedelta]:
    """Return what reads instants written so, as the time since 1970; `zone` is that of texts without an offset."""
    clocks = None if zone is None else ZoneInfo(zone)

    def read(text: str) -> timedelta:
        moment = _parsed(text, pattern, "timestamp")
        return moment - _EPOCH if clocks is None else since_1970(moment, clocks, text)

    return read


def since_1970(wall: datetime, zone: ZoneInfo, text: str) -> timedelta:
    """Return what has passed since 1970 when the clocks of a zone show a time, which came as a text."""
    return wall.replace(tzinfo=UTC) - _EPOCH - offset_in(zone, wall, text)


def _parsed(text: str, pattern: str, what: str) -> datetime:
    try:
        if len(text) <= LONGEST:
            return datetime.strptime(text, pattern)  # noqa: DTZ007 - its zone is the caller's matter
    except ValueError:
        pass
    raise Violation(TYPE, f"{shown(text)} is no {what} written as {pattern}")
