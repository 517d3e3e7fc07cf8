"""The words that `sluice new` takes, each with what it means; nothing else, so that its help loads nothing."""

from collections.abc import Mapping
from typing import Final, Literal

Kind = Literal["rest", "sql", "files", "code"]
Paging = Literal["body", "next_url", "link", "header", "page", "offset", "keyset", "none"]
Shards = Literal["none", "values", "listed", "ranges", "windows", "buckets"]

FORMATS: Final = ("jsonl", "json", "geojson", "csv", "parquet", "xml")
"""What files may hold."""

MEANINGS: Final[Mapping[str, Mapping[str, str]]] = {
    "kind": {
        "rest": "a JSON API, page by page",
        "sql": "a table or query of a Postgres database",
        "files": "files over HTTP or in S3",
        "code": "whatever a Python class of your own can ask",
    },
    "paging": {
        "body": "a cursor in each answer",
        "next_url": "the next address in each answer",
        "link": "the Link header of each answer",
        "header": "a cursor in another header",
        "page": "the number of a page",
        "offset": "the number of records to skip",
        "keyset": "the last record's value of the field that answers are ordered by",
        "none": "one answer has all there is",
    },
    "shards": {
        "none": "nothing: it is fetched as one",
        "values": "a few values that you name, such as regions",
        "listed": "values that the supplier lists",
        "ranges": "ranges of whole numbers, such as ids",
        "windows": "spans of time",
        "buckets": "shares of the keys, by a hash",
    },
}
