"""The one base of every model: immutable, and strict about unknown keys."""

from typing import NewType

from pydantic import BaseModel, ConfigDict, JsonValue

__all__ = ["Frozen", "JsonValue", "ObjectKey", "PublicationId", "ReviewId", "RunId", "ShardKey", "Token"]


RunId = NewType("RunId", str)
ReviewId = NewType("ReviewId", str)
PublicationId = NewType("PublicationId", int)
ShardKey = NewType("ShardKey", str)
ObjectKey = NewType("ObjectKey", str)
Token = NewType("Token", int)


class Frozen(BaseModel):
    """An immutable value; a key it does not declare is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")
