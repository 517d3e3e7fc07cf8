"""xml_elements: elements at a path become objects, and nothing that a document declares is expanded or asked for."""

import json
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.adapters.sources.files.reading import Start
from sluice.errors import AnswerTooLarge, FileUnreadable
from tests.support.stored_files import raws_of, records_of

HOTELS = {"kind": "xml", "element": "feed/hotel"}
TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Cn", "Co")), max_size=10)


def hotels(content: bytes | str, **more: Any) -> list[Any]:
    """Return the records, decoded."""
    return [json.loads(raw) for raw in raws_of(content.encode() if isinstance(content, str) else content, HOTELS, **more)]


@given(values=st.lists(st.tuples(TEXTS, TEXTS, st.lists(TEXTS, max_size=3)), max_size=5), part=st.integers(1, 30))
def test_texts_round_trip(values: list[tuple[str, str, list[str]]], part: int) -> None:
    """Attributes, texts and children come back, whatever the parts."""
    written = "".join(
        f"<hotel id={quoteattr(key)}><name>{escape(name)}</name>{''.join(f'<tag>{escape(tag)}</tag>' for tag in tags)}</hotel>"
        for key, name, tags in values
    )
    meant = []
    for key, name, tags in values:
        record: dict[str, Any] = {"@id": key, "name": name}
        if tags:
            record["tag"] = tags if len(tags) > 1 else tags[0]
        meant.append(record)
    assert hotels(f"<feed><hotels><hotel/></hotels>{written}</feed>", part=part) == meant


def test_what_an_element_becomes() -> None:
    """Text beside attributes or children has a name of its own; alone, it is the value; nothing is the empty text."""
    content = """<?xml version="1.0"?><!-- hotels --><feed>
      <hotel id="1"><name lang="de">Krone &amp; Post</name><stars/><a:geo xmlns:a="urn:x"><lat>1.50</lat></a:geo></hotel>
      <hotel>closed</hotel><hotel/><hotel a="1"> <![CDATA[<b>]]> <x>1</x> </hotel></feed>"""
    assert hotels(content) == [
        {
            "@id": "1",
            "name": {"@lang": "de", "#text": "Krone & Post"},
            "stars": "",
            "a:geo": {"@xmlns:a": "urn:x", "lat": "1.50"},
        },
        {"#text": "closed"},
        {"#text": ""},
        {"@a": "1", "x": "1", "#text": " <b>  "},
    ]


def test_goes_on_behind_a_number_of_records() -> None:
    """Reading begins at the beginning; what has been read is left out."""
    content = "<feed>" + "".join(f"<hotel>{number}</hotel>" for number in range(5)) + "</feed>"
    assert {record.end for record in records_of(content.encode(), HOTELS)} == {None}
    assert hotels(content, start=Start(3, None)) == [{"#text": "3"}, {"#text": "4"}]


@pytest.mark.parametrize("encoding", ["utf-8", "iso-8859-1", "utf-16", "windows-1252"])
def test_encodings(encoding: str) -> None:
    """The document itself says how it is encoded."""
    content = f'<?xml version="1.0" encoding="{encoding}"?><feed><hotel>Köln</hotel></feed>'.encode(encoding)
    assert hotels(content, part=3) == [{"#text": "Köln"}]


LAUGHS = '<!DOCTYPE feed [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]><feed><hotel>&b;</hotel></feed>'
OUTSIDE = '<!DOCTYPE feed [<!ENTITY x SYSTEM "file:///etc/passwd">]><feed><hotel>&x;</hotel></feed>'


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (LAUGHS, "document type"),
        (OUTSIDE, "document type"),
        ('<!DOCTYPE feed SYSTEM "http://127.0.0.1:9/feed.dtd"><feed/>', "document type"),
        ("<feed><hotel>&nbsp;</hotel></feed>", "undefined entity"),
        ("<feed><hotel>1</hotel>", "no element found|unclosed"),
        ("<feed><hotel>1</hotl></feed>", "mismatched tag"),
        ("<feed><hotel>1</hotel></feed><feed/>", "junk after"),
        ("", "no element found"),
        ("{}", "syntax error|not well-formed"),
        ("<html><body>Log in</body></html>", "the root is <html>"),
        ("<feed><hotel>" + "<x>" * 300, "deep"),
        ('<?xml version="1.0" encoding="Shift_JIS"?><feed/>', "encoding that cannot be read"),
        ('<?xml version="1.0" encoding="klingon"?><feed/>', "encoding that cannot be read"),
    ],
)
@pytest.mark.parametrize("part", [1, 10_000])
def test_refuses_what_is_no_such_document(content: str, why: str, part: int) -> None:
    """Document types, entities, cuts, other documents, and elements without end in one another: each by its name."""
    with pytest.raises(FileUnreadable, match=why):
        hotels(content, part=part)


@pytest.mark.parametrize(
    "content",
    [
        "<feed><hotel>" + "x" * 50_000 + "</hotel></feed>",
        "<feed><hotel>" + "<a>1</a>" * 5000 + "</hotel></feed>",
        "<feed><hotel " + " ".join(f'a{number}="1"' for number in range(5000)) + "/></feed>",
        '<feed><hotel a="' + "x" * 300_000,
    ],
)
def test_a_record_is_bounded(content: str) -> None:
    """An element that is too large, or a token that never ends, fills no memory."""
    with pytest.raises(AnswerTooLarge, match="raise max_body"):
        hotels(content, limit=5000)
