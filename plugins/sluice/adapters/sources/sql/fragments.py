"""Parts of statements in; one statement out. In its text a mark stands for each value, so that no value is part of it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from psycopg import sql

MARK: Final = "\0"
"""Stands in a text for a value that is sent beside it. No text of YAML has this character, and Postgres takes none."""

ROW: Final = "sluice_row"
"""What a row is called in every statement."""

Value = str | int | float | Decimal | bool | bytes | None


@dataclass(frozen=True)
class Fragment:
    """A part of a statement: its text, and the values of its marks, in their order."""

    text: str
    values: tuple[Value, ...] = ()

    @property
    def for_psycopg(self) -> bytes:
        """The text as psycopg takes it: where there are values, a sign of percent is two."""
        text = self.text.replace("%", "%%").replace(MARK, "%s") if self.values else self.text
        return text.encode()

    @property
    def as_sent(self) -> str:
        """The text as Postgres gets it, and counts places in it."""
        head, *tails = self.text.split(MARK)
        return head + "".join(f"${number}{tail}" for number, tail in enumerate(tails, 1))


def joined(separator: str, parts: Iterable[Fragment]) -> Fragment:
    """Return the parts as one, with a text between them."""
    listed = list(parts)
    return Fragment(separator.join(part.text for part in listed), tuple(value for part in listed for value in part.values))


def quoted(*names: str) -> str:
    """Return a name, or names with points between them, as Postgres reads them exactly."""
    return sql.Identifier(*names).as_string()


def column_of(name: str) -> str:
    """Return a column of the row."""
    return f"{ROW}.{quoted(name)}"


def in_order(
    relation: Fragment,
    key: Iterable[str],
    conditions: Iterable[Fragment],
    after: Iterable[str] | None,
    nullable: Iterable[str] = (),
) -> Fragment:
    """Return what selects the rows of a relation behind a key, in the order of it: each as JSON, with its key as texts.

    Keys are compared as they are ordered: by the types and the collations that their columns have. A null in one that is
    `nullable` compares with nothing, and stands at the end: behind the rows of a key comes one without, so that somebody sees
    it. It is looked for by itself, since a condition on either would keep an index from serving.
    """
    columns, wanted = [column_of(name) for name in key], list(conditions)
    texts = ", ".join(f"{column}::text" for column in columns)
    rows = joined("", [Fragment(f"select row_to_json({ROW}.*), {texts} from "), relation, Fragment(f" {ROW}")])  # noqa: S608
    order = Fragment(f" order by {', '.join(columns)}")
    if after is None:
        return joined("", [rows, *_where(wanted), order])
    marks = ", ".join(MARK for _ in columns)
    behind = Fragment(f"({', '.join(columns)}) > ({marks})", tuple(after))
    ordered = joined("", [rows, *_where([*wanted, behind]), order])
    missing = " or ".join(f"{column_of(name)} is null" for name in nullable)
    if not missing:
        return ordered
    keyless = joined("", [rows, *_where([*wanted, Fragment(f"({missing})")]), Fragment(" limit 1")])
    return joined("", [Fragment("("), ordered, Fragment(") union all ("), keyless, Fragment(")")])


def _where(conditions: list[Fragment]) -> Iterator[Fragment]:
    """Yield the clause of conditions that hold at once; nothing for none."""
    if conditions:
        yield Fragment(" where ")
        yield joined(" and ", conditions)
