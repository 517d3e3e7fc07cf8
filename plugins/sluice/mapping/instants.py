"""Dates and instants as texts come in; the days and microseconds since 1970 that they are go out, and the other way round."""

import re
from datetime import UTC, date, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from sluice.mapping.violation import OUT_OF_RANGE, PRECISION, TYPE, Violation, shown
from sluice.mapping.written_times import since_1970
from sluice.model.scalars import spell_instant

_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}").fullmatch
_INSTANT: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.([0-9]+))?)?([Zz]|[+-][0-9]{2}(?::?[0-5][0-9])?)?"
).fullmatch
_USUAL_LENGTH: Final = 20
_MICROSECOND_DIGITS: Final = 6
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
EPOCH_DAY: Final = _EPOCH.toordinal()
_MICROSECOND: Final = timedelta(microseconds=1)
FIRST_INSTANT: Final = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
LAST_INSTANT: Final = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
DAY: Final = 86_400_000_000


def microseconds(moment: datetime) -> int:
    """Return the value of a moment."""
    return (moment - _EPOCH) // _MICROSECOND


def date_of(text: str) -> int:
    """Return the days since 1970 of a date; raise `Violation` if it is none."""
    if not _DATE(text):
        raise Violation(TYPE, f"{shown(text)} is no date (YYYY-MM-DD)")
    try:
        return date.fromisoformat(text).toordinal() - EPOCH_DAY
    except ValueError:
        raise Violation(OUT_OF_RANGE, f"{shown(text)} is not in the calendar (years 0001 to 9999)") from None


def date_text(value: int) -> str:
    """Return a date of so many days since 1970."""
    return date.fromordinal(value + EPOCH_DAY).isoformat()


def instant_of(text: str, zone: ZoneInfo | None = None) -> int:
    """Return the microseconds since 1970 of an instant, in a zone if it has no offset; raise `Violation` if it is none."""
    # Most are 2024-01-31T12:00:00Z: what stands between the signs that are looked at here, only two digits can be read as.
    if len(text) == _USUAL_LENGTH and text[4::3] == "--T::Z":
        try:
            elapsed = datetime.fromisoformat(text) - _EPOCH
        except ValueError:
            pass
        else:
            return elapsed.days * DAY + elapsed.seconds * 1_000_000
    match = _INSTANT(text)
    if not match:
        raise Violation(TYPE, f"{shown(text)} is no timestamp (YYYY-MM-DDThh:mm:ss with Z or an offset)")
    fraction, offset = match.groups()
    if not offset and zone is None:
        raise Violation(TYPE, f"{shown(text)} has no offset from UTC: a timestamp needs Z or ±hh:mm")
    if fraction and fraction[_MICROSECOND_DIGITS:].strip("0"):
        raise Violation(PRECISION, f"{shown(text)} is finer than a microsecond")
    try:
        moment = datetime.fromisoformat(text.upper())
    except ValueError:
        raise Violation(OUT_OF_RANGE, f"{shown(text)} is not in the calendar (years 0001 to 9999)") from None
    return value_since_1970(moment - _EPOCH if offset or zone is None else since_1970(moment, zone, text), text)


def value_since_1970(elapsed: timedelta, text: str) -> int:
    """Return the value of an instant that came as a text; raise `Violation` if it is beyond all that are taken."""
    value = elapsed.days * DAY + elapsed.seconds * 1_000_000 + elapsed.microseconds
    if not FIRST_INSTANT <= value <= LAST_INSTANT:
        raise Violation(OUT_OF_RANGE, f"{shown(text)} is outside the years 0001 to 9999 in UTC")
    return value


def instant_text(value: int) -> str:
    """Return an instant of so many microseconds since 1970, in UTC."""
    return spell_instant(_EPOCH + timedelta(microseconds=value))
