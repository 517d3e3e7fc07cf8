"""The pattern in which a supplier writes dates or times comes in; why it cannot be used goes out.

A pattern is one of `strptime`, without what depends on the language of the machine or leaves a part of the date open.
"""

import re
from datetime import datetime, timedelta, timezone
from typing import Final

EPOCHS: Final = ("epoch_s", "epoch_ms")
"""The formats that are no patterns: numbers since 1970."""

LONGEST: Final = 100
"""Characters of a pattern, and of what is read by one."""

_DIRECTIVE: Final = re.compile(r"%.?", re.DOTALL)
_LOCAL: Final = frozenset({"%c", "%x", "%X", "%Z"})
_YEARS: Final = frozenset({"%Y", "%y", "%G"})
# No two of its parts are alike, nor what they are when nothing tells them.
_SAMPLE: Final = datetime(2023, 11, 27, 21, 43, 56, 123456, timezone(timedelta(hours=5, minutes=30)))


def refused(pattern: str, *, tells_time: bool) -> str | None:
    """Return why a pattern cannot be used; None: it can."""
    if len(pattern) > LONGEST:
        return f"has {len(pattern)} characters, but may have at most {LONGEST}"
    directives = set(_DIRECTIVE.findall(pattern))
    if local := sorted(directives & _LOCAL):
        return f"uses {', '.join(local)}, which means something else on other machines: write out its parts"
    if not directives & _YEARS:
        return "tells no year (%Y)"
    try:
        read = datetime.strptime(_SAMPLE.strftime(pattern), pattern)  # noqa: DTZ007 - that is looked at
    except (ValueError, re.error) as error:
        return f"is no pattern: {error}"
    if read.date() != _SAMPLE.date():
        return "does not tell year, month and day"
    return _time_refused(read, tells_time=tells_time)


def has_offset(pattern: str) -> bool:
    """Whether what is written so tells its offset from UTC."""
    return "%z" in _DIRECTIVE.findall(pattern)


def _time_refused(read: datetime, *, tells_time: bool) -> str | None:
    if not tells_time and read.tzinfo is not None:
        return "has an offset (%z), and a date has none"
    told = [read.hour, read.minute, read.second, read.microsecond]
    there = [_SAMPLE.hour, _SAMPLE.minute, _SAMPLE.second, _SAMPLE.microsecond]
    known = next((place for place in range(len(told), 0, -1) if told[:place] == there[:place]), 0)
    return "does not tell the time of day: %H before %M before %S before %f, and %p beside %I" if any(told[known:]) else None
