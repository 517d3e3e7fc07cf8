"""What must stay secret in; texts without it out, in whichever way they spell it."""

import html
import json
import re
import threading
from base64 import b64encode, urlsafe_b64encode
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import quote, quote_plus

HIDDEN: Final = "***"

_SHORTEST_IN_BASE64: Final = 4
"""Characters; in fewer, three letters of any text might be a secret."""

_SHORTEST_TELLING: Final = 8
"""Characters; what is shorter may stand somewhere by chance."""

_MOST_PASSING: Final = 20
_WORD: Final = r"(?:(?<!\w)|(?<=%[0-9A-Fa-f]{{2}})){}(?!\w)"


class Secrets:
    """The secrets of one connection; more are added as they are learnt. Its repr shows none, and threads may share it."""

    def __init__(self, *values: str, others: Iterable[str] = (), names: Iterable[str] = ()) -> None:
        """Hide `values`, and `others` that may be none, wherever they stand, and short `names` where they are whole words."""
        names = tuple(names)
        self._others = (*others, *(name for name in names if len(name) >= _SHORTEST_TELLING))
        self._lasting: set[str] = set()
        self._passing: deque[str] = deque(maxlen=_MOST_PASSING)
        self._ways: dict[str, tuple[str, ...]] = {}
        self._spelled: tuple[str, ...] = ()
        self._telling: tuple[str, ...] = ()
        short = [name for name in names if len(name) < _SHORTEST_TELLING]
        self._names = tuple(re.compile(_WORD.format(re.escape(way))) for name in short for way in _ways(name))
        self._lock = threading.Lock()
        self.add(*values)

    def add(self, *values: str) -> None:
        """Hide these as well from now on."""
        with self._lock:
            self._lasting.update(values)
            self._spell()

    def add_passing(self, *values: str) -> None:
        """Hide these as well, such as tokens and signatures, until many others have come after them."""
        with self._lock:
            self._passing.extend(value for value in values if value not in self._lasting and value not in self._passing)
            self._spell()

    def _spell(self) -> None:
        known = (*self._lasting, *self._passing)
        # What is known already is not spelled again: each request may bring a new signature.
        self._ways = {value: self._ways.get(value) or tuple(_ways(value)) for value in (*known, *self._others)}
        self._spelled = tuple(sorted({way for ways in self._ways.values() for way in ways}, key=len, reverse=True))
        self._telling = tuple(way for value in known if len(value) >= _SHORTEST_TELLING for way in self._ways[value])

    @property
    def longest(self) -> int:
        """How many characters `hide` makes three of, at most."""
        return max(len(HIDDEN), *map(len, self._spelled[:1]), *(len(name.pattern) for name in self._names), 0)

    def are_in(self, text: str) -> bool:
        """Whether the text holds what surely is a secret, in any spelling: one that is too long to stand there by chance."""
        return any(way in text for way in self._telling)

    def hide(self, text: str) -> str:
        """Return the text without them."""
        for way in self._spelled:
            text = text.replace(way, HIDDEN)
        for name in self._names:
            text = name.sub(HIDDEN, text)
        return text


def _ways(secret: str) -> Iterator[str]:
    """Yield the ways an answer, or a library's message, may repeat a secret."""
    if not secret.strip():
        return
    for text in {secret, secret.replace(" ", "+")}:  # the latter: a form, half decoded
        yield from _escaped(text)
    if len(secret) >= _SHORTEST_IN_BASE64:
        yield b64encode(secret.encode()).decode().rstrip("=")
        yield urlsafe_b64encode(secret.encode()).decode().rstrip("=")


def _escaped(text: str) -> Iterator[str]:
    yield text
    for quoted in (quote(text), quote(text, safe=""), quote_plus(text), quote(quote(text)), quote(quote(text, safe=""))):
        yield quoted
        yield re.sub("%[0-9A-F]{2}", lambda octet: octet.group().lower(), quoted)
    yield repr(text)[1:-1]
    yield repr(text.encode())[2:-1]
    yield html.escape(text)
    for is_ascii in (True, False):
        once = json.dumps(text, ensure_ascii=is_ascii)[1:-1]
        yield once
        yield json.dumps(once, ensure_ascii=is_ascii)[1:-1]  # JSON in a text of JSON
