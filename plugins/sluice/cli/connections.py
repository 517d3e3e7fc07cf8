"""A connection id in; the Airflow connection of that name, from the environment or from Airflow itself, out."""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from sluice.cli.logs import logs_kept
from sluice.errors import ConnectionInvalid, SluiceError
from sluice.ports import ConnectionInfo, Connections

PREFIX: Final = "AIRFLOW_CONN_"
_EXTRA_PARAMETER: Final = "__extra__"
_MOST_SCHEMES: Final = 2
_KNOWN_KEYS: Final = frozenset({"conn_type", "description", "host", "login", "password", "schema", "port", "extra"})


class CliConnections:
    """Reads `AIRFLOW_CONN_…` as Airflow does; what is not there, Airflow is asked for, and `tell` is told so first."""

    def __init__(
        self, environ: Mapping[str, str], airflow: Callable[[], Connections], tell: Callable[[str], None] = lambda _: None
    ) -> None:
        self._environ = environ
        self._airflow = airflow
        self._tell = tell
        self._asked: Connections | None = None

    def get(self, conn_id: str) -> ConnectionInfo:
        """Return the connection; raise `ConnectionInvalid`, saying how to define it, if there is none."""
        variable = PREFIX + conn_id.upper()
        value = self._environ.get(variable, "").strip()
        if value:
            return parse_connection(conn_id, value)
        self._tell(f"connection {conn_id} is not in the environment: asking Airflow for it …")
        try:
            with logs_kept():
                self._asked = self._asked or self._airflow()
                return self._asked.get(conn_id)
        except ConnectionInvalid:
            reason = f"there is no connection {conn_id!r}, neither in the environment nor in Airflow"
        except SluiceError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever keeps Airflow from answering, the mend is the same
            reason = (
                f"connection {conn_id!r} is not in the environment, and Airflow could not be asked ({type(error).__name__})"
            )
        raise ConnectionInvalid(
            f"{reason}: `sluice up` starts a local stack with Sluice's own and the demo's; define any other: "
            f'export {variable}=\'{{"conn_type": …, "host": …, "login": …, "password": …}}\'',
            conn_id=conn_id,
        ) from None


def parse_connection(conn_id: str, value: str) -> ConnectionInfo:
    """Parse a connection as JSON or URI, the same way Airflow does. Messages never repeat the value: it holds secrets."""
    try:
        fields = _from_json(value) if value.startswith("{") else _from_uri(value)
        extra = fields.get("extra")
        decoded = json.loads(extra) if isinstance(extra, str) and extra else extra or {}
    except json.JSONDecodeError as error:
        raise _unreadable(conn_id, f"its JSON is broken at character {error.pos}") from None
    except ValueError as error:
        raise _unreadable(conn_id, str(error)) from None
    if not isinstance(decoded, dict):
        raise _unreadable(conn_id, "its extra is no JSON object")
    return ConnectionInfo(
        conn_id=conn_id,
        conn_type=fields.get("conn_type") or "",
        host=fields.get("host") or None,
        port=fields.get("port"),
        login=fields.get("login") or None,
        password=fields.get("password") or None,
        schema=fields.get("schema") or None,
        extra=decoded,
    )


def _unreadable(conn_id: str, reason: str) -> ConnectionInvalid:
    return ConnectionInvalid(f"{PREFIX}{conn_id.upper()} cannot be read: {reason}", conn_id=conn_id)


def _from_json(value: str) -> dict[str, Any]:
    fields = json.loads(value)
    if unknown := sorted(set(fields) - _KNOWN_KEYS):
        raise ValueError(f"unknown keys {', '.join(unknown)}; known: {', '.join(sorted(_KNOWN_KEYS))}")
    fields["conn_type"] = _conn_type(fields.get("conn_type") or "")
    try:
        fields["port"] = int(fields["port"]) if fields.get("port") else None
    except (TypeError, ValueError):
        raise ValueError("its port is no whole number") from None
    return dict(fields)


def _from_uri(value: str) -> dict[str, Any]:
    schemes = value.count("://")
    if schemes > _MOST_SCHEMES:
        raise ValueError("it is no URI of the form type://login:password@host:port/schema")
    conn_type = urlsplit(value).scheme
    nested = schemes == _MOST_SCHEMES
    rest = value.replace(f"{conn_type}://", "" if nested else "//")
    if nested and set(rest.split("://", 1)[0]) & set("@:"):
        raise ValueError("it is no URI of the form type://protocol://host")
    parts = urlsplit(rest)
    try:
        port = parts.port
    except ValueError:
        raise ValueError("its port is no whole number up to 65535") from None
    host = _host(parts)
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    return {
        "conn_type": _conn_type(conn_type),
        "host": f"{parts.scheme}://{host}" if nested and host else host,
        "schema": unquote(parts.path[1:]),
        "login": unquote(parts.username or ""),
        "password": unquote(parts.password or ""),
        "port": port,
        "extra": query.get(_EXTRA_PARAMETER, query),
    }


def _host(parts: SplitResult) -> str:
    """Return the host; one that is a path, such as a socket's folder, keeps its case."""
    host = unquote(parts.hostname or "")
    if "/" in host:
        host = unquote(parts.netloc.rsplit("@", 1)[-1].split(":", 1)[0])
    return host


def _conn_type(name: str) -> str:
    return "postgres" if name == "postgresql" else name.replace("-", "_")
