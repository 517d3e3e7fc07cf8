"""The canonical form of JSON documents, and what jsonb would not hold."""

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sluice.mapping.documents import canonical_document
from sluice.mapping.violation import Violation
from tests.unit.mapping.workbench import map_value

NUMBERS = (
    st.integers().map(str)
    | st.floats(allow_nan=False, allow_infinity=False).map(repr)
    | st.decimals(allow_nan=False, allow_infinity=False, min_value=-100, max_value=100).map(str)
    | st.sampled_from(
        ["0", "-0", "0.0", "-0.0", "1", "1.0", "10e-1", "1e0", "0.1", "0.10", "1e2", "100", "1.5", "15e-1", "1e22"]
    )
    | st.sampled_from(["9007199254740993", "9007199254740993.0", "9007199254740992.0", "0.1000000000000000055511151231257827"])
    | st.sampled_from(["1e-400", "1e400", "100000000000000000000", "1e20", "123456789012345.6", "123456789012345.60000000001"])
)
LEAVES = NUMBERS | st.sampled_from(
    ["null", "true", "false", '"1"', '"1.0"', '""', '"true"', '"null"', r'"\u00e9"', '"é"', '"a"']
)


def _object(pairs: list[tuple[str, str]]) -> str:
    return "{" + ", ".join(f"{json.dumps(key)}: {value}" for key, value in pairs) + "}"


DOCUMENTS = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: "[" + ",".join(items) + "]")
        | st.lists(st.tuples(st.sampled_from(["a", "b", "A", "é"]), inner), max_size=3).map(_object)
    ),
    max_leaves=5,
)


def meaning(text: str) -> Any:
    """What a document says, its numbers exact, told apart by kind."""

    def tell(value: Any) -> Any:
        match value:
            case dict():
                return {key: tell(inner) for key, inner in value.items()}
            case list():
                return [tell(inner) for inner in value]
        return (type(value).__name__, value)

    return tell(json.loads(text, parse_int=Decimal, parse_float=Decimal))


@given(first=DOCUMENTS, second=DOCUMENTS)
@example(first='{"a": 1, "b": 2}', second='{"b": 2.0, "a": 1e0}')
@example(first='{"a": 1, "a": 2}', second='{"a": 2}')
@example(first="9007199254740993", second="9007199254740992.0")
@example(first="0.1", second="0.1000000000000000055511151231257827")
@example(first="1", second='"1"')
@settings(deadline=None, max_examples=400)
def test_equal_if_and_only_if_they_mean_the_same(first: str, second: str) -> None:
    """Order of keys, white space, escapes and the spelling of numbers make no difference; everything else does."""
    is_same = canonical_document(first.encode()) == canonical_document(second.encode())
    assert is_same == (meaning(first) == meaning(second))


@given(text=DOCUMENTS)
@settings(deadline=None)
def test_canonical_form_is_stable(text: str) -> None:
    """The canonical form is JSON that means the same, and is its own canonical form."""
    canonical = canonical_document(text.encode())
    assert meaning(canonical.decode()) == meaning(text)
    assert canonical_document(canonical) == canonical


def test_numbers_of_thousands_of_digits() -> None:
    """Integers that Python would not print, and their other spellings, are still told apart exactly."""
    long = b"1" + b"0" * 5000
    assert canonical_document(long) == canonical_document(b"1e5000") != canonical_document(long[:-1] + b"1")


@pytest.mark.parametrize(
    ("token", "error"),
    [
        ("1e131072", "out-of-range"),
        ("[1e-16384]", "out-of-range"),
        ("1.0e-16383", "out-of-range"),
        ("9" * 131_073, "out-of-range"),
        ("1e99999999999999999999", "out-of-range"),
        ("[" * 257 + "]" * 257, "out-of-range"),
        (r'{"a": "\u0000"}', "encoding"),
        (r'{"\u0000": 1}', "encoding"),
        (r'["\\\u0000"]', "encoding"),
        (r'["\ud800"]', "encoding"),
        (r'{"\udfff": 1}', "encoding"),
        (b'["\xff"]', "encoding"),
        ("[NaN]", "malformed"),
        ("[-Infinity]", "malformed"),
        ("[1,]", "malformed"),
        ('{"a" 1}', "malformed"),
        (r'["\x"]', "malformed"),
        (b'["\x01"]', "malformed"),
        ("[007]", "malformed"),
    ],
)
def test_what_jsonb_does_not_hold(token: str | bytes, error: str) -> None:
    """Documents that Postgres would refuse are refused here, object by object."""
    assert map_value("json", token)[0] == error


@pytest.mark.parametrize(
    "token",
    ["1e131071", "1e-16383", r'["\\u0000"]', r'["\ud83d\ude00"]', "[" * 256 + "]" * 256, '"[["', '""', "{}", "0", "[null]"],
)
def test_documents_are_kept_as_sent(token: str) -> None:
    """What jsonb takes is stored in the very text that was sent."""
    assert map_value("json", token).as_py() == token


def test_brackets_in_text_are_no_depth() -> None:
    """Depth is counted in brackets that nest, not in those that texts hold or that stand side by side."""
    token = json.dumps(["[" * 600, [[]] * 300, '"' + "[" * 600])
    assert map_value("json", token).as_py() == token


def test_violation_is_a_signal() -> None:
    """It carries its kind and its message."""
    with pytest.raises(Violation) as caught:
        canonical_document(b"[NaN]")
    assert (caught.value.error, caught.value.message) == ("malformed", "NaN is not JSON")
