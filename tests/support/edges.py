"""JSON tokens at the edges of what types can hold, and strategies that make more of them."""

import json
from typing import Final

from hypothesis import strategies as st

_NUMBERS: Final = [
    *("0", "-0", "0.0", "-0.0", "1", "-1", "1.0", "1.50", "0.1", "1e0", "1E+2", "25e-3", "10e-1", "0e5000", "-0e-5000"),
    *(str(base + more) for base in (2**31, 2**53, 2**63, 10**38, -(2**31), -(2**63)) for more in (-1, 0, 1)),
    *("99999999.99", "99999999.995", "0.99999999999999999999999999999999999999", "1234567890123456789012345678901234567890"),
    *("9007199254740993.0", "0.1000000000000000055511151231257827", "123456789012345678901234567890.123456789"),
    *("5e-324", "2.2250738585072011e-308", "1.7976931348623157e308", "1.7976931348623159e308", "1e400", "1E-400", "-1e400"),
    *("1e1000", "1e1001", "1e-1000", "1e-1001", "1e131071", "1e131072", "1e-16383", "1e-16384", "1e99999999999999999999"),
    "9" * 5000,
]
_NO_NUMBERS: Final = [
    *(
        "007",
        "-01",
        "1.",
        ".5",
        "+1",
        "1e",
        "0x10",
        "1_000",
        "NaN",
        "nan",
        "Infinity",
        "-Infinity",
        "inf",
        "1,5",
        "1 000",
        "\u0661",
    ),
    *(" 1", "1 ", "--1", "1e+"),
]
_WORDS: Final = [
    *("", " ", "NULL", "null", "Null", "\\N", "\\.", "\\", "\\\\", '"', '""', "'", ",", ";", "a,b", '"a","b"', "{}", "{NULL}"),
    *("{", "}", "[]", "[1:1]={1}", "(1,2)", "t", "f", "true", "false", "TRUE", "yes", "\t", "\n", "\r", "\r\n", "a\r\nb\t\\c"),
    *("\\.\n", "\n\\.\n", "\u2028\u2029\u0085", "\ufeff", "\ufffe\uffff", "\x01\x1f\x7f", "\x0b\x0c", "é", "e\u0301", "שלום"),
    *(
        "\u202eabc",
        "👩\u200d👩\u200d👧",
        "\U0001d4b3",
        "\U0010ffff",
        "ß",
        "İ",
        "a" * 3000,
        "%s",
        "$1",
        "E'\\x'",
        "--",
        "/*",
        "\\x00",
        "epoch",
    ),
    *("infinity", "-infinity", "now", "today", "allballs", "0044-03-15 BC", "10000-01-01", "0000-01-01", "0001-01-01"),
    *("9999-12-31", "2024-02-29", "2023-02-29", "2024-1-1", "20240101", "99-01-01", "2024-01-01T00:00:00", "01/02/2024"),
    *("0001-01-01T00:00:00Z", "0001-01-01T00:00:00+00:01", "0001-01-01T00:00:00-23:59", "9999-12-31T23:59:59.999999Z"),
    *("9999-12-31T23:59:59.999999-00:01", "9999-12-31T23:59:59.9999999Z", "1969-12-31T23:59:59.999999Z", "0999-01-01 00:00Z"),
    *("2024-01-01T24:00:00Z", "2016-12-31T23:59:60Z", "2024-06-01t12:00:00.5z", "2024-06-01 12:00:00.1234560000+0530"),
    *("2024-06-01T12:00:00.1234567Z", "2024-06-01T12:00+05", "2024-06-01T12:00:00+00:60", "2024-06-01T12:00:00+24:00"),
    *("2024-06-01T12:00:00-00:00", "2024-06-01T12:00:00 +01:00", "2024-06-01T12:00:00 UTC", "2024-06-01T12:00:00+15:59:59"),
    *("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", "a0eebc999c0b4ef8bb6d6bb9bd380a11"),
    *("{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}", "urn:uuid:a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    *("a0ee-bc99-9c0b-4ef8-bb6d-6bb9-bd38-0a11", "00000000-0000-0000-0000-000000000000"),
]
_ODD: Final = [
    *("null", "true", "false", "[]", "{}", "[[]]", "[[1]]", "[1, [2]]", "[1, 2.5]", '["a", 1]', "[null]", "[NaN]", "[007]"),
    *("[true]", '[""]', '["",null]', '{"a": 1, "a": 2}', '{"a": 1, "A": 2}', '{"": {"": null}}', '{"a": [1, {"b": 1.10}]}'),
    *('{"\\u0061": 1, "a": 2}', "[" * 256 + "]" * 256, "[" * 257 + "]" * 257, "[1e131071]", "[1e131072]", "[1e-16383]"),
    *("[1e-16384]", "tru", "nul", "undefined", r'"\x"', r'"\u12"', '"\x01"', '"\t"', r'"\u0000"', r'"a\u0000b"', r'"\\u0000"'),
    *(
        '"\0"',
        r'["\u0000"]',
        r'{"\u0000": 1}',
        r'"\ud800"',
        r'"\udc00\ud800"',
        r'"\ud83d\ude00"',
        r'["\ud83d"]',
        r'{"\udfff": 1}',
    ),
    *(r'"\u0031\u002e\u0035"', r'"\u0074rue"', r'"\/"', '"\\"\\\\\\/\\b\\f\\n\\r\\t"', "1 2", '"a" "b"'),
]
EDGES: Final[list[bytes]] = list(
    dict.fromkeys(
        [
            *(text.encode() for text in (*_NUMBERS, *_NO_NUMBERS, *_ODD) if text.strip() == text and "," not in text[:2]),
            *(json.dumps(text).encode() for text in (*_NUMBERS, *_NO_NUMBERS, *_WORDS)),
            *(json.dumps(text, ensure_ascii=False).encode() for text in _WORDS),
            *(b'"\xff"', b'"\xed\xa0\x80"', b'"\xc0\x80"', b'["\xf5"]', b"\xff"),
        ]
    )
)
"""Each of them stands for itself between commas, however damaged it is."""


def _spelled(numbers: st.SearchStrategy[str]) -> st.SearchStrategy[bytes]:
    """Number literals, and texts of them."""
    return st.tuples(numbers, st.booleans()).map(lambda pair: (f'"{pair[0]}"' if pair[1] else pair[0]).encode())


def _quoted(texts: st.SearchStrategy[str]) -> st.SearchStrategy[bytes]:
    return texts.map(lambda text: json.dumps(text).encode())


_WHOLE: Final = st.integers() | st.integers(-(2**65), 2**65)
_DECIMALS: Final = st.decimals(allow_nan=False, allow_infinity=False) | st.decimals(-(10**9), 10**9, places=2)
_FORMS: Final = st.sampled_from(["{}", "{}.0", "{}e0", "{}0e-1", "{}E+0", "{}.5"])
_OFFSETS: Final = st.sampled_from(["Z", "z", "+00", "-00:00", "+05:30", "-0930", "+23:59", "-23:59", ""])
_TEXTS: Final = st.text(st.characters(codec=None), max_size=20)
TOKENS: Final[dict[str, st.SearchStrategy[bytes]]] = {
    "text": st.tuples(_TEXTS, st.booleans()).map(
        lambda pair: json.dumps(pair[0], ensure_ascii=pair[1]).encode("utf-8", "surrogatepass")
    ),
    "integer": _spelled(st.builds(str.format, _FORMS, st.integers(-(2**31) - 2, 2**31 + 2))),
    "bigint": _spelled(st.builds(str.format, _FORMS, _WHOLE)),
    "numeric": _spelled(_DECIMALS.map(str)),
    "double precision": _spelled(st.floats(allow_nan=False, allow_infinity=False).map(repr) | _DECIMALS.map(str)),
    "boolean": st.sampled_from([b"true", b"false", b'"true"', b'"false"', b"0", b"1", b'"t"']),
    "date": _quoted(st.dates().map(str)),
    "timestamptz": _quoted(
        st.builds(
            lambda moment, mark, zone: f"{moment.isoformat(mark)}{zone}", st.datetimes(), st.sampled_from("T t"), _OFFSETS
        )
    ),
    "uuid": _quoted(st.uuids().map(str) | st.uuids().map(lambda value: str(value).upper())),
    "json": st.recursive(
        _spelled(_DECIMALS.map(str)) | _quoted(_TEXTS),
        lambda inner: (
            st.lists(inner, max_size=3).map(lambda items: b"[%s]" % b",".join(items))
            | st.dictionaries(st.text("aAé\0", max_size=2), inner, max_size=3).map(
                lambda items: b"{%s}" % b",".join(json.dumps(name).encode() + b":" + item for name, item in items.items())
            )
        ),
        max_leaves=6,
    ),
}
"""By type, without the shape of numerics."""
