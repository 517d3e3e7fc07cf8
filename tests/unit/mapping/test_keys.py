"""Keys as people write them, and the objects they mean."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.errors import UsageInvalid
from sluice.mapping.keys import key_named
from sluice.model import rows
from tests.unit.mapping.workbench import map_records, rows_of, sync_spec

ONE = sync_spec({"id": "uuid"})
SEVERAL = sync_spec({"land": "text", "number": "integer", "since": "date"}, object={"key": ["land", "number", "since"]})
WORDS = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=20)


@given(land=WORDS, number=st.integers(-(2**31), 2**31 - 1), since=st.dates())
def test_a_list_of_values_names_the_object_the_mapper_made_of_them(land: str, number: int, since: object) -> None:
    """Whatever is in the values, and whether numbers are written as numbers or as texts."""
    (row,) = rows_of(map_records(SEVERAL, json.dumps({"land": land, "number": number, "since": str(since)})))
    for written in ([land, number, str(since)], [land, str(number), str(since)]):
        assert key_named(SEVERAL, json.dumps(written)) == row[rows.KEY]
    assert key_named(SEVERAL, row[rows.KEY]) == row[rows.KEY]


def test_one_value_names_itself() -> None:
    """As its type spells it."""
    assert key_named(ONE, "0A0EEBC9-9C0B-4EF8-BB6D-6BB9BD380A11") == "0a0eebc9-9c0b-4ef8-bb6d-6bb9bd380a11"
    assert key_named(sync_spec({"id": "text"}), '["a"]') == '["a"]'


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("FR,1,2026-01-01", "FR,1,2026-01-01 is no such list"),
        ('{"land": "FR"}', r'\{"land": "FR"\} is no such list'),
        ('["FR", 1]', r'\["FR", 1\] has 2'),
        ('["FR", "one", "2026-01-01"]', '"one" is no integer'),
    ],
)
def test_what_names_no_object_is_refused_with_the_form_of_a_key(written: str, why: str) -> None:
    """The message names the key fields."""
    with pytest.raises(UsageInvalid, match=rf"by a JSON list of its 3 key fields \[land, number, since\].*: {why}$"):
        key_named(SEVERAL, written)
