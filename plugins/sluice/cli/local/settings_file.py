"""`airflow_settings.yaml`, in the Astro CLI's format, in; connections, pools and variables, or every mistake in it, out."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any, Final

from pydantic import Field, JsonValue, ValidationError

from sluice.adapters.spec_problems import problems_of
from sluice.adapters.yaml_files import spell
from sluice.adapters.yaml_positions import Path, Problem, YamlTree, parse_yaml
from sluice.errors import SpecInvalid
from sluice.model.base import Frozen

FILE: Final = "airflow_settings.yaml"
_TEXTS: Final = frozenset(
    {"conn_id", "conn_type", "conn_host", "conn_schema", "conn_login", "conn_password", "conn_uri", "variable_name"}
    | {"variable_value", "pool_name", "pool_description"}
)
"""Keys whose values are text, whatever they look like: a password of digits is no number."""


class ConnectionEntry(Frozen):
    """A connection. `conn_uri` counts only where nothing else is said, as with the Astro CLI."""

    conn_id: str | None = None
    conn_type: str | None = None
    conn_host: str | None = None
    conn_schema: str | None = None
    conn_login: str | None = None
    conn_password: str | None = None
    conn_port: int | None = Field(default=None, ge=1, le=65535)
    conn_uri: str | None = None
    conn_extra: dict[str, JsonValue] | str | None = None

    def as_variable(self) -> str:
        """Return what an `AIRFLOW_CONN_…` variable holds."""
        fields = {
            "conn_type": self.conn_type,
            "host": self.conn_host,
            "schema": self.conn_schema,
            "login": self.conn_login,
            "password": self.conn_password,
            "port": self.conn_port,
        }
        said = {name: value for name, value in fields.items() if value is not None}
        if not said and self.conn_uri:
            return self.conn_uri
        return json.dumps({**said, **({"extra": self.conn_extra} if self.conn_extra else {})})


class PoolEntry(Frozen):
    """A pool."""

    pool_name: str | None = None
    pool_slot: int | None = Field(default=None, ge=0)
    pool_description: str | None = None


class VariableEntry(Frozen):
    """A variable."""

    variable_name: str | None = None
    variable_value: str | None = None


class AirflowEntries(Frozen):
    """What stands under `airflow`."""

    connections: tuple[ConnectionEntry, ...] | None = None
    pools: tuple[PoolEntry, ...] | None = None
    variables: tuple[VariableEntry, ...] | None = None


class SettingsDocument(Frozen):
    """The whole file."""

    airflow: AirflowEntries | None = None


@dataclass(frozen=True)
class Pool:
    """A pool of task slots."""

    slots: int
    description: str = ""


@dataclass(frozen=True)
class LocalSettings:
    """What a local Airflow is to know; entries without a name, which the Astro CLI's template has, are left out."""

    connections: Mapping[str, str]
    """By id, as JSON or URI."""
    pools: Mapping[str, Pool]
    variables: Mapping[str, str]


def read_settings(project: FilePath) -> LocalSettings:
    """Return what the project's file says, nothing if there is none; raise `SpecInvalid` with all that is wrong with it."""
    try:
        tree = parse_yaml((project / FILE).read_bytes())
    except FileNotFoundError:
        return LocalSettings({}, {}, {})
    value = tree.value if tree.value is not None else {}
    problems = list(tree.problems)
    document = SettingsDocument()
    try:
        document = SettingsDocument.model_validate(_as_written(value, tree.texts))
    except ValidationError as error:
        problems += problems_of(SettingsDocument, error, tree.texts)
    found = document.airflow or AirflowEntries()
    problems += _incomplete(found)
    if problems:
        raise SpecInvalid(_spelled(tree, problems))
    return LocalSettings(
        connections={one.conn_id: one.as_variable() for one in found.connections or () if one.conn_id},
        pools={
            one.pool_name: Pool(one.pool_slot, one.pool_description or "")
            for one in found.pools or ()
            if one.pool_name and one.pool_slot
        },
        variables={one.variable_name: one.variable_value or "" for one in found.variables or () if one.variable_name},
    )


def _as_written(value: Any, texts: Mapping[Path, str], path: Path = ()) -> Any:
    """Return the values, those of text as they are written."""
    if isinstance(value, dict):
        return {key: _as_written(item, texts, (*path, key)) for key, item in value.items()}
    if isinstance(value, list):
        return [_as_written(item, texts, (*path, index)) for index, item in enumerate(value)]
    is_text = path[-1:] and path[-1] in _TEXTS and isinstance(value, bool | int | float)
    return texts[path] if is_text else value


def _incomplete(found: AirflowEntries) -> Iterable[Problem]:
    """Yield what is wrong with the entries as a whole."""
    named: dict[str, list[tuple[Path, str | None]]] = {
        "conn_id": [(("airflow", "connections", n), one.conn_id) for n, one in enumerate(found.connections or ())],
        "pool_name": [(("airflow", "pools", n), one.pool_name) for n, one in enumerate(found.pools or ())],
        "variable_name": [(("airflow", "variables", n), one.variable_name) for n, one in enumerate(found.variables or ())],
    }
    for key, entries in named.items():
        seen: set[str] = set()
        for path, name in entries:
            if name and name in seen:
                yield Problem((*path, key), f"{name!r} stands here already")
            seen.add(name or "")
    for n, connection in enumerate(found.connections or ()):
        if connection.conn_id and not (connection.conn_type or connection.conn_uri):
            yield Problem(("airflow", "connections", n, "conn_type"), f"{connection.conn_id!r} needs conn_type or conn_uri")


def _spelled(tree: YamlTree, problems: Iterable[Problem]) -> list[str]:
    lines = []
    for path, message, line in problems:
        lines.append((line or tree.line(path), f"{spell(path)}: {message}" if path else message))
    return [f"{FILE}:{line}: {text}" for line, text in sorted(lines)]
