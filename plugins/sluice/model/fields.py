"""Fields: how a value is found in a record, and the exact type it has in Postgres."""

import re
from enum import StrEnum
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, JsonValue, model_validator

from sluice.model.base import Frozen
from sluice.model.formats import EPOCHS, has_offset, refused
from sluice.model.paths import FieldPath, Path, parse_path, spell_path
from sluice.model.scalars import ZoneName, as_written


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


_RULES = ("minimum", "maximum", "pattern", "min_length", "max_length", "allowed")
"""The keys that reject values of a field's type."""


class LiteralText(Frozen):
    """A text that stands in a `concat` as it is."""

    text: str = Field(min_length=1)

    def __str__(self) -> str:
        """As people write it."""
        return f'"{self.text}"'


def _parse_part(value: Any) -> Any:
    if isinstance(value, LiteralText):
        return value
    if not isinstance(value, dict):
        return parse_path(value)
    if not isinstance(value.get("text"), str) or not value["text"] or len(value) > 1:
        raise ValueError('has to be a path, or a text of its own: { text: ", " }')
    return value


def _parse_meant(value: Any) -> Any:
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise ValueError("has to be a text, a number, true, false, or null")


def _optional(description: str, **more: Any) -> Any:
    """Return a key that is left out of dumps unless it is set, so that specs without it stay what they were."""
    return Field(default=None, exclude_if=lambda value: value is None, description=description, **more)


def _switch(description: str) -> Any:
    return Field(default=False, exclude_if=lambda value: not value, description=description)


class FieldSpec(Frozen):
    """One column of the target, where its value comes from, and what has to hold of it."""

    name: str = Field(
        pattern=r"^[a-z][a-z0-9_]{0,62}$", description="the column's name; `_sluice…` is reserved, as are Postgres's own"
    )
    path: FieldPath = Field(
        default=(),
        description="steps from the record's root (`rooms[0].code`), or a list where a key has a dot; absent: the name",
    )
    type: Annotated[FieldType, BeforeValidator(_parse_type)] = Field(description="the column's type in Postgres")
    coalesce: tuple[Annotated[Path, BeforeValidator(parse_path)], ...] | None = _optional(
        "paths; the first that is neither absent nor null is the value", min_length=1
    )
    concat: tuple[Annotated[LiteralText | Path, BeforeValidator(_parse_part)], ...] | None = _optional(
        "paths and texts ({ text: … }), one after the other; null if one of them is", min_length=1
    )
    constant: JsonValue = _optional("the value, whatever the record holds")
    rest: bool = _switch("of a json field: whether it takes all that no other field reads")
    lower: bool = _switch("whether a text is read in lower case")
    map: dict[str, Annotated[Any, BeforeValidator(_parse_meant)]] | None = _optional(
        "a table from the texts that may come to what is read for them; another text is rejected", min_length=1
    )
    format: str | None = Field(
        default=None,
        description="how dates and instants are written: epoch_s, epoch_ms, or a pattern such as %d.%m.%Y; absent: as ISO 8601",
    )
    zone: ZoneName | None = _optional("the time zone of a timestamptz that comes without its offset")
    default: JsonValue = _optional("the value where there is none")
    required: bool = Field(default=False, description="whether null or absent rejects the object")
    minimum: JsonValue = _optional("the lowest value that is taken")
    maximum: JsonValue = _optional("the highest value that is taken")
    pattern: str | None = _optional("a regular expression (RE2) that a text has to match from end to end", max_length=1000)
    min_length: int | None = _optional("the least characters of a text, or items of an array", ge=1)
    max_length: int | None = _optional("the most characters of a text, or items of an array", ge=0)
    allowed: tuple[JsonValue, ...] | None = _optional("the values that are taken", min_length=1)
    description: str = Field(default="", description="becomes the column's comment")

    @model_validator(mode="after")
    def _format_fits(self) -> "FieldSpec":
        if self.format is None:
            return self
        if self.format in EPOCHS:
            if self.type.name is not TypeName.TIMESTAMPTZ:
                raise ValueError(f"format: {self.format} is of timestamptz fields, and this one is {self.type.name}")
            return self
        if self.type.name not in (TypeName.DATE, TypeName.TIMESTAMPTZ):
            raise ValueError(f"format: {self.format} is of date and timestamptz fields, and this one is {self.type.name}")
        if "%" not in self.format:
            raise ValueError(
                f"format: unknown value {self.format!r}; allowed: {', '.join(EPOCHS)}, or a pattern such as %d.%m.%Y"
            )
        if why := refused(self.format, tells_time=self.type.name is TypeName.TIMESTAMPTZ):
            raise ValueError(f"format: {self.format} {why}")
        return self

    @model_validator(mode="after")
    def _zone_fits(self) -> "FieldSpec":
        if self.zone is not None and self.type.name is not TypeName.TIMESTAMPTZ:
            raise ValueError(f"zone: is of timestamptz fields, and this one is {self.type.name}")
        if self.zone is not None and (self.format in EPOCHS or (self.format and has_offset(self.format))):
            raise ValueError(f"zone: what is written as {self.format} needs none")
        if (
            self.type.name is TypeName.TIMESTAMPTZ
            and self.is_patterned
            and self.zone is None
            and not has_offset(str(self.format))
        ):
            raise ValueError(f"zone: missing: {self.format} tells no offset (%z)")
        return self

    @property
    def unruled(self) -> "FieldSpec":
        """The same without rules that reject values of its type; what is required stays so."""
        return self.model_copy(update=dict.fromkeys(_RULES))

    @property
    def is_patterned(self) -> bool:
        """Whether its values are written by a pattern of their own."""
        return self.format is not None and self.format not in EPOCHS

    @property
    def is_expression(self) -> bool:
        """Whether its value is made of texts, and not read where it stands."""
        return self.coalesce is not None or self.concat is not None or self.lower or self.map is not None

    @property
    def paths(self) -> tuple[Path, ...]:
        """The paths it reads, in the order in which they are written."""
        if self.constant is not None or self.rest:
            return ()
        if self.coalesce is not None:
            return self.coalesce
        if self.concat is not None:
            return tuple(part for part in self.concat if not isinstance(part, LiteralText))
        return (self.path or (self.name,),)

    @property
    def origin(self) -> str:
        """Where its value comes from, for people."""
        if self.constant is not None:
            return f"constant {as_written(self.constant)}"
        if self.rest:
            return "rest"
        if self.coalesce is not None:
            return f"coalesce({', '.join(map(spell_path, self.coalesce))})"
        if self.concat is not None:
            parts = (str(part) if isinstance(part, LiteralText) else spell_path(part) for part in self.concat)
            return f"concat({', '.join(parts)})"
        return spell_path(self.paths[0])
