"""What a person says of a new sync in; the texts of its spec and of its DAG file out."""

import json
import re
from dataclasses import dataclass
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from sluice.cli.drafting.choices import Kind, Paging, Shards
from sluice.mapping.proposals import Proposal, column_names
from sluice.model.fields import VERSION_TYPES, TypeName
from sluice.model.watermark import WATERMARK_TYPES

_NO_KEYS: Final = frozenset({TypeName.JSON, TypeName.DOUBLE})
_NO_TEXTS: Final = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
_ROLES: Final = "what identifies an object", "orders the versions of an object", "grows with every change"

_TEMPLATES: Final = Environment(
    loader=PackageLoader(__package__, "."),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
    autoescape=False,  # noqa: S701 - this is YAML and Python; each value goes through a filter of its own
    # Else than usual, since the text itself has templates.
    block_start_string="<%",
    block_end_string="%>",
    variable_start_string="<<",
    variable_end_string=">>",
    comment_start_string="<#",
    comment_end_string="#>",
)


def _scalar(text: str) -> str:
    """Return a text as YAML: as it stands if it can be nothing but that text, else in quotes."""
    is_plain = re.fullmatch(r"[/A-Za-z_][\w./-]*", text, re.ASCII) and text.lower() not in _NO_TEXTS
    return text if is_plain else json.dumps(text)


def _comment(text: str) -> str:
    """Return a text, part of which may be a supplier's, that stays on its line."""
    return "".join(char if char.isprintable() else " " for char in text)


def _relation(table: str) -> str:
    """Return `table` or `schema.table` as SQL spells it."""
    parts = [
        part if re.fullmatch(r"[a-z_][a-z0-9_]*", part) else '"' + part.replace('"', '""') + '"' for part in table.split(".")
    ]
    return ".".join(parts)


_TEMPLATES.filters |= {"scalar": _scalar, "comment": _comment, "relation": _relation}


@dataclass(frozen=True)
class Column:
    """A field as it will be written."""

    name: str
    path: tuple[str, ...]
    type: TypeName
    required: bool = False
    comment: str = ""

    @property
    def written(self) -> str:
        """The field in YAML, on one line."""
        parts = [f"name: {_scalar(self.name)}"]
        if self.path != (self.name,):
            is_listed = any(set(key) & set(".[]") for key in self.path)
            parts.append(f"path: {json.dumps(list(self.path)) if is_listed else _scalar('.'.join(self.path))}")
        parts.append(f"type: {self.type}")
        parts += ["required: true"] if self.required else []
        return f"{{ {', '.join(parts)} }}" + (f" # {_comment(self.comment)}" if self.comment else "")


@dataclass(frozen=True)
class Draft:
    """A sync that is about to be written. Paths into records are keys joined by dots."""

    name: str
    kind: Kind
    connection: str
    stage: str
    target: str
    path: str = ""
    records: str = ""
    paging: Paging = "body"
    table: str = ""
    files: tuple[str, ...] = ()
    bucket: str | None = None
    format: str = "jsonl"
    code: str = ""
    key: tuple[str, ...] = ("id",)
    version: str | None = None
    watermark: str | None = None
    shards: Shards = "none"
    schedule: str | None = None
    notes: tuple[str, ...] = ()
    """What was found at the supplier, and has to be checked."""
    seen: tuple[Proposal, ...] = ()

    @property
    def columns(self) -> list[Column]:
        """The fields: those with a role first, then whatever else was seen."""
        roles: dict[tuple[str, ...], list[str]] = {}
        for with_role, role in zip((self.key, (self.version,), (self.watermark,)), _ROLES, strict=True):
            for path in filter(None, with_role):
                roles.setdefault(tuple(path.split(".")), []).append(role)
        seen = {proposal.path: proposal for proposal in self.seen}
        paths = [*roles, *(path for path in seen if path not in roles)]
        return [
            self._column(name, path, roles.get(path, []), seen.get(path))
            for name, path in zip(column_names(paths), paths, strict=True)
        ]

    def column_of(self, path: str) -> str:
        """Return the name of the column of a path that has a role."""
        return next(column.name for column in self.columns if ".".join(column.path) == path)

    def _column(self, name: str, path: tuple[str, ...], roles: list[str], seen: Proposal | None) -> Column:
        is_key = _ROLES[0] in roles
        comments = list(roles)
        kind = seen.type if seen is not None else None
        if seen is not None:
            comments.append(_found(seen))
        elif self.seen:
            comments.append("check: none of the records looked at has it")
        fits = _fits(kind, is_key=is_key, orders=_ROLES[1] in roles, grows=_ROLES[2] in roles)
        if kind is None or not fits:
            kind = TypeName.TEXT if is_key else TypeName.TIMESTAMPTZ
            comments.append("check the type")
        return Column(name, path, kind, required=bool(roles) and not is_key, comment="; ".join(filter(None, comments)))

    @property
    def spec_text(self) -> str:
        """The spec as YAML, every key of it explained."""
        return _TEMPLATES.get_template("spec.yaml.jinja").render(draft=self, columns=self.columns, **self._facts())

    @property
    def dag_text(self) -> str:
        """The DAG file."""
        return _TEMPLATES.get_template("dag.py.jinja").render(draft=self)

    def _facts(self) -> dict[str, Any]:
        return {
            "watermark": self.column_of(self.watermark) if self.watermark else None,
            "version": self.column_of(self.version) if self.version else None,
            "key": [self.column_of(path) for path in self.key],
            "is_query": self.kind == "sql" and self.shards in ("values", "listed"),
        }


def _fits(kind: TypeName | None, *, is_key: bool, orders: bool, grows: bool) -> bool:
    return not (
        (is_key and kind in _NO_KEYS) or (orders and kind not in VERSION_TYPES) or (grows and kind not in WATERMARK_TYPES)
    )


def _found(seen: Proposal) -> str:
    """Return how often a field has a value; nothing if always."""
    if not seen.seen:
        return "check: null in all records looked at"
    return "" if seen.seen == seen.of else f"in {seen.seen} of {seen.of} records"
