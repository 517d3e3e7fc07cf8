"""Fields: how a value is found in a record, and the exact type it has in Postgres."""

import re
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from sluice.model.base import Frozen
from sluice.model.scalars import as_written


class TypeName(StrEnum):
    """The types a field may have, by their Postgres names."""

    TEXT = "text"
    INTEGER = "integer"
    BIGINT = "bigint"
    NUMERIC = "numeric"
    DOUBLE = "double precision"
    BOOLEAN = "boolean"
    DATE = "date"
    TIMESTAMPTZ = "timestamptz"
    UUID = "uuid"
    JSON = "json"


VERSION_TYPES = frozenset({TypeName.INTEGER, TypeName.BIGINT, TypeName.DATE, TypeName.TIMESTAMPTZ})
"""The types whose values order as 64-bit integers."""

SYSTEM_COLUMNS = frozenset({"cmax", "cmin", "ctid", "tableoid", "xmax", "xmin"})
"""The columns that every table of Postgres has; none of a table's own can be named so."""


class FieldType(Frozen):
    """A type with its parameters: `numeric(10,7)` has a precision and a scale."""

    name: TypeName
    precision: int | None = Field(default=None, ge=1, le=1000)
    scale: int | None = Field(default=None, ge=0, le=1000)

    @model_validator(mode="after")
    def _scale_fits(self) -> "FieldType":
        if self.scale is not None and self.scale > (self.precision or 0):
            raise ValueError("the scale of a numeric may not exceed its precision")
        return self

    @property
    def sql(self) -> str:
        """The type as Postgres spells it; `json` is stored as jsonb."""
        if self.name is TypeName.JSON:
            return "jsonb"
        if self.name is TypeName.NUMERIC and self.precision is not None:
            return f"numeric({self.precision},{self.scale or 0})"
        return self.name.value


def _parse_type(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if match := re.fullmatch(r"numeric\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)", value):
        return {"name": TypeName.NUMERIC, "precision": int(match[1]), "scale": int(match[2] or 0)}
    if value not in set(TypeName):
        raise ValueError(f"unknown type {as_written(value)}; allowed: {', '.join(TypeName)}, numeric(precision,scale)")
    return {"name": value}


def _parse_path(value: Any) -> Any:
    return tuple(value.split(".")) if isinstance(value, str) else value


class FieldSpec(Frozen):
    """One column of the target and where its value comes from."""

    name: str = Field(
        pattern=r"^[a-z][a-z0-9_]{0,62}$", description="the column's name; `_sluice…` is reserved, as are Postgres's own"
    )
    path: Annotated[tuple[Annotated[str, Field(min_length=1)], ...], BeforeValidator(_parse_path)] = Field(
        default=(), description="keys from the record's root, joined by dots, or a list where a key has a dot; absent: the name"
    )
    type: Annotated[FieldType, BeforeValidator(_parse_type)]
    format: Literal["epoch_s", "epoch_ms"] | None = Field(
        default=None, description="how a timestamptz is written: as the seconds or milliseconds since 1970; absent: as ISO 8601"
    )
    required: bool = Field(default=False, description="whether null or absent rejects the object")
    description: str = Field(default="", description="becomes the column's comment")

    @model_validator(mode="after")
    def _format_fits(self) -> "FieldSpec":
        if self.format is not None and self.type.name is not TypeName.TIMESTAMPTZ:
            raise ValueError(f"format: {self.format} is of timestamptz fields, and this one is {self.type.name}")
        return self

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys from the record's root to the value."""
        return self.path or (self.name,)
