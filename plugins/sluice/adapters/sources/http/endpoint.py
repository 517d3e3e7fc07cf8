"""The supplier's connection: an Airflow connection of type http in; its base address, headers and what must stay secret out."""

import html
import json
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import SplitResult, parse_qsl, quote, urlencode, urlsplit

from sluice.errors import ConnectionInvalid
from sluice.ports import ConnectionInfo

_SCHEMES: Final = ("http", "https")
_OPEN_HEADERS: Final = ("accept", "accept-language", "user-agent")
"""Headers whose values are no secrets; those of all others are kept out of messages."""

_HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE: Final = re.compile(r"[\x20-\x7e\xa0-\xff\t]*")
_SECRET_PARAMETER: Final = re.compile(r"key|token|secret|pass|auth|sign|credential", re.IGNORECASE)
_LONGEST_SNIPPET: Final = 200
_LONGEST_VALUE: Final = 80
_HIDDEN: Final = "***"


@dataclass(frozen=True)
class Endpoint:
    """Where a supplier is and how it is addressed. Its repr shows nothing secret."""

    conn_id: str
    base: str
    headers: Mapping[str, str] = field(repr=False)
    _secrets: tuple[str, ...] = field(repr=False)

    @classmethod
    def of(cls, info: ConnectionInfo) -> "Endpoint":
        """Read the connection; raise `ConnectionInvalid`, without its secrets, if it cannot be used."""
        headers = _extra_headers(info)
        secrets = [value for name, value in headers.items() if name.lower() not in _OPEN_HEADERS]
        secrets += [value.partition(" ")[2] for value in secrets]
        if (info.login or info.password) and not any(name.lower() == "authorization" for name in headers):
            pair = b64encode(f"{info.login or ''}:{info.password or ''}".encode()).decode()
            headers["Authorization"] = f"Basic {pair}"
            secrets += [pair, info.password or ""]
        return cls(info.conn_id, _base(info), headers, _spellings(secrets))

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
            f"{name}={_HIDDEN if _SECRET_PARAMETER.search(name) else value[:_LONGEST_VALUE]}"
            for name, value in parse_qsl(parts.query, keep_blank_values=True)
        ]
        query = f"?{'&'.join(pairs)}" if pairs else ""
        return self._without_secrets(f"{parts.scheme}://{parts.netloc}{parts.path}{query}")

    def snippet(self, text: bytes | str) -> str:
        """Return the beginning of a text from outside, on one line and without the connection's secrets."""
        decoded = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
        printable = "".join(char if char.isprintable() else " " for char in self._without_secrets(decoded))
        line = " ".join(printable.split())
        return line if len(line) <= _LONGEST_SNIPPET else f"{line[:_LONGEST_SNIPPET]}…"

    def _without_secrets(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, _HIDDEN)
        return text


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
        if not _HEADER_NAME.fullmatch(name) or not isinstance(value, str) or not _HEADER_VALUE.fullmatch(value):
            raise ConnectionInvalid(
                f"connection {info.conn_id}: header {name!r} in the extra must be a text of one line, in Latin-1 characters"
            )
        checked[name] = value
    return checked


def _spellings(secrets: Iterable[str]) -> tuple[str, ...]:
    """Return each secret in the ways an answer may repeat it, longest first."""
    spelled = {way for secret in secrets for way in (secret, quote(secret), json.dumps(secret)[1:-1], html.escape(secret))}
    return tuple(sorted((way for way in spelled if way.strip()), key=len, reverse=True))
