"""What must stay secret in; texts without it out, in whichever way they spell it."""

import html
import json
import re
import threading
from base64 import b64encode, urlsafe_b64encode
from collections import deque
from collections.abc import Iterator
from typing import Final
from urllib.parse import quote, quote_plus

HIDDEN: Final = "***"

_SHORTEST_IN_BASE64: Final = 4
"""Characters; in fewer, three letters of any text might be a secret."""

_MOST_PASSING: Final = 20


class Secrets:
    """The secrets of one connection; more are added as they are learnt. Its repr shows none, and threads may share it."""

    def __init__(self, *values: str, names: tuple[str, ...] = ()) -> None:
        """Hide `values` wherever they stand, and `names`, such as a login, where they stand by themselves."""
        self._lasting: set[str] = set()
        self._passing: deque[str] = deque(maxlen=_MOST_PASSING)
        self._spelled: tuple[str, ...] = ()
        self._names = tuple(re.compile(rf"(?<!\w){re.escape(way)}(?!\w)") for name in names for way in _ways(name))
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
        spelled = {way for value in (*self._lasting, *self._passing) for way in _ways(value)}
        self._spelled = tuple(sorted(spelled, key=len, reverse=True))

    def are_in(self, text: str) -> bool:
        """Whether the text holds a secret in any spelling; names are none by themselves."""
        return any(way in text for way in self._spelled)

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
    yield secret
    for quoted in (quote(secret), quote(secret, safe=""), quote_plus(secret)):
        yield quoted
        yield re.sub("%[0-9A-F]{2}", lambda octet: octet.group().lower(), quoted)
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    yield repr(secret)[1:-1]
    yield html.escape(secret)
    if len(secret) >= _SHORTEST_IN_BASE64:
        yield b64encode(secret.encode()).decode().rstrip("=")
        yield urlsafe_b64encode(secret.encode()).decode().rstrip("=")
