"""The supplier's connection: an Airflow connection of type http in; its base address, headers and what must stay secret out."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import SplitResult, parse_qsl, quote, urlencode, urlsplit

from sluice.adapters.sources.transport.request import is_header_value
from sluice.adapters.sources.transport.secrecy import HIDDEN, Secrets
from sluice.errors import ConnectionInvalid
from sluice.model.header_names import is_header_name, misnamed
from sluice.ports import ConnectionInfo

_SCHEMES: Final = ("http", "https")
OPEN_HEADERS: Final = ("accept", "accept-language", "user-agent")
"""Headers whose values are no secrets; those of all others are kept out of messages."""

_SECRET_NAME: Final = re.compile(r"key|token|secret|pass|auth|sign|credential|cookie|session", re.IGNORECASE)
_LONGEST_SNIPPET: Final = 200
_LONGEST_VALUE: Final = 80
_MOST_BYTES: Final = 4
"""Of one character in UTF-8."""


@dataclass(frozen=True)
class Endpoint:
    """Where a supplier is and how it is addressed. Its repr shows nothing secret."""

    conn_id: str
    base: str
    headers: Mapping[str, str] = field(repr=False)
    """Those of the extra; what proves who asks is no part of them, see `proof`."""
    secrets: Secrets = field(repr=False, compare=False)

    @classmethod
    def of(cls, info: ConnectionInfo) -> "Endpoint":
        """Read the connection; raise `ConnectionInvalid`, without its secrets, if it cannot be used."""
        headers = _extra_headers(info)
        closed = {name: value for name, value in headers.items() if name.lower() not in OPEN_HEADERS}
        surely = _with_parts(value for name, value in closed.items() if _SECRET_NAME.search(name))
        others = _with_parts(closed.values())
        secrets = Secrets(*surely, info.password or "", others=others, names=(info.login or "",))
        return cls(info.conn_id, _base(info), headers, secrets)

    @property
    def host(self) -> str:
        """Who is asked: what all connections to the same server have in common."""
        return urlsplit(self.base).netloc

    def url(self, path: str, query: Mapping[str, str]) -> str:
        """Return the address of a request."""
        return f"{self.base}{path}?{urlencode(query, quote_via=quote)}" if query else f"{self.base}{path}"

    def shown(self, url: str) -> str:
        """Return an address as messages may show it: values of parameters that sound secret are hidden, long ones cut."""
        parts = urlsplit(url)
        pairs = [
            f"{name}={HIDDEN if _SECRET_NAME.search(name) else self.secrets.hide(value)[:_LONGEST_VALUE]}"
            for name, value in parse_qsl(parts.query, keep_blank_values=True)
        ]
        query = f"?{'&'.join(pairs)}" if pairs else ""
        text = f"{parts.scheme}://{parts.netloc}{parts.path}{query}"
        own = self.base if text.startswith(self.base) else ""
        return own + self.secrets.hide(text.removeprefix(own))

    def snippet(self, text: bytes | str) -> str:
        """Return the beginning of a text from outside, on one line and without the connection's secrets."""
        # Of so much the beginning is long enough, even if there is nothing in it but secrets.
        enough = text[: (_LONGEST_SNIPPET + 1) * self.secrets.longest * _MOST_BYTES]
        decoded = enough.decode("utf-8", "replace") if isinstance(enough, bytes) else enough
        printable = "".join(char if char.isprintable() else " " for char in self.secrets.hide(decoded))
        line = " ".join(printable.split())
        return line if len(line) <= _LONGEST_SNIPPET else f"{line[:_LONGEST_SNIPPET]}…"


def _with_parts(values: Iterable[str]) -> list[str]:
    """Return the values, and what stands behind a word in front, such as `Bearer`."""
    return [part for value in values for part in (value, value.partition(" ")[2])]


def _base(info: ConnectionInfo) -> str:
    host = (info.host or "").strip()
    scheme = (info.schema or "http").lower()
    try:
        parts = urlsplit(host if "://" in host else f"{scheme}://{host}")
        port = parts.port or info.port
    except ValueError:
        raise ConnectionInvalid(f"connection {info.conn_id}: the host is no address") from None
    if not parts.hostname or re.search(r"[\s\\]", host):
        raise ConnectionInvalid(f"connection {info.conn_id} needs a host, such as api.example.com or https://api.example.com")
    if parts.scheme not in _SCHEMES:
        raise ConnectionInvalid(f"connection {info.conn_id}: the scheme is {parts.scheme!r}; allowed: {', '.join(_SCHEMES)}")
    if parts.username is not None or parts.password is not None:
        raise ConnectionInvalid(f"connection {info.conn_id}: put the credentials into login and password, not into the host")
    if parts.query or parts.fragment:
        raise ConnectionInvalid(f"connection {info.conn_id}: put query parameters into the spec, not into the host")
    return f"{parts.scheme}://{_netloc(parts, port)}{parts.path.rstrip('/')}"


def _netloc(parts: SplitResult, port: int | None) -> str:
    name = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{name}:{port}" if port else f"{name}"


def _extra_headers(info: ConnectionInfo) -> dict[str, str]:
    headers = info.extra.get("headers") or {}
    if not isinstance(headers, dict):
        raise ConnectionInvalid(f"connection {info.conn_id}: `headers` in the extra must be an object of names and texts")
    checked: dict[str, str] = {}
    for name, value in headers.items():
        if not is_header_name(name) or not isinstance(value, str) or not is_header_value(value):
            raise ConnectionInvalid(
                f"connection {info.conn_id}: header {name!r} in the extra must be a text of one line, in Latin-1 characters"
            )
        # A name for the host may be needed where many share an address; all else of this kind would break the request itself.
        if name.lower() != "host" and (problem := misnamed(name)) is not None:
            raise ConnectionInvalid(f"connection {info.conn_id}: header {name!r} in the extra {problem}")
        checked[name] = value
    return checked
