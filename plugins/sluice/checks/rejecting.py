"""The kinds of expectations that can reject the rows that do not meet them, with the types and parameters they go with."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from sluice.model.fields import TypeName

_NUMBERS: Final = frozenset({TypeName.INTEGER, TypeName.BIGINT, TypeName.NUMERIC, TypeName.DOUBLE})
_TIMES: Final = frozenset({TypeName.DATE, TypeName.TIMESTAMPTZ})
_TEXTS: Final = frozenset({TypeName.TEXT})
_SINGLE: Final = _NUMBERS | _TIMES | _TEXTS | {TypeName.BOOLEAN, TypeName.UUID}
_LISTED: Final = _NUMBERS | _TEXTS | {TypeName.BOOLEAN}
"""What the library can compare with a list: it takes what is written in one for what it looks like."""
_ALL: Final = frozenset(TypeName)


@dataclass(frozen=True)
class Kind:
    """A kind whose offending rows Sluice finds with a query of its own."""

    types: frozenset[TypeName]
    """Those of its columns."""
    columns: tuple[str, ...] = ("column",)
    """Under which keys they are named."""
    needs: tuple[str, ...] = ()
    """Parameters, of which at least one has to be given."""
    takes: tuple[str, ...] = field(default=())
    """Parameters that may be given besides."""

    @property
    def known(self) -> frozenset[str]:
        """All keys that its kwargs may have."""
        return frozenset({*self.columns, *self.needs, *self.takes, "mostly"})

    def given(self, kwargs: Mapping[str, Any]) -> bool:
        """Whether one of the parameters it needs is given."""
        return not self.needs or any(kwargs.get(name) not in (None, [], "") for name in self.needs)


REJECTING: Final[Mapping[str, Kind]] = {
    "expect_column_values_to_not_be_null": Kind(_ALL),
    "expect_column_values_to_be_in_set": Kind(_LISTED, needs=("value_set",)),
    "expect_column_values_to_not_be_in_set": Kind(_LISTED, needs=("value_set",)),
    "expect_column_values_to_be_between": Kind(
        _NUMBERS | _TIMES, needs=("min_value", "max_value"), takes=("strict_min", "strict_max")
    ),
    "expect_column_values_to_match_regex": Kind(_TEXTS, needs=("regex",)),
    "expect_column_values_to_not_match_regex": Kind(_TEXTS, needs=("regex",)),
    "expect_column_value_lengths_to_be_between": Kind(
        _TEXTS, needs=("min_value", "max_value"), takes=("strict_min", "strict_max")
    ),
    "expect_column_value_lengths_to_equal": Kind(_TEXTS, needs=("value",)),
    "expect_column_values_to_be_unique": Kind(_SINGLE),
    "expect_compound_columns_to_be_unique": Kind(_SINGLE, columns=("column_list",)),
    "expect_column_pair_values_a_to_be_greater_than_b": Kind(
        _NUMBERS | _TIMES, columns=("column_A", "column_B"), takes=("or_equal",)
    ),
}
"""Where a value is null, the row is no offender, but of the first kind."""
