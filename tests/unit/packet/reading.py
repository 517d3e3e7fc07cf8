"""A page as a browser would read it: which elements and attributes stand in it, and its text."""

from html.parser import HTMLParser
from xml.etree import ElementTree as ET

VOID = frozenset({"meta", "br", "link", "input"})
CELLS = frozenset({"td", "th", "dt", "dd"})
"""Elements that end a word."""


class Reading(HTMLParser):
    """Elements, attributes and text of a page; `unclosed` holds what stands open or closes nothing."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self._words: list[str] = []
        self.unclosed: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        self.unclosed += self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag in CELLS:
            self._words.append(" ")
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open.pop() != tag:
            self.unclosed.append(tag)

    def handle_data(self, data: str) -> None:
        if "style" not in self._open:
            self._words.append(data)

    @property
    def text(self) -> str:
        """What a person reads."""
        return "".join(self._words)

    @property
    def shape(self) -> list[tuple[str, tuple[str, ...]]]:
        """The elements with the names of their attributes: what no word of a supplier may change."""
        return [(tag, tuple(attributes)) for tag, attributes in self.elements]


def drawings(text: str) -> list[ET.Element]:
    """Return the SVG drawings in a page, read as XML."""
    found = []
    for part in text.split("<svg")[1:]:
        drawing, end, _ = part.partition("</svg>")
        assert end
        found.append(ET.fromstring(f"<svg{drawing}</svg>"))  # noqa: S314 - of our own making
    return found
