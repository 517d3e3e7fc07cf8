"""Watermarks: how the marks of a sync order, what they are as text, and what a chunk's records say of how far it has come.

The *mark* of a record is the value of the first watermark field that is not null. Its *text* is what is stored and what goes
back to the supplier: canonical for a field of a type of its own, as it came for a text. Its *place* is what it is compared by.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

from sluice.mapping.exact import ExactType, epoch_text, exact_field, exact_type
from sluice.mapping.instants import FIRST_INSTANT, microseconds
from sluice.mapping.violation import OUT_OF_RANGE, TYPE, Violation, shown
from sluice.mapping.written_instants import WrittenInstants, place_of
from sluice.model.base import ObjectKey
from sluice.model.fields import FieldType, TypeName
from sluice.model.rows import Postdated
from sluice.model.spec import SyncSpec
from sluice.model.watermark import WATERMARK_TYPES, WatermarkSpec, WatermarkType

_LONGEST: Final = 1_000
"""Characters of a mark: it has to travel in requests."""
_LONGEST_NUMBER: Final = 100
_DAY: Final = timedelta(days=1)
_MICROSECOND: Final = timedelta(microseconds=1)
_FIRST_DAY: Final = date.min.toordinal() - date(1970, 1, 1).toordinal()
_WHOLE_SECOND: Final = timedelta(seconds=1)
"""The `Date` header of an answer tells no less: what is dated within that second need not lie ahead."""
_DATE: Final = exact_type(FieldType(name=TypeName.DATE))


@dataclass(frozen=True)
class MarkOrder:
    """How the marks of one sync order. Each `Violation` says why a text is no mark."""

    is_verbatim: bool
    """Whether texts are kept as they came."""
    place: Callable[[str], Any]
    """Return the place of a text; raise `Violation`."""
    spell: Callable[[Any], str]
    """Return the text of a value that is no text itself."""
    lower: Callable[[str], str]
    """Return from which text on to ask so that nothing at or above this one is missed, less the lookback."""
    place_at: Callable[[datetime], Any] | None = None
    """Return the place of a moment; None: marks do not tell time."""
    spell_at: Callable[[datetime], str] | None = None
    """Return the text of a moment."""

    def is_mark(self, text: str) -> bool:
        """Whether a text is a mark of this order; one that was kept under another spec may not be."""
        try:
            self.place(text)
        except Violation:
            return False
        return True

    def placed(self, value: Any) -> tuple[Any, Any]:
        """Return the place of a field's value, and the value; raise `Violation` if it is no mark."""
        return (self.place(value) if self.is_verbatim else value), value

    def higher(self, mark: str | None, other: str | None) -> str | None:
        """Return the higher of two marks, the first of equal ones; any is higher than none."""
        if mark is None or other is None:
            return other if mark is None else mark
        return other if self.place(other) > self.place(mark) else mark

    def until(self, moment: datetime) -> str | None:
        """Return a moment as a mark; None if marks do not tell time."""
        return None if self.spell_at is None else self.spell_at(moment)


def mark_order(spec: SyncSpec) -> MarkOrder | None:
    """Return how the marks of a sync order; None if nothing makes it incremental but the names of its files."""
    watermark = spec.watermark
    if watermark is None:
        return None
    field = spec.field(watermark.fields[0])
    is_text = field.type.name is TypeName.TEXT
    match watermark.type or WATERMARK_TYPES[field.type.name]:
        case WatermarkType.INSTANT:
            return _written(watermark) if is_text else _instants(watermark, exact_field(field), field.format)
        case WatermarkType.DATE:
            return _dates(watermark, is_verbatim=is_text)
        case WatermarkType.INTEGER:
            return _integers(watermark, is_verbatim=is_text)
        case WatermarkType.TEXT:
            if watermark.collation == "numeric":
                return _integers(watermark, is_verbatim=True)
            return MarkOrder(is_verbatim=True, place=_bounded, spell=str, lower=str)


