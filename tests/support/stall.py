"""A sync of prices in this process: what its supplier delivers in, what becomes of the table and the ledger out."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import psycopg
import yaml

from sluice.adapters.metrics import LoggedMetrics
from sluice.adapters.postgres import conninfo
from sluice.flow.gate import decide
from sluice.flow.inline import resume_inline, run_inline
from sluice.model.base import ObjectKey
from sluice.model.ledger import ObjectEvent, Publication
from sluice.model.review import Choice, Decision, Review
from sluice.model.run import Mode, Origin, Run, RunRequest, Window
from sluice.ports import ConnectionInfo, Services
from sluice.settings import Settings
from sluice.wiring import open_services
from tests.chaos.shop import Shop, Thing, open_shop

EPOCH: Final = datetime(2026, 1, 1, tzinfo=UTC)
REGION: Final = "all"
SYNC: Final[dict[str, Any]] = {
    "sync": "prices",
    "stage": "hotel-rates",
    "source": {
        "kind": "rest",
        "connection": "shop",
        "path": "/things",
        "query": {"region": REGION, "since": "{{ window.start or watermark }}", "until": "{{ window.end }}"},
        "records": "things",
        "cursor": {"path": "next", "parameter": "cursor"},
        "watermark": "updated_at",
    },
    "object": {"key": ["id"], "version": "version"},
    "fields": [
        {"name": "id", "type": "text"},
        {"name": "price", "type": "numeric(10,2)"},
        {"name": "version", "type": "bigint"},
        {"name": "more", "type": "json"},
        {"name": "updated_at", "type": "timestamptz"},
    ],
    "review": {"first_load": "auto-approve", "auto_approve": {"created": "100%", "changed": "100%"}},
    "target": {"table": "prices"},
}


def price(key: str, amount: float | None, version: int | None = 1, hour: int = 0, **more: Any) -> Thing:
    """Return what the supplier says of an object; `hour` is when it says it changed."""
    changed = EPOCH + timedelta(hours=hour)
    return {"id": key, "price": amount, "version": version, "updated_at": f"{changed:%Y-%m-%dT%H:%M:%SZ}", **more}


def hours(start: int, end: int) -> Window:
    """Return a window between two hours."""
    return Window(start=EPOCH + timedelta(hours=start), end=EPOCH + timedelta(hours=end))


class Stall:
    """One supplier, one sync, one table."""

    def __init__(self, services: Services, shop: Shop, target: ConnectionInfo) -> None:
        self.services = services
        self.shop = shop
        self.target = target
        self.ledger = services.ledger(services.spec("prices"))

    def bring(self, things: Sequence[Thing], mode: Mode = Mode.FULL, window: Window | None = None) -> Run:
        """Let the supplier have just these things, and run the sync once."""
        self.shop.things[REGION] = list(things)
        return run_inline(self.services, RunRequest(sync="prices", mode=mode, window=window, origin=Origin()))

    def review_of(self, run: Run) -> Review:
        """Return the newest review of a run."""
        found = self.services.reviews.latest(run.id)
        assert found is not None
        return found

    def answer(self, run: Run, choice: Choice, deletes_at_most: int | None = None, by: str = "ada") -> Run:
        """Decide about the run's review, and go on with the run."""
        decision = Decision(choice=choice, by=by, via="cli", deletes_at_most=deletes_at_most, at=self.services.clock.now())
        decide(self.services, self.review_of(run).id, decision)
        return resume_inline(self.services, run.id)

    def sql(self, query: str) -> list[tuple[Any, ...]]:
        """Ask the target, or tell it."""
        with psycopg.connect(conninfo(self.target), autocommit=True) as connection:
            cursor = connection.execute(query.encode())
            return cursor.fetchall() if cursor.description else []

    def prices(self) -> dict[str, Any]:
        """Return what the table holds: the price of each object that is not deleted."""
        return {key: None if amount is None else float(amount) for key, amount in self.sql(_PRICES)}

    def events(self, key: str) -> list[ObjectEvent]:
        """Return what became of an object."""
        return self.ledger.events("prices", ObjectKey(key))

    def publications(self) -> list[Publication]:
        """Return the publications, oldest first."""
        return self.ledger.publications("prices", 100)[::-1]


_PRICES: Final = "select id, price from prices where _sluice_deleted_at is null"


@contextmanager
def open_stall(
    folder: Path,
    database: ConnectionInfo,
    artifacts: ConnectionInfo,
    sync: Mapping[str, Any] | None = None,
    supplier: ConnectionInfo | None = None,
    **policy: Any,
) -> Iterator[Stall]:
    """Yield a stall in a project of its own; `sync` replaces keys of the spec, and `policy` those of its stage.

    Another `supplier` may take the place of the stall's own shop.
    """
    include = folder / "include"
    (include / "syncs").mkdir(parents=True)
    (include / "syncs/prices.yaml").write_text(yaml.safe_dump({**SYNC, **(sync or {})}, sort_keys=False))
    stages = {"defaults": {"chunk_bytes": 1, "max_parallel_shards": 4, **policy}, "stages": {"hotel-rates": {}}}
    (include / "stages.yaml").write_text(yaml.safe_dump(stages))
    with open_shop({REGION: []}) as shop:

        class Known:
            def get(self, conn_id: str) -> ConnectionInfo:
                return {"sluice_artifacts": artifacts, "shop": supplier or shop.connection}.get(conn_id, database)

        with open_services(Settings(include=include, cache=folder / "cache"), Known(), LoggedMetrics()) as services:
            yield Stall(services, shop, database)
