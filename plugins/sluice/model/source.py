"""The source of a sync: where records come from, and how to ask for them."""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import BeforeValidator, Field, JsonValue, field_validator, model_validator

from sluice.model.auth import CODE_PATTERN, AuthSpec
from sluice.model.base import Frozen
from sluice.model.paging import DOTTED_PATTERN, PagingSpec
from sluice.model.watermark import Watermark

PATH_PATTERN: Final = r"^/[^?#\x00-\x1f\x7f]*$"
HOST_PATTERN: Final = r"^[^\s/@?#\\]+$"

Templates = Iterator[tuple[tuple[str | int, ...], str]]
"""The texts of a source that are templates, each with its place below `source`."""

_CODE: Final = re.compile(r"\{[{%].*?[}%]\}", re.DOTALL)
"""What is rendered of a template; the rest is text, whatever stands in it."""

_HTTP: Final = "Airflow connection of type http: scheme, host, port, login, extra headers"


class _Source(Frozen):
    """What all kinds of sources have in common."""

    watermark: Watermark | None = Field(
        default=None, description="the field that grows with every change; makes the sync incremental"
    )

    stored_records: ClassVar[str] = ""
    """Where the list of records stands in a page as it is stored; empty: the page is the list."""

    def templates(self) -> Templates:
        """Yield the texts that are templates over `shard`, `window`, `watermark` and `until`."""
        yield from ()

    @property
    def uses_window(self) -> bool:
        """Whether a template makes a window shape what is asked of the supplier."""
        return self._names("window")

    @property
    def tells_time_first(self) -> bool:
        """Whether the supplier's own time has to be known before the first request: a template uses it."""
        return self._names("until")

    def _names(self, name: str) -> bool:
        """Whether a template has the name where it is more than text."""
        code = (part for _, text in self.templates() for part in _CODE.findall(text))
        return any(re.search(rf"(?<![.\w]){name}\b", part) for part in code)


class DetailSpec(Frozen):
    """Records that are listed first and fetched one by one: what a list has of each is no more than where to find it."""

    path: str = Field(pattern=PATH_PATTERN, description="path of one record; a template that sees the listed one as `record`")
    query: dict[str, str] = Field(default={}, description="query parameters, templates that see `record` as well")
    record: str = Field(
        default="", pattern=f"^$|{DOTTED_PATTERN}", description="where the record stands in the answer; empty: it is the answer"
    )
    at_once: int = Field(default=4, ge=1, le=32, description="how many records to ask for at the same time")


class RestSource(_Source):
    """A JSON API read page by page.

    `path` and the values of `query`, `headers` and `body` are templates over `shard` (the shard's values), `window` (`start`,
    `end`), `watermark` and `until`; a query parameter or header that renders to nothing is left out.
    """

    kind: Literal["rest"]
    connection: str = Field(min_length=1, description=_HTTP)
    method: Literal["GET", "POST"] = Field(default="GET", description="how to ask")
    path: str = Field(pattern=PATH_PATTERN, description="path below the connection's host")
    query: dict[str, str] = Field(default={}, description="query parameters")
    headers: dict[str, str] = Field(default={}, description="headers beside those of the connection")
    body: dict[str, JsonValue] | None = Field(
        default=None, description="the JSON body of POST requests; its texts are templates"
    )
    records: str = Field(
        default="",
        pattern=f"^$|{DOTTED_PATTERN}",
        description="where the list of records stands; empty: the answer is the list",
    )
    error: str | None = Field(
        default=None,
        pattern=DOTTED_PATTERN,
        description="where an answer under status 200 says that it failed: anything but null, false, 0 or nothing there",
    )
    cursor: PagingSpec = Field(description="how to get from page to page")
    detail: DetailSpec | None = Field(default=None, description="how to fetch each listed record by itself")
    auth: AuthSpec | None = Field(default=None, description="absent: basic if the connection has a login or password")
    allow_hosts: tuple[Annotated[str, Field(pattern=HOST_PATTERN)], ...] = Field(
        default=(), description="other hosts, as `name` or `name:port`, that next links and redirects may lead to"
    )

    @model_validator(mode="after")
    def _body_is_sent(self) -> "RestSource":
        if self.body is not None and self.method != "POST":
            raise ValueError("a body needs method: POST")
        if self.cursor.into == "body" and self.method != "POST":
            raise ValueError("cursor.into: body needs method: POST")
        return self

    @property
    def stored_records(self) -> str:  # type: ignore[override]  # here it depends on the spec
        """Where the list of records stands in a page as it is stored: details are stored as a list."""
        return "" if self.detail is not None else self.records

    def templates(self) -> Templates:
        """Yield the texts that are templates over `shard`, `window`, `watermark` and `until`."""
        yield ("path",), self.path
        for part in ("query", "headers"):
            yield from (((part, name), text) for name, text in getattr(self, part).items())
        yield from _texts(("body",), self.body)

    def detail_templates(self) -> Templates:
        """Yield the templates that see the listed `record` as well."""
        if self.detail is not None:
            yield ("detail", "path"), self.detail.path
            yield from ((("detail", "query", name), text) for name, text in self.detail.query.items())

    def __str__(self) -> str:
        """Return where records come from, for people."""
        return f"{self.path} of connection {self.connection}"