def _instants(watermark: WatermarkSpec, kind: ExactType, written: str | None) -> MarkOrder:
    spell: Callable[[Any], str] = kind.to_text if written is None else lambda value: epoch_text(value, written)
    back = _duration(watermark) // _MICROSECOND
    return MarkOrder(
        is_verbatim=False,
        place=kind.from_text,
        spell=spell,
        lower=lambda text: spell(max(FIRST_INSTANT, kind.from_text(text) - back)),
        place_at=microseconds,
        spell_at=lambda moment: spell(microseconds(moment)),
    )


def _written(watermark: WatermarkSpec) -> MarkOrder:
    instants, back = WrittenInstants(ZoneInfo(watermark.zone) if watermark.zone else None), _duration(watermark)
    return MarkOrder(
        is_verbatim=True,
        place=lambda text: instants.place(_bounded(text)),
        spell=str,
        lower=lambda text: instants.lowered(text, back),
        place_at=place_of,
        spell_at=instants.spelled,
    )


def _dates(watermark: WatermarkSpec, *, is_verbatim: bool) -> MarkOrder:
    zone = ZoneInfo(watermark.zone) if watermark.zone else UTC
    back = -(-_duration(watermark) // _DAY)

    def day_of(moment: datetime) -> int:
        return int(_DATE.from_text(moment.astimezone(zone).date().isoformat()))

    return MarkOrder(
        is_verbatim=is_verbatim,
        place=_DATE.from_text,
        spell=_DATE.to_text,
        lower=lambda text: _DATE.to_text(max(_FIRST_DAY, _DATE.from_text(text) - back)),
        place_at=day_of,
        spell_at=lambda moment: _DATE.to_text(day_of(moment)),
    )


def _integers(watermark: WatermarkSpec, *, is_verbatim: bool) -> MarkOrder:
    back = watermark.lookback if isinstance(watermark.lookback, int) else 0
    return MarkOrder(
        is_verbatim=is_verbatim,
        place=_whole_number,
        spell=str,
        lower=lambda text: str(_whole_number(text) - back) if back else text,
    )


def _duration(watermark: WatermarkSpec) -> timedelta:
    return watermark.lookback if isinstance(watermark.lookback, timedelta) else timedelta()


def _bounded(text: str) -> str:
    if len(text) > _LONGEST:
        raise Violation(OUT_OF_RANGE, f"{shown(text)} is longer than {_LONGEST} characters, which no watermark may be")
    return text


def _whole_number(text: str) -> int:
    digits = text[1:] if text[:1] in ("-", "+") else text
    if not (digits.isascii() and digits.isdigit()):
        raise Violation(TYPE, f"{shown(text)} is no whole number")
    if len(digits) > _LONGEST_NUMBER:
        raise Violation(OUT_OF_RANGE, f"{shown(text)} has more than {_LONGEST_NUMBER} digits")
    return int(text)


class ChunkMarks:
    """The marks of a chunk's records, as they are taken in.

    What lies above `until` moves no watermark. What the supplier dates after `supplied_at`, its own time at the end of the
    fetch, lies ahead of its time: it is counted, and asked for again and again until its day has come.
    """

    def __init__(self, order: MarkOrder, until: datetime | None, supplied_at: datetime | None) -> None:
        self._order = order
        place_at = order.place_at
        self._ceiling = place_at(until) if place_at and until else None
        end = supplied_at or until
        self._end = place_at(end + _WHOLE_SECOND) if place_at and end else None
        self._highest: Any = None
        self._value: Any = None
        self._ahead = 0
        self._first: tuple[ObjectKey, Any] | None = None

    def take(self, key: ObjectKey, placed: tuple[Any, Any]) -> None:
        """Take in the mark of a record."""
        place, value = placed
        if self._ceiling is not None and place > self._ceiling:
            if place > self._end:
                self._ahead += 1
                self._first = self._first or (key, value)
        elif self._highest is None or place > self._highest:
            self._highest, self._value = place, value

    @property
    def high_mark(self) -> str | None:
        """The text of the highest mark that may be published."""
        return None if self._highest is None else self._text(self._value)

    @property
    def postdated(self) -> Postdated | None:
        """What lies ahead of the supplier's own time; None: nothing."""
        if self._first is None:
            return None
        key, value = self._first
        return Postdated(objects=self._ahead, key=key, value=self._text(value))

    def _text(self, value: Any) -> str:
        return str(value) if self._order.is_verbatim else self._order.spell(value)
