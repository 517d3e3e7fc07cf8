"""The words that `sluice new` takes; nothing else, so that its help loads nothing."""

from typing import Final, Literal

Kind = Literal["rest", "sql", "files", "code"]
Paging = Literal["body", "next_url", "link", "header", "page", "offset", "keyset", "none"]
Shards = Literal["none", "values", "listed", "ranges", "windows", "buckets", "files"]

FORMATS: Final = ("jsonl", "json", "geojson", "csv", "parquet", "xml")
"""What files may hold."""