class SqlSource(_Source):
    """A table or a query of a Postgres database, read in the order of a key, in one snapshot per shard and try.

    In a query, templates become parameters: no value is ever part of the statement.
    """

    kind: Literal["sql"]
    connection: str = Field(min_length=1, description="Airflow connection of type postgres")
    table: str | None = Field(default=None, min_length=1, description="`table` or `schema.table`, as the database spells it")
    query: str | None = Field(default=None, min_length=1, description="one select statement, a template")
    key: tuple[Annotated[str, Field(min_length=1)], ...] = Field(
        min_length=1, description="columns that tell rows apart, none of them ever null: the order in which they are read"
    )
    size: int = Field(default=1000, ge=1, le=100_000, description="how many rows a page has")

    @model_validator(mode="after")
    def _one_of_both(self) -> "SqlSource":
        if (self.table is None) is (self.query is None):
            raise ValueError("a SQL source reads either a table or a query: name one of them")
        if len(set(self.key)) < len(self.key):
            raise ValueError("each column of the key may stand only once")
        return self

    def templates(self) -> Templates:
        """Yield the query, which is a template."""
        if self.query is not None:
            yield ("query",), self.query

    def __str__(self) -> str:
        """Return where records come from, for people."""
        return f"{self.table or 'a query'} of connection {self.connection}"


class JsonFormat(Frozen):
    """One JSON document with a list of records."""

    kind: Literal["json"]
    records: str = Field(default="", pattern=f"^$|{DOTTED_PATTERN}", description="where the list stands; empty: it is the file")


class JsonLinesFormat(Frozen):
    """One JSON document a line."""

    kind: Literal["jsonl"]


class GeoJsonFormat(Frozen):
    """A FeatureCollection (RFC 7946) or a sequence of features (RFC 8142), each feature a record."""

    kind: Literal["geojson"]


class CsvFormat(Frozen):
    """Lines of separated values (RFC 4180); each value is a text, one that is empty and not quoted is null."""

    kind: Literal["csv"]
    delimiter: str = Field(default=",", min_length=1, max_length=1, description="what stands between two values")
    quote: str | None = Field(
        default='"', min_length=1, max_length=1, description="null: nothing is quoted, so that each line break ends a record"
    )
    encoding: str = Field(default="utf-8", description="a BOM knows better, and is left out")
    columns: tuple[Annotated[str, Field(min_length=1)], ...] = Field(
        default=(), description="the names of the columns; empty: the first line has them"
    )

    @field_validator("delimiter", "quote")
    @classmethod
    def _one_byte(cls, sign: str | None) -> str | None:
        if sign is not None and (not sign.isascii() or sign in "\r\n\0"):
            raise ValueError(f"{sign!r} has to be a single ASCII character that does not end a line")
        return sign

    @field_validator("encoding")
    @classmethod
    def _known_encoding(cls, encoding: str) -> str:
        try:
            "a".encode(encoding)
        except (LookupError, ValueError):
            raise ValueError(f"{encoding!r} is no encoding such as utf-8, latin-1 or cp1252") from None
        return encoding

    @model_validator(mode="after")
    def _tells_signs_apart(self) -> "CsvFormat":
        if len(set(self.columns)) < len(self.columns):
            raise ValueError("each column may stand only once")
        if self.delimiter == self.quote:
            raise ValueError("delimiter and quote are the same")
        return self


