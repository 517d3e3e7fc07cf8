"""Parts of statements in; one statement out. In its text a mark stands for each value, so that no value is part of it."""

from collections.abc import Iterable
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
    `nullable` compares with nothing, and stands at the end: such a row is behind every key, so that somebody sees it.
    """
    columns = [column_of(name) for name in key]
    wanted = list(conditions)
    if after is not None:
        marks = ", ".join(MARK for _ in columns)
        behind = [f"({', '.join(columns)}) > ({marks})", *(f"{column_of(name)} is null" for name in nullable)]
        wanted.append(Fragment(f"({' or '.join(behind)})", tuple(after)))
    where = joined(" and ", wanted)
    return joined(
        "",
        [
            Fragment(f"select row_to_json({ROW}.*), {', '.join(f'{column}::text' for column in columns)} from "),  # noqa: S608
            relation,
            Fragment(f" {ROW}"),
            Fragment(f" where {where.text}", where.values) if wanted else Fragment(""),
            Fragment(f" order by {', '.join(columns)}"),
        ],
    )
