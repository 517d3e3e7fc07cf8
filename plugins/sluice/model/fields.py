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
    TEXT_ARRAY = "text[]"
    INTEGER_ARRAY = "integer[]"
    BIGINT_ARRAY = "bigint[]"
    NUMERIC_ARRAY = "numeric[]"
    DOUBLE_ARRAY = "double precision[]"
    BOOLEAN_ARRAY = "boolean[]"
    DATE_ARRAY = "date[]"
    TIMESTAMPTZ_ARRAY = "timestamptz[]"
    UUID_ARRAY = "uuid[]"


ARRAYS = frozenset(name for name in TypeName if name.endswith("[]"))
"""Lists of one dimension; null may stand in them, and in their place."""

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
    def item(self) -> "FieldType | None":
        """What it is an array of; None: it is no array."""
        if self.name not in ARRAYS:
            return None
        return FieldType(name=TypeName(self.name.removesuffix("[]")), precision=self.precision, scale=self.scale)

    @property
    def sql(self) -> str:
        """The type as Postgres spells it; `json` is stored as jsonb."""
        if self.item is not None:
            return f"{self.item.sql}[]"
        if self.name is TypeName.JSON:
            return "jsonb"
        if self.name is TypeName.NUMERIC and self.precision is not None:
            return f"numeric({self.precision},{self.scale or 0})"
        return self.name.value


def _parse_type(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if match := re.fullmatch(r"numeric\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)(\[\])?", value):
        return {"name": f"{TypeName.NUMERIC}{match[3] or ''}", "precision": int(match[1]), "scale": int(match[2] or 0)}
    if value not in set(TypeName):
        allowed = f"{', '.join(name for name in TypeName if name not in ARRAYS)}, numeric(precision,scale)"
        raise ValueError(f"unknown type {as_written(value)}; allowed: {allowed}, and arrays of all but json, such as text[]")
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
