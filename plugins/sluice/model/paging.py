"""Paging: how an API of pages is told where to go on, and how it says that nothing follows."""

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import BeforeValidator, Field, model_validator

from sluice.model.base import Frozen

DOTTED_PATTERN: Final = r'^[^.\x00-\x1f"\\]+(\.[^.\x00-\x1f"\\]+)*$'

Dotted = Annotated[str, Field(pattern=DOTTED_PATTERN)]
"""The place of a value in an answer: keys joined by dots."""

Parameter = Annotated[str, Field(min_length=1, max_length=200)]
"""A query parameter, or a dotted place in the request's body."""


class _Paging(Frozen):
    """What all ways of paging have in common: the size of a page, and how the last one is told."""

    size: int | None = Field(default=None, ge=1, description="how many records to ask for at a time")
    size_parameter: Parameter | None = Field(default=None, description="the parameter that takes it")
    into: Literal["query", "body"] = Field(default="query", description="where parameters go: the address or the JSON body")
    has_more: Dotted | None = Field(default=None, description="the flag in the answer that is false on the last page")
    short_page_ends: bool = Field(default=False, description="whether a page with fewer records than `size` is the last")

    @model_validator(mode="after")
    def _size_is_told(self) -> "_Paging":
        if self.short_page_ends and self.size is None:
            raise ValueError("short_page_ends needs a size: without it nobody can say which page is short")
        if self.size_parameter is not None and self.size is None:
            raise ValueError("size_parameter needs a size")
        return self

    def parameters(self) -> Iterator[tuple[str, str]]:
        """Yield the keys that name a parameter, with the parameter: they may not be set by the spec as well."""
        yield from self._named("parameter", "size_parameter")

    def places(self) -> Iterator[tuple[str, str]]:
        """Yield the keys that name a place in the answer, with the place."""
        yield from self._named("path", "has_more", "total", "pages")

    def _named(self, *keys: str) -> Iterator[tuple[str, str]]:
        for key in keys:
            name = getattr(self, key, None)
            if name is not None:
                yield key, name


class _Counted(_Paging):
    """Pages that are counted, so that several may be asked for at the same time."""

    total: Dotted | None = Field(default=None, description="the number in the answer of all records there are")
    at_once: int = Field(default=1, ge=1, le=32, description="how many pages to ask for at the same time")


class BodyCursor(_Paging):
    """A cursor that the body of each answer carries; an absent, null or empty one ends the shard."""

    kind: Literal["body"] = "body"
    path: Dotted = Field(description="where the next cursor stands in the answer, parts joined by dots")
    parameter: Parameter = Field(description="the parameter that takes it")


class NextUrl(_Paging):
    """The address of the next page in the body of each answer; an absent, null or empty one ends the shard."""

    kind: Literal["next_url"]
    path: Dotted = Field(description="where the next address stands in the answer, parts joined by dots")


class LinkHeader(_Paging):
    """The `Link` header of each answer (RFC 8288): its relation `next` leads on."""

    kind: Literal["link"]


class HeaderCursor(_Paging):
    """A cursor, or the next address, that a header of each answer carries; an absent or empty one ends the shard."""

    kind: Literal["header"]
    header: str = Field(min_length=1, description="the header of the answer that has the next cursor")
    parameter: Parameter | None = Field(
        default=None, description="the parameter that takes it; absent: the header has the whole address of the next page"
    )


class PageNumber(_Counted):
    """Pages by number, until one has no record, or a stop rule says so. For lists that do not move while they are read."""

    kind: Literal["page"]
    parameter: Parameter = Field(default="page", description="the parameter that takes the number")
    first: int = Field(default=1, ge=0, description="the number of the first page")
    pages: Dotted | None = Field(default=None, description="the number in the answer of all pages there are")


class Offset(_Counted):
    """Pages by the number of records before them, until one has no record, or a stop rule says so.

    Each page but the first is asked for with its predecessor's last record in front (`overlap`): if another record stands
    there, the list has shifted meanwhile, and paging goes back as far as it takes to miss nothing.
    """

    kind: Literal["offset"]
    parameter: Parameter = Field(default="offset", description="the parameter that takes the number of records to skip")
    size: int = Field(ge=1, description="how many records to ask for at a time")
    overlap: int = Field(default=1, ge=0, le=1_000, description="how many records of the last page to ask for again")

    @model_validator(mode="after")
    def _advances(self) -> "Offset":
        if self.overlap >= self.size:
            raise ValueError("overlap has to be smaller than size, or the pages never advance")
        return self


class Keyset(_Paging):
    """Pages behind the last record's value of a field that the answers are ordered by, until one has no new record.

    Whether the supplier takes the value as inclusive or exclusive does not matter: a record that comes twice is one. As many
    records as a page holds, and more, may not have one value.
    """

    kind: Literal["keyset"]
    size: int = Field(ge=2, description="how many records a page holds")
    field: Dotted = Field(description="the place in a record of the field that answers are ordered by")
    parameter: Parameter = Field(
        description="the parameter that takes the last record's value; what the spec itself says there is for the first page"
    )


class NoPaging(Frozen):
    """One answer has all there is."""

    kind: Literal["none"]
    into: ClassVar = "query"

    def parameters(self) -> Iterator[tuple[str, str]]:
        """Yield nothing: there is no parameter."""
        yield from ()

    def places(self) -> Iterator[tuple[str, str]]:
        """Yield nothing: of the answer only the records count."""
        yield from ()


def _of_old(value: Any) -> Any:
    """Take a cursor without a kind for the first kind there was."""
    return {"kind": "body", **value} if isinstance(value, dict) else value


PagingSpec = Annotated[
    BodyCursor | NextUrl | LinkHeader | HeaderCursor | PageNumber | Offset | Keyset | NoPaging,
    Field(discriminator="kind"),
    BeforeValidator(_of_old),
]
"""A way of paging."""
