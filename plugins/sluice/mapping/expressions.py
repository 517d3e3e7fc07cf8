"""The texts that stand at an expression's paths come in; the text that its field is to be read from goes out.

One object is worked out by itself, or a chunk of them as columns: with pandas, on Arrow's texts, which is only loaded for that.
Both come to the same.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

from sluice.mapping.violation import UNMAPPED, Violation, shown
from sluice.model.fields import FieldSpec, LiteralText

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Expression:
    """How one text is made of others."""

    parts: tuple[str | None, ...] | None
    """What is put together: texts of its own, and None for the next one that comes in; None: the first that there is."""
    is_lowered: bool
    table: Mapping[str, str | None] | None
    """From each text that may come to what is read for it."""

    def of(self, texts: Iterator[str | None]) -> str | None:
        """Return the text for one object, of whose texts no more are asked for than it takes; raise `Violation` if unmapped."""
        found = next((text for text in texts if text is not None), None) if self.parts is None else _joined(self.parts, texts)
        if found is not None and self.is_lowered:
            found = _lowered(found)
        if found is None or self.table is None:
            return found
        if found not in self.table:
            raise Violation(UNMAPPED, f"{shown(found)} is not in the map")
        return self.table[found]

    def column(self, inputs: Sequence[Sequence[str | None]]) -> tuple[list[str | None], list[bool]]:
        """Return the texts for many objects, out of the columns of theirs; and which of them came to none, being unmapped."""
        import pandas as pd
        import pyarrow as pa

        text = pd.ArrowDtype(pa.string())
        columns = [pd.Series(column, dtype=text) for column in inputs]
        if self.parts is None:
            found = reduce(lambda first, other: first.fillna(other), columns)
        else:
            rest = iter(columns)
            found = reduce(add, [next(rest) if part is None else part for part in self.parts])
        if self.is_lowered:
            found = found.str.lower()
        if self.table is None:
            return _texts(found), [False] * len(found)
        places = pd.Index(pd.array(list(self.table), dtype=text)).get_indexer(pd.Index(found.array))
        meant = pd.array(list(self.table.values()), dtype=text).take(places, allow_fill=True)
        return _texts(pd.Series(meant)), ((places < 0) & found.notna().to_numpy()).tolist()


def expression_of(field: FieldSpec) -> Expression:
    """Return the expression of a field that has one."""
    parts = None
    if field.concat is not None:
        parts = tuple(part.text if isinstance(part, LiteralText) else None for part in field.concat)
    table = None if field.map is None else {text: meant_text(meant) for text, meant in field.map.items()}
    return Expression(parts, is_lowered=field.lower, table=table)


def meant_text(meant: Any) -> str | None:
    """Return the text that stands for what a map says of one."""
    if meant is None:
        return None
    return str(meant).lower() if isinstance(meant, bool) else str(meant)


def _joined(parts: tuple[str | None, ...], texts: Iterator[str | None]) -> str | None:
    found = []
    for part in parts:
        text = next(texts) if part is None else part
        if text is None:
            return None
        found.append(text)
    return "".join(found)


def _lowered(text: str) -> str:
    if text.isascii():
        return text.lower()
    import pyarrow.compute as pc

    # Python's own way differs in some letters from that of columns.
    return str(pc.utf8_lower(text).as_py())


def _texts(column: "pd.Series[Any]") -> list[str | None]:
    import pyarrow as pa

    return pa.array(column.array, pa.string()).to_pylist()  # type: ignore[no-any-return]  # pyarrow is not typed
