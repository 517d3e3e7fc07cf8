"""A row of the table comes in, as Postgres spells its values; the key and the hash that the mapper would give it go out."""

from collections.abc import Sequence
from typing import Any, Final

from sluice.mapping.columns import row_hash
from sluice.mapping.exact import exact_type, told_apart
from sluice.mapping.keys import key_text
from sluice.mapping.violation import Violation
from sluice.model.base import ObjectKey
from sluice.model.spec import SyncSpec

Texts = Sequence[str | None]

_NOT_OURS: Final = "\0"
"""No value that Sluice has written; Postgres holds no text with a NUL."""


class HeldRows:
    """Reads the rows of one sync's table; texts are in the order of the spec's fields."""

    def __init__(self, spec: SyncSpec) -> None:
        self._kinds = [exact_type(field.type) for field in spec.fields]
        names = [field.name for field in spec.fields]
        self._key_places = [names.index(name) for name in spec.object.key]
        self._key_kinds = [self._kinds[place] for place in self._key_places]

    def key(self, texts: Texts) -> ObjectKey | None:
        """Return the key of the row; None if no object can have it, since others wrote the row."""
        values = [self._value(place, texts[place]) for place in self._key_places]
        if any(value is None or value == _NOT_OURS for value in values):
            return None
        return key_text(self._key_kinds, values)

    def hash(self, texts: Texts) -> bytes | None:
        """Return the hash of the row; None if it holds a value that no publication can have written, such as NaN."""
        values = [told_apart(self._value(place, text)) for place, text in enumerate(texts)]
        return None if _NOT_OURS in values else row_hash(values)

    def _value(self, place: int, text: str | None) -> Any:
        if text is None:
            return None
        try:
            return self._kinds[place].from_text(text)
        except Violation:
            return _NOT_OURS
