"""json_lists: records of a list come out byte for byte, however the file comes in."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.adapters.sources.files.reading import Start
from sluice.errors import AnswerTooLarge, FileUnreadable, RecordsMissing
from tests.support.stored_files import raws_of, records_of

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)
NESTED = {"kind": "json", "records": "data.items"}


@given(values=st.lists(VALUES, max_size=6), part=st.integers(1, 40), indent=st.none() | st.integers(0, 2), text=st.text())
def test_records_round_trip_whatever_the_parts(values: list[object], part: int, indent: int | None, text: str) -> None:
    """What was written is read, in order, with anything before and behind the list."""
    document = {"about": [{"data": text}], "data": {"more": {"items": [1]}, "items": values, "x": {"y": [text]}}, "z": "]"}
    raws = raws_of(json.dumps(document, indent=indent).encode(), NESTED, part=part)
    assert [json.loads(raw) for raw in raws] == values


@given(values=st.lists(VALUES, min_size=1, max_size=6), data=st.data())
def test_goes_on_behind_any_record(values: list[object], data: st.DataObject) -> None:
    """The place of a record leads to those behind it, and to nothing else."""
    content = json.dumps({"data": {"items": values}}).encode()
    records = records_of(content, NESTED)
    number = data.draw(st.integers(1, len(records)))
    assert records_of(content, NESTED, start=Start(number, records[number - 1].end)) == records[number:]


def test_records_keep_their_bytes() -> None:
    """No digit, escape or space within a record is touched."""
    records = [b'{"price": 1.10, "id":12345678901234567890}', rb'{"name":"\u00e9\/"}', b"NaN", b'["a", ]']
    assert raws_of(b"\xef\xbb\xbf [ " + b" ,\n".join(records) + b" ] \n", "json") == records


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b'{"data": {"items": [{"a": 1}, {"a": 2}', FileUnreadable),
        (b'{"data": {"items": [{"a": 1}], "x": 1', FileUnreadable),
        (b'{"data": {"items": [{"a": 1}]}} {', FileUnreadable),
        (b'{"data": {"items": [{"a": 1},]}}', FileUnreadable),
        (b'{"data": {"items": [{"a": 1} {"a": 2}]}}', FileUnreadable),
        (b'{"data": {"items": [{"a": [1}]}}', FileUnreadable),
        (b'{"data": {"items": ["', FileUnreadable),
        (b"", FileUnreadable),
        (b"\xff\xfe{\x00}\x00", FileUnreadable),
        (b"<html>", FileUnreadable),
        (b'{"data": {"other": []}}', RecordsMissing),
        (b'{"data": {"items": {}}}', RecordsMissing),
        (b'{"data": {"items": null}}', RecordsMissing),
        (b"[]", RecordsMissing),
    ],
)
def test_says_what_is_wrong_with_a_document(content: bytes, error: type[Exception]) -> None:
    """What is cut short, or no document of that kind, is never taken for the end of the list."""
    with pytest.raises(error) as raised:
        raws_of(content, NESTED, part=3)
    assert "file" in str(raised.value)


def test_a_record_is_bounded() -> None:
    """One record that never ends fills no memory; what stands beside the list may be as large as it likes."""
    with pytest.raises(AnswerTooLarge, match="raise max_body"):
        raws_of(b'[{"a": "' + b"x" * 5000, "json", limit=1000, part=100)
    large = b'{"about": [%s], "data": {"items": [1]}}' % b",".join([b'{"x": "y"}'] * 1000)
    assert raws_of(large, NESTED, limit=100, part=50) == [b"1"]
