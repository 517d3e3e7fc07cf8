"""YAML text in; plain values out, with the line of each of them, and every mistake of form.

Scalars are read as YAML 1.2 reads them: only `true` and `false` are truth values, so that a country code `no` stays text, and
nothing is a date or a sexagesimal number. What a spec has no use for is refused by name: aliases, tags, several documents,
keys that are not text.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias

import yaml

Path: TypeAlias = tuple[str | int, ...]


class Problem(NamedTuple):
    """Where in the tree, and what is wrong there; `line` only where the path's own line is another."""

    path: Path
    message: str
    line: int | None = None


MAX_BYTES: Final = 1_000_000
MAX_DEPTH: Final = 20

_Loader: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NULLS: Final = frozenset({"", "~", "null"})
_TRUTHS: Final = {"true": True, "false": False}
_INTEGER: Final = re.compile(r"[-+]?[0-9]{1,40}")
_NUMBER: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")


@dataclass
class YamlTree:
    """A document: its value, and for each path the line of its key and, for scalars, the text as it is written."""

    value: Any = None
    lines: dict[Path, int] = field(default_factory=dict)
    texts: dict[Path, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def line(self, path: Path) -> int:
        """Return the line of `path`, or of the nearest thing above it that stands in the file."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


class _Unreadable(Exception):
    def __init__(self, line: int, message: str, path: Path = ()) -> None:
        super().__init__(message)
        self.problem = Problem(path, message, line)


def parse_yaml(data: bytes) -> YamlTree:
    """Return the tree of a YAML file that holds one mapping; where it does not, `problems` says why and `value` may be None."""
    tree = YamlTree()
    try:
        text = _decode(data)
        _Builder(tree).build(_events(text))
    except _Unreadable as unreadable:
        tree.value = None
        tree.problems = [unreadable.problem]
    return tree


def _decode(data: bytes) -> str:
    if len(data) > MAX_BYTES:
        raise _Unreadable(1, f"the file has {len(data)} bytes; at most {MAX_BYTES} are read")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _Unreadable(line, f"byte 0x{data[error.start]:02x} is not UTF-8: save the file as UTF-8") from None


def _events(text: str) -> Iterator[yaml.Event]:
    try:
        yield from yaml.parse(text, Loader=_Loader)
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise _Unreadable(line, f"character U+{ord(text[error.position]):04X} is not allowed in YAML") from None
    except yaml.MarkedYAMLError as error:
        raise _broken(text, error) from None


def _broken(text: str, error: yaml.MarkedYAMLError) -> _Unreadable:
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line, mark.column) if mark else (0, 0)
    found = (text.split("\n")[line : line + 1] or [""])[0][column : column + 1]
    if found == "\t":
        return _Unreadable(line + 1, "a tab cannot indent YAML: use spaces")
    if found and found in "@`%":
        return _Unreadable(line + 1, f"a value cannot begin with {found}: put it in quotes")
    message = " ".join(part for part in (error.context, error.problem) if part)
    if error.context_mark and error.context_mark.line < line:
        message += f", begun on line {error.context_mark.line + 1}"
    return _Unreadable(line + 1, f"not valid YAML: {message}")


class _Builder:
    """Turns the parser's events into values, one document at most."""

    def __init__(self, tree: YamlTree) -> None:
        self._tree = tree

    def build(self, events: Iterator[yaml.Event]) -> None:
        documents = 0
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise _Unreadable(_line(event), "a second document begins here; a file holds one")
            elif not isinstance(event, yaml.StreamStartEvent | yaml.StreamEndEvent | yaml.DocumentEndEvent):
                self._tree.lines[()] = _line(event)
                self._tree.value = self._value(event, events, ())
        if not isinstance(self._tree.value, dict):
            found = "nothing" if self._tree.value is None else describe(self._tree.value)
            raise _Unreadable(self._tree.line(()), f"the file has to hold a mapping (`key: value` lines), not {found}")

    def _value(self, event: yaml.Event, events: Iterator[yaml.Event], path: Path) -> Any:
        line = _line(event)
        if isinstance(event, yaml.AliasEvent):
            raise _Unreadable(line, f"aliases (*{event.anchor}) are not supported: write the value out", path)
        if len(path) > MAX_DEPTH:
            raise _Unreadable(line, f"nested more than {MAX_DEPTH} levels deep", path[:3])
        _refuse_tag(event, line, path)
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(events, path)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(events, path)
        if isinstance(event, yaml.ScalarEvent):
            self._tree.texts[path] = event.value
            return _scalar(event.value) if event.implicit[0] else event.value
        raise _Unreadable(line, "not valid YAML", path)

    def _mapping(self, events: Iterator[yaml.Event], path: Path) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for event in events:
            if isinstance(event, yaml.MappingEndEvent):
                break
            key, line = self._key(event, path), _line(event)
            if key in values:
                first = self._tree.lines[(*path, key)]
                self._tree.problems.append(Problem((*path, key), f"stands twice; the first is on line {first}", line))
                _Builder(YamlTree())._value(next(events), events, ())  # noqa: SLF001 - its value is read over
                continue
            self._tree.lines[(*path, key)] = line
            values[key] = self._value(next(events), events, (*path, key))
        return values

    def _key(self, event: yaml.Event, path: Path) -> str:
        line = _line(event)
        if isinstance(event, yaml.MappingStartEvent):
            raise _Unreadable(line, "a mapping cannot be a key; a template has to stand in quotes: '{{ … }}'", path)
        if isinstance(event, yaml.AliasEvent) or (isinstance(event, yaml.ScalarEvent) and event.value == "<<"):
            raise _Unreadable(line, "aliases and merge keys are not supported: write the keys out", path)
        if not isinstance(event, yaml.ScalarEvent):
            raise _Unreadable(line, "a list cannot be a key", path)
        _refuse_tag(event, line, path)
        if event.implicit[0] and not isinstance(_scalar(event.value), str):
            raise _Unreadable(line, f"a key has to be text: write '{event.value}' in quotes", path)
        return str(event.value)

    def _sequence(self, events: Iterator[yaml.Event], path: Path) -> list[Any]:
        values: list[Any] = []
        for event in events:
            if isinstance(event, yaml.SequenceEndEvent):
                break
            here = (*path, len(values))
            self._tree.lines[here] = _line(event)
            values.append(self._value(event, events, here))
        return values


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 1


def _refuse_tag(event: yaml.Event, line: int, path: Path) -> None:
    tag = getattr(event, "tag", None)
    if tag is not None and tag != "!":
        raise _Unreadable(line, f"tags ({tag}) are not supported", path)


def _scalar(text: str) -> Any:
    if text in _NULLS:
        return None
    if text in _TRUTHS:
        return _TRUTHS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _NUMBER.fullmatch(text):
        return float(text)
    return text


def describe(value: Any) -> str:
    """Return what a value is, as one would say it: `the number 5`, `a list`."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return f"the truth value {str(value).lower()}"
    if isinstance(value, int | float):
        return f"the number {value}"
    if isinstance(value, str):
        return f"the text {value!r}"
    return "a list" if isinstance(value, list | tuple) else "a mapping"
