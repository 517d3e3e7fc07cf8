"""Which types become others without loss."""

from decimal import Decimal
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.adapters.targets.widening import is_widening
from sluice.mapping.exact import exact_type
from sluice.mapping.violation import Violation
from tests.unit.mapping.workbench import field_type


@pytest.mark.parametrize(
    ("present", "declared", "is_wider"),
    [
        ("integer", "bigint", True),
        ("smallint", "integer", True),
        ("bigint", "integer", False),
        ("integer", "numeric", True),
        ("bigint", "numeric(19,0)", True),
        ("bigint", "numeric(18,0)", False),
        ("integer", "numeric(12,2)", True),
        ("integer", "numeric(11,2)", False),
        ("numeric(10,2)", "numeric", True),
        ("numeric(10,2)", "numeric(12,4)", True),
        ("numeric(10,2)", "numeric(11,4)", False),
        ("numeric(10,2)", "numeric(20,1)", False),
        ("numeric", "numeric(38,10)", False),
        ("double precision", "numeric", False),
        ("character varying(20)", "text", True),
        ("character varying", "text", True),
        ("character(20)", "text", False),
        ("jsonb", "text", False),
        ("json", "json", False),
        ("text", "integer", False),
        ("integer", "double precision", False),
        ("timestamp without time zone", "timestamptz", False),
        ("date", "timestamptz", False),
        ("integer[]", "bigint[]", True),
        ("bigint[]", "integer[]", False),
        ("character varying(20)[]", "text[]", True),
        ("numeric(10,2)[]", "numeric(12,4)[]", True),
        ("integer", "bigint[]", False),
        ("integer[]", "bigint", False),
    ],
)
def test_what_is_wider(present: str, declared: str, is_wider: bool) -> None:
    """Whole numbers into wider ones, numbers into those with a place for each digit, short texts into any; arrays so."""
    assert is_widening(present, field_type(declared), is_key=False) is is_wider


def test_a_key_keeps_its_text() -> None:
    """An object is known by the text of its key, which a scale would change: 7 is not 7.00."""
    for declared, is_wider in (("bigint", True), ("numeric(12,2)", False), ("numeric", False)):
        assert is_widening("integer", field_type(declared), is_key=True) is is_wider


@given(
    present=st.integers(1, 20).flatmap(lambda precision: st.tuples(st.just(precision), st.integers(0, precision))),
    declared=st.integers(1, 20).flatmap(lambda precision: st.tuples(st.just(precision), st.integers(0, precision))),
)
def test_a_wider_numeric_takes_exactly_what_the_narrower_held(present: tuple[int, int], declared: tuple[int, int]) -> None:
    """It is wider if and only if it takes both the greatest and the finest value of the other."""
    precision, scale = present
    step = Decimal(1).scaleb(-scale)
    values = (step, step * (10**precision - 1))
    read = exact_type(field_type(f"numeric({declared[0]},{declared[1]})")).from_text
    try:
        fits = all(read(f"{value:f}") == value for value in values)
    except Violation:
        fits = False
    is_wider = is_widening(f"numeric({precision},{scale})", field_type(f"numeric({declared[0]},{declared[1]})"), is_key=False)
    assert is_wider is fits


def test_widening_goes_one_way() -> None:
    """No two of these become each other."""
    types = ["integer", "bigint", "numeric(19,0)", "numeric(25,3)", "numeric"]
    for narrow, wide in pairwise(types):
        assert is_widening(narrow, field_type(wide), is_key=False)
        assert not is_widening(wide, field_type(narrow), is_key=False)
