"""csv_lines: every value of every dialect comes out as it was meant, and a bad line takes nothing else with it."""

import csv
import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from sluice.adapters.sources.files.reading import Start
from sluice.errors import AnswerTooLarge, FileUnreadable
from sluice.model.source import CsvFormat
from tests.support.stored_files import raws_of, records_of

CSV = {"kind": "csv"}
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)


def rows(content: bytes, declared: Any = CSV, **more: Any) -> list[Any]:
    """Return the records, decoded."""
    return [json.loads(raw) for raw in raws_of(content, declared, **more)]


def quoted(value: str | None, delimiter: str = ",", quote: str = '"') -> str:
    """Write a value as RFC 4180 says."""
    return "" if value is None else f"{quote}{value.replace(quote, quote * 2)}{quote}"


@given(
    values=st.lists(st.tuples(TEXTS, st.none() | TEXTS, st.none() | TEXTS), max_size=5),
    part=st.integers(1, 20),
    dialect=st.sampled_from([(",", '"'), (";", "'"), ("\t", '"'), ("^", "|")]),
    ending=st.sampled_from(["\n", "\r\n"]),
)
def test_values_round_trip(values: list[tuple[str | None, ...]], part: int, dialect: tuple[str, str], ending: str) -> None:
    """Texts come back with their quotes, delimiters and line breaks; null stays apart from the empty text."""
    delimiter, quote = dialect
    lines = ["a,b,c".replace(",", delimiter)]
    lines += [delimiter.join(quoted(value, delimiter, quote) for value in row) for row in values]
    content = "".join(line + ending for line in lines).encode()
    found = rows(content, {**CSV, "delimiter": delimiter, "quote": quote}, part=part)
    assert found == [dict(zip("abc", row, strict=True)) for row in values]


@given(values=st.lists(st.lists(TEXTS, min_size=2, max_size=2), max_size=5), part=st.integers(1, 9))
def test_reads_what_python_writes(values: list[list[str]], part: int) -> None:
    """Values that are quoted only where they have to be come back, too."""
    text = io.StringIO()
    csv.writer(text).writerows([["a", "b"], *values])
    found = rows(text.getvalue().encode(), part=part)
    meant = [{"a": a, "b": b} for a, b in values]
    assert [{name: value or "" for name, value in row.items()} for row in found] == meant


@given(values=st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=6), data=st.data())
def test_goes_on_behind_any_line(values: list[tuple[str, str]], data: st.DataObject) -> None:
    """The place of a line leads to those behind it; the names of the columns are read again."""
    content = "".join(f"{quoted(a)},{quoted(b)}\n" for a, b in [("one", "two"), *values]).encode()
    records = records_of(content, CSV)
    number = data.draw(st.integers(1, len(records)))
    assert records_of(content, CSV, start=Start(number, records[number - 1].end)) == records[number:]


@given(
    values=st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0\r\n,"), min_size=1, max_size=9), max_size=9),
    split=st.integers(3, 40),
    has_header=st.booleans(),
)
def test_parts_of_a_file_have_each_line_once(values: list[str], split: int, has_header: bool) -> None:
    """Where nothing is quoted, a line belongs to the part in which it begins."""
    declared = {**CSV, "quote": None, **({} if has_header else {"columns": ["key", "value"]})}
    content = (b"key,value\n" if has_header else b"") + "".join(f"{value},1\n" for value in values).encode()
    cuts = [(start, min(start + split, len(content))) for start in range(0, len(content), split)]
    found = [row for span in cuts for row in rows(content, declared, span=span, part=5)]
    assert found == [{"key": value, "value": "1"} for value in values]


def test_a_bad_line_is_rejected_alone() -> None:
    """A line with too few or too many values, or broken quotes, becomes a text that says so; nothing shifts."""
    content = b'a,b\n1,2\n3\n4,5,6\n"x"y,7\n'
    first, short, long, behind = rows(content)
    assert first == {"a": "1", "b": "2"}
    assert short == "1 values for 2 columns in the line: 3"
    assert long == "3 values for 2 columns in the line: 4,5,6"
    assert behind.endswith('in the line: "x"y,7')


