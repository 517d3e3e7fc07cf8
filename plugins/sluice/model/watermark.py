"""The watermark of a sync: the fields that grow with every change, and how far behind and ahead of them is asked."""

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from sluice.model.base import Frozen
from sluice.model.fields import TypeName
from sluice.model.scalars import Duration, ZoneName


class WatermarkType(StrEnum):
    """What the values of a watermark are, and so how they order."""

    INSTANT = "instant"
    DATE = "date"
    INTEGER = "integer"
    TEXT = "text"


WATERMARK_TYPES = {
    TypeName.TIMESTAMPTZ: WatermarkType.INSTANT,
    TypeName.DATE: WatermarkType.DATE,
    TypeName.INTEGER: WatermarkType.INTEGER,
    TypeName.BIGINT: WatermarkType.INTEGER,
    TypeName.TEXT: WatermarkType.TEXT,
}
"""What a field of a type is taken for where the spec does not say."""


class WatermarkSpec(Frozen):
    """What makes a sync incremental.

    A run asks for what is at or above the highest value that was published, less `lookback`; the bound belongs to it, since
    another record of the same value may have come meanwhile. The highest value is never above the supplier's time when its
    shard was begun, less `margin`: what is dated later is taken in, and asked for again.
    """

    fields: tuple[Annotated[str, Field(min_length=1)], ...] = Field(
        min_length=1, description="the fields that grow with every change; of several the first that is not null"
    )
    type: WatermarkType | None = Field(
        default=None, description="what the values are; absent: what the first field's type says"
    )
    collation: Literal["binary", "numeric"] = Field(
        default="binary", description="how texts order: by their characters, or, if they are whole numbers, by their value"
    )
    zone: ZoneName | None = Field(
        default=None, description="the time zone of texts that come without an offset, and of dates; absent: UTC"
    )
    lookback: Duration | Annotated[int, Field(ge=0, strict=True)] | None = Field(
        default=None, description="how far below the highest published value a run asks: a duration, or a whole number"
    )
    margin: Duration = Field(default="0s", validate_default=True, description="how far to stay below the supplier's own time")

    @model_validator(mode="after")
    def _distinct(self) -> "WatermarkSpec":
        if len(set(self.fields)) < len(self.fields):
            raise ValueError("each field may stand only once")
        return self

    def __str__(self) -> str:
        """Return the fields as people read them."""
        return ", ".join(self.fields)


def _by_name(value: Any) -> Any:
    return {"fields": [value]} if isinstance(value, str) else value


Watermark = Annotated[WatermarkSpec, BeforeValidator(_by_name)]
"""A watermark as written in YAML: the name of its field, or all there is to say."""