class ParquetFormat(Frozen):
    """A Parquet file, each row a record."""

    kind: Literal["parquet"]


class XmlFormat(Frozen):
    """An XML document, each element at a path a record: attributes as `@name`, text as `#text`, children by name."""

    kind: Literal["xml"]
    element: str = Field(
        pattern=r"^[^/\s]+(/[^/\s]+)*$", description="path of the element from the root on, joined by slashes: feed/hotel"
    )


def _by_kind(value: Any) -> Any:
    return {"kind": value} if isinstance(value, str) else value


FormatSpec = Annotated[
    JsonFormat | JsonLinesFormat | GeoJsonFormat | CsvFormat | ParquetFormat | XmlFormat,
    Field(discriminator="kind"),
    BeforeValidator(_by_kind),
]
"""What a file holds; in YAML its name alone, or a mapping with its particulars."""


class FilesSource(_Source):
    """Files over HTTP or in S3, read as streams; a run that is not full takes those that are new by name or ETag."""

    kind: Literal["files"]
    connection: str = Field(min_length=1, description="Airflow connection of type http, or aws (S3)")
    bucket: str | None = Field(default=None, min_length=1, description="the bucket, for S3")
    files: tuple[Annotated[str, Field(min_length=1)], ...] = Field(
        min_length=1,
        description="paths below the connection's host; or keys of the bucket, where * is anything, and a last / all below it",
    )
    format: FormatSpec = Field(description="what a file holds; its kind alone will do, where that has no keys of its own")
    compression: Literal["auto", "none", "gzip", "zstd"] = Field(default="auto", description="auto: by the file's first bytes")
    size: int = Field(default=1000, ge=1, le=100_000, description="how many records are stored as one page")
    auth: AuthSpec | None = Field(default=None, description="for HTTP; absent: basic if the connection has a login or password")
    allow_hosts: tuple[Annotated[str, Field(pattern=HOST_PATTERN)], ...] = Field(
        default=(), description="other hosts, as `name` or `name:port`, that redirects may lead to"
    )

    @model_validator(mode="after")
    def _tells_by_etag(self) -> "FilesSource":
        if self.watermark is not None:
            raise ValueError("files have no watermark: what is new is told by name and ETag")
        return self

    @property
    def can_be_split(self) -> bool:
        """Whether the records that begin in some bytes of a file can be told, without those before.

        A line break of CSV may stand between quotes, and nothing in the middle of a file says so: only where nothing is quoted,
        each one ends a line.
        """
        is_cut_by_lines = self.format.kind == "jsonl" or (self.format.kind == "csv" and self.format.quote is None)
        return (is_cut_by_lines or self.format.kind == "parquet") and self.compression in ("auto", "none")

    def templates(self) -> Templates:
        """Yield the names of the files, which are templates."""
        yield from ((("files", index), text) for index, text in enumerate(self.files))

    def __str__(self) -> str:
        """Return where records come from, for people."""
        where = f"bucket {self.bucket} of connection" if self.bucket else "connection"
        return f"{', '.join(self.files)} of {where} {self.connection}"


class CodeSource(_Source):
    """A Python class of the team's own, which yields pages: see the protocol `Source`."""

    kind: Literal["code"]
    code: str = Field(
        pattern=CODE_PATTERN,
        description="the class by its dotted path, importable from include/ or installed: suppliers.Hotels",
    )
    connection: str | None = Field(default=None, min_length=1, description="the Airflow connection it is given")
    options: dict[str, JsonValue] = Field(default={}, description="whatever else it is given")

    @property
    def uses_window(self) -> bool:
        """Whether a window shapes what is asked: only the class can say."""
        return True

    @property
    def tells_time_first(self) -> bool:
        """Whether the supplier's own time has to be known first: only the class can say what it asks for."""
        return True

    def __str__(self) -> str:
        """Return where records come from, for people."""
        return f"{self.code}" + (f" with connection {self.connection}" if self.connection else "")


SourceSpec = Annotated[RestSource | SqlSource | FilesSource | CodeSource, Field(discriminator="kind")]
"""Where records come from."""


def _texts(place: tuple[str | int, ...], value: JsonValue) -> Templates:
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, Mapping):
        for name, below in value.items():
            yield from _texts((*place, name), below)
    elif isinstance(value, list):
        for index, below in enumerate(value):
            yield from _texts((*place, index), below)
