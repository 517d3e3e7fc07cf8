"""separated: lines, and sequences of features, come out record by record, however they are cut."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.adapters.sources.files.reading import Start
from sluice.errors import AnswerTooLarge
from tests.support.stored_files import raws_of, records_of

OBJECTS = st.lists(st.dictionaries(st.text(), st.integers() | st.text(), max_size=3), max_size=6)


@given(objects=OBJECTS, part=st.integers(1, 30), ending=st.sampled_from(["\n", "\r\n", "\n\n"]), is_ended=st.booleans())
def test_lines_round_trip(objects: list[object], part: int, ending: str, is_ended: bool) -> None:
    """Each line is a record, with any line end, with or without one behind the last; blank lines are none."""
    lines = [json.dumps(value).encode() for value in objects]
    content = ending.encode().join(lines) + (ending.encode() if is_ended else b"")
    assert raws_of(content, "jsonl", part=part) == lines


@given(objects=OBJECTS, split=st.integers(3, 60), bom=st.sampled_from([b"", b"\xef\xbb\xbf"]))
def test_parts_of_a_file_have_each_record_once(objects: list[object], split: int, bom: bytes) -> None:
    """A record belongs to the part in which it begins, wherever the cuts fall."""
    lines = [json.dumps(value).encode() for value in objects]
    content = bom + b"".join(line + b"\n" for line in lines)
    cuts = [(start, min(start + split, len(content))) for start in range(0, len(content), split)]
    assert [raw for span in cuts for raw in raws_of(content, "jsonl", span=span, part=7)] == lines


@given(objects=OBJECTS.filter(bool), data=st.data())
def test_goes_on_behind_any_record(objects: list[object], data: st.DataObject) -> None:
    """The place of a record leads to those behind it."""
    kind, content = data.draw(
        st.sampled_from(
            [
                ("jsonl", b"".join(json.dumps(value).encode() + b"\n" for value in objects)),
                ("geojson", b"".join(b"\x1e" + json.dumps(value, indent=1).encode() + b"\n" for value in objects)),
            ]
        )
    )
    records = records_of(content, kind)
    number = data.draw(st.integers(1, len(records)))
    goes_on = number < len(records) or kind == "jsonl"  # a sequence is gone on with only where something follows
    if goes_on:
        assert records_of(content, kind, start=Start(number, records[number - 1].end)) == records[number:]


@pytest.mark.parametrize("part", [1, 2, 1000])
def test_features_in_both_forms(part: int) -> None:
    """A collection and a sequence of the same features are the same records."""
    features = [b'{"type": "Feature", "id": %d,\n "geometry": null}' % number for number in range(3)]
    collection = b'{"type": "FeatureCollection", "features": [%s], "crs": {"a": [1]}}' % b", ".join(features)
    assert raws_of(collection, "geojson", part=part) == features
    assert raws_of(b"".join(b"\x1e%s\n" % feature for feature in features), "geojson", part=part) == features
    assert raws_of(b'{"features": []}', "geojson", part=part) == []


def test_a_line_is_bounded() -> None:
    """A line that never ends fills no memory."""
    with pytest.raises(AnswerTooLarge, match="1000 bytes"):
        raws_of(b'{"a": 1}\n' + b"x" * 100_000, "jsonl", limit=1000, part=100)