def test_damaged_bytes_stay_in_their_own_record() -> None:
    """Bytes that are no UTF-8 are kept, for the mapping to reject that record."""
    damaged, sound = raws_of(b"a,b\nM\xfcnchen,1\nK\xc3\xb6ln,2\n", CSV)
    assert damaged == b'{"a": "M\xfcnchen", "b": "1"}'
    assert json.loads(sound) == {"a": "Köln", "b": "2"}


@pytest.mark.parametrize(
    ("encoding", "declared"),
    [
        ("latin-1", "latin-1"),
        ("cp1252", "cp1252"),
        ("shift_jis", "shift_jis"),
        ("utf-16", "utf-8"),
        ("utf-8-sig", "latin-1"),
        ("utf-8-sig", "utf-8"),
        ("utf-16-be", "utf-16-be"),
        ("utf-32", "utf-8"),
    ],
)
@pytest.mark.parametrize("part", [1, 3, 1000])
def test_encodings(encoding: str, declared: str, part: int) -> None:
    """Files come in their declared encoding, or in that of their BOM, which is no part of the first column's name."""
    city = "東京" if encoding == "shift_jis" else "Köln"
    content = f'city,note\r\n{city},"a,b"\r\n'.encode(encoding)
    assert rows(content, {**CSV, "encoding": declared}, part=part) == [{"city": city, "note": "a,b"}]


def test_what_an_encoding_lacks_stays_in_its_own_record() -> None:
    """A byte that the encoding has no character for makes its record one that is no UTF-8."""
    damaged, sound = raws_of(b"a,b\n\x81,1\nx,2\n", {**CSV, "encoding": "cp1252"})
    with pytest.raises(UnicodeDecodeError):
        damaged.decode()
    assert json.loads(sound) == {"a": "x", "b": "2"}


@pytest.mark.parametrize("content", [b"a,a\n1,2\n", b"a,\n1,2\n", b"a,b\r1,2\r", b'a,"b"c\n1,2\n'])
def test_a_first_line_that_names_no_columns_is_refused(content: bytes) -> None:
    """Without names for all columns, each its own, no value can be told."""
    with pytest.raises(FileUnreadable, match="the first line"):
        raws_of(content, CSV)


def test_empty_files_have_no_records() -> None:
    """Nothing, a BOM, or the names of columns alone: no record."""
    assert [rows(content) for content in (b"", b"\xef\xbb\xbf", b"a,b\n", b"a,b", b"\n\na,b\n\n")] == [[]] * 5


@pytest.mark.parametrize("rest", [b'3,"4', b'3,"4\n', b'3,"4\n' + b"5,6\n" * 100, b'3,"4""\n5,6\n'])
@pytest.mark.parametrize("part", [1, 1000])
def test_a_quote_that_never_closes_is_no_bad_line(rest: bytes, part: int) -> None:
    """The file is cut short, or nobody can tell where the next line begins: what follows is no single record to reject."""
    with pytest.raises(FileUnreadable, match=r"at byte 8 .* quote"):
        raws_of(b"a,b\n1,2\n" + rest, CSV, part=part)


def test_a_quote_that_never_closes_fills_no_memory() -> None:
    """No more is looked at for its end than a record may have."""
    with pytest.raises(AnswerTooLarge):
        raws_of(b'a,b\n1,"' + b"x\n" * 100_000, CSV, limit=1000, part=500)


@pytest.mark.parametrize(
    "changes", [{"delimiter": "é"}, {"delimiter": "\n"}, {"delimiter": '"'}, {"encoding": "klingon"}, {"columns": ["a", "a"]}]
)
def test_dialects_that_cannot_be_are_refused(changes: dict[str, Any]) -> None:
    """The spec says so before any file is read."""
    with pytest.raises(ValidationError):
        CsvFormat.model_validate({**CSV, **changes})
