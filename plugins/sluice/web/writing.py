"""What routes that change something share: what they demand, and what they answer `sluice.js`."""

from typing import Annotated, Any

from fastapi import Depends
from pydantic import Field, StringConstraints, field_validator
from pydantic_core import PydanticCustomError

from sluice.model.base import Frozen
from sluice.web.access import Access
from sluice.web.protection import same_origin

Reason = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=2000)]
"""Why a person does something: never empty."""


class Form(Frozen):
    """What a page sends. Postgres takes no text with a NUL in it, so none is taken here."""

    @field_validator("*")
    @classmethod
    def _can_be_kept(cls, value: Any) -> Any:
        if isinstance(value, str) and "\0" in value:
            raise PydanticCustomError("nul", "A text may hold no NUL")
        return value


class Done(Frozen):
    """What came of it, in a sentence, and where to look now."""

    message: str
    next: str | None = Field(default=None, description="an address below the mount's root; None: the page one is on")


def writes(access: Access) -> list[Any]:
    """Return the dependencies of every route that changes something of the DAG in its path."""
    return [Depends(same_origin), Depends(access.may_change_dag)]
