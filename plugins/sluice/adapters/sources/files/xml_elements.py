"""An XML document in, as a stream; each element at a path as a JSON object out. Entities and document types are refused."""

from collections.abc import Iterator
from typing import Any, Final, NoReturn
from xml.parsers import expat

import msgspec

from sluice.adapters.sources.files.window import Record
from sluice.errors import AnswerTooLarge, FileUnreadable

_DEEPEST: Final = 200
_PART: Final = 64 * 1024
_TEXT: Final = "#text"


class _Element:
    """One element while it is read: what it becomes, and the text in it."""

    __slots__ = ("members", "texts")

    def __init__(self, attributes: dict[str, str]) -> None:
        self.members: dict[str, Any] = {f"@{name}": value for name, value in attributes.items()}
        self.texts: list[str] = []

    def add(self, name: str, child: Any) -> None:
        """Add what a child became; several of one name become a list."""
        if name not in self.members:
            self.members[name] = child
        elif isinstance(self.members[name], list):
            self.members[name].append(child)
        else:
            self.members[name] = [self.members[name], child]

    def value(self) -> Any:
        """Return what the element becomes: its text alone where it has nothing else."""
        text = "".join(self.texts)
        if not self.members:
            return text
        return {**self.members, _TEXT: text} if text.strip() else self.members

    def whole(self) -> dict[str, Any]:
        """Return what the element becomes as a record: an object in any case."""
        value = self.value()
        return value if isinstance(value, dict) else {_TEXT: value}


class _Elements:
    """Collects the elements at a path."""

    def __init__(self, path: tuple[str, ...], name: str, limit: int) -> None:
        self.found: list[bytes] = []
        self._path = path
        self._name = name
        self._limit = limit
        self._above: list[str] = []
        self._open: list[_Element] = []
        self._names: list[str] = []
        self._size = 0
        self.parser = parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        parser.StartDoctypeDeclHandler = self._refuse_doctype

    def require_small(self, size: int) -> None:
        if size > self._limit:
            raise AnswerTooLarge(
                f"{self._name}: a record is larger than {self._limit} bytes: raise max_body of the stage", file=self._name
            )

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if len(self._above) + len(self._open) >= _DEEPEST:
            raise FileUnreadable(f"{self._name}: elements are more than {_DEEPEST} deep in one another", file=self._name)
        if self._open:
            self._names.append(name)
            self._open.append(self._grown(_Element(attributes), name, *attributes, *attributes.values()))
            return
        self._above.append(name)
        if len(self._above) == 1 and name != self._path[0]:
            raise FileUnreadable(
                f"{self._name}: the root is <{name[:100]}>, not <{self._path[0]}> (source.format.element)", file=self._name
            )
        if tuple(self._above) == self._path:
            self._size = 0
            self._open.append(self._grown(_Element(attributes), *attributes, *attributes.values()))

    def _end(self, _: str) -> None:
        if len(self._open) > 1:
            child = self._open.pop()
            self._open[-1].add(self._names.pop(), child.value())
            return
        if self._open:
            self.found.append(msgspec.json.encode(self._open.pop().whole()))
        self._above.pop()

    def _text(self, text: str) -> None:
        if self._open:
            self._grown(self._open[-1], text).texts.append(text)

    def _grown(self, element: _Element, *texts: str) -> _Element:
        self._size += sum(map(len, texts))
        self.require_small(self._size)
        return element

    def _refuse_doctype(self, *_: object) -> NoReturn:
        raise FileUnreadable(
            f"{self._name}: has a document type declaration, which is not read, since entities may be declared there",
            file=self._name,
        )


def xml_records(parts: Iterator[bytes], element: str, name: str, limit: int) -> Iterator[Record]:
    """Yield each element at the path `element`; none tells where it stood, since reading cannot begin in the middle.

    Raises `FileUnreadable` for what is no XML document, or not all of one, `AnswerTooLarge` for an element above `limit`.
    """
    elements = _Elements(tuple(element.split("/")), name, limit)
    parser = elements.parser
    received = 0
    for part in parts:
        for start in range(0, len(part), _PART):
            piece = part[start : start + _PART]
            received += len(piece)
            _parse(parser, piece, name)
            elements.require_small(received - max(parser.CurrentByteIndex, 0))  # what is no whole token yet
            yield from _taken(elements)
    _parse(parser, b"", name, is_last=True)
    yield from _taken(elements)


def _taken(elements: _Elements) -> Iterator[Record]:
    found, elements.found = elements.found, []
    yield from (Record(raw, 0, None) for raw in found)


def _parse(parser: expat.XMLParserType, piece: bytes, name: str, *, is_last: bool = False) -> None:
    try:
        parser.Parse(piece, is_last)
    except expat.ExpatError as exc:
        what = expat.ErrorString(exc.code)
        raise FileUnreadable(f"{name}: at byte {parser.ErrorByteIndex} is no sound XML: {what}", file=name) from exc
    except (ValueError, LookupError) as exc:  # what Python says of the encoding that the document declares
        raise FileUnreadable(f"{name}: declares an encoding that cannot be read: {str(exc)[:100]}", file=name) from exc
