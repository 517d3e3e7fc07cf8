"""The pattern and the zone in which a supplier writes its times come in; what reads such texts exactly goes out."""

import re
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from sluice.mapping.violation import PRECISION, TYPE, Violation, shown
from sluice.mapping.written_instants import offset_in
from sluice.model.formats import LONGEST

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_WORDS: Final = re.compile(r"[0-9]+|[^\W0-9]+").findall
"""The numbers and the words of a text."""

_FRACTION: Final = "\ufffe"
"""Stands for the digits of a fraction; no letter, it is in no text."""


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
            moment = datetime.strptime(text, pattern)  # noqa: DTZ007 - its zone is the caller's matter
            if _says(text, moment, pattern):
                return moment
    except ValueError:
        pass
    raise Violation(TYPE, f"{shown(text)} is no {what} written as {pattern}")


def _says(text: str, moment: datetime, pattern: str) -> bool:
    """Whether a text says nothing but the moment it was read as.

    Python guesses where a zero is left out between digits (2024111 for %Y%m%d), goes on to the next year behind the last day of
    one, and passes over what contradicts the rest: a weekday, or PM beside %H. What stands behind an offset is not looked at.
    """
    if moment.strftime(pattern) == text:
        return True
    said = [_alike(word) for word in _WORDS(text)]
    spelled = ([_alike(word) for word in _WORDS(ours)] for ours in _spellings(moment, pattern.partition("%z")[0]))
    return any(said[: len(words)] == words for words in spelled)


def _alike(word: str) -> str:
    """Return a word whatever its case, and a number whatever zeros it begins with."""
    return word.casefold().lstrip("0")


def _spellings(moment: datetime, pattern: str) -> Iterator[str]:
    """Yield how a moment is written, by number of the digits of its fraction."""
    fraction = f"{moment.microsecond:06}"
    spelled = moment.strftime(pattern.replace("%Y", f"{moment.year:04}").replace("%f", _FRACTION))
    yield spelled.replace(_FRACTION, fraction)
    for digits in range(1, len(fraction)) if _FRACTION in spelled else ():
        if not fraction[digits:].strip("0"):
            yield spelled.replace(_FRACTION, fraction[:digits])
