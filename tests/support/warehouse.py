"""A database in; a supplier whose tables and queries are sources, and what they yield, out."""

import json
from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

import psycopg

from sluice.adapters.postgres import conninfo
from sluice.adapters.sources.sql.source import SqlSource
from sluice.model import source as declared
from sluice.model.spec import SyncSpec
from sluice.model.stage import RetryPolicy, StagePolicy
from sluice.ports import ConnectionInfo, Page, PageRequest
from tests.support.restraints import lone_restraint

POLICY: Final = StagePolicy(retry=RetryPolicy(attempts=1, base=timedelta(milliseconds=1)))
ALL: Final = PageRequest(shard={}, cursor=None, watermark=None, window_start=None, window_end=None)


class Warehouse:
    """A supplier's database."""

    def __init__(self, info: ConnectionInfo) -> None:
        self.info = info

    def run(self, *statements: str) -> None:
        """Change something in it."""
        with psycopg.connect(conninfo(self.info), autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())

    def source(self, sync: dict[str, Any] | None = None, policy: StagePolicy = POLICY, **keys: Any) -> SqlSource:
        """Return a source that asks it."""
        info = keys.pop("info", self.info)
        keys = {"kind": "sql", "connection": "warehouse", "key": ["id"], **keys}
        source = declared.SqlSource.model_validate(keys)
        fields = [{"name": "id", "type": "bigint"}, {"name": "at", "type": "timestamptz"}]
        spec = {"sync": "things", "stage": "stock", "source": keys, "object": {"key": ["id"]}, "fields": fields}
        spec = SyncSpec.model_validate({**spec, "target": {"table": "things"}, **(sync or {})})
        return SqlSource(source, info, policy, lambda host: lone_restraint(policy, host), spec)


def records(pages: Iterable[Page]) -> list[dict[str, Any]]:
    """Return the records of all pages."""
    return [record for page in pages for record in json.loads(page.body)]


def ids(source: SqlSource, **request: Any) -> list[Any]:
    """Return the ids of the records that are asked for."""
    return [record["id"] for record in records(source.pages(replace(ALL, **request)))]
