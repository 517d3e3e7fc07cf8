"""An approval and what changes behind it, with real rows in a real table: publishing refuses, asks again, and then does it."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from sluice.adapters.metrics import LoggedMetrics
from sluice.adapters.postgres import conninfo
from sluice.errors import ReviewWaiting, SupplierRefused
from sluice.flow import redo
from sluice.flow.admission import admit
from sluice.flow.fetcher import fetch
from sluice.flow.gate import decide, hold
from sluice.flow.settlement import settle
from sluice.flow.sharder import plan_shards
from sluice.model.base import RunId, ShardKey
from sluice.model.lifecycle import RunStatus, ShardStatus, Verdict
from sluice.model.review import Review
from sluice.model.run import Mode, Origin, ReviewMode, RunRequest
from sluice.ports import ConnectionInfo, Services
from tests.support.nouns import a_decision
from tests.support.servers import Supplier
from tests.support.small_project import small_project

RUN = RunId("run-1")


@pytest.fixture
def services(tmp_path: Path, database: ConnectionInfo, artifacts: ConnectionInfo, supplier: Supplier) -> Iterator[Services]:
    """The services of a project with small pages."""
    with small_project(tmp_path, database, artifacts, supplier, LoggedMetrics()) as opened:
        yield opened


def bring_in(services: Services) -> None:
    """Fetch and transform what is still missing, as cleared tasks do."""
    for shard in services.shards.of(RUN):
        if shard.status is not ShardStatus.SUCCEEDED:
            with suppress(SupplierRefused):
                fetch(services, RUN, shard.key)
                redo.transform(services, RUN, shard.key)


def approve(services: Services) -> Review:
    """Let a person approve what waits."""
    (waiting,) = services.reviews.waiting("hotels")
    return decide(services, waiting.id, a_decision(at=services.clock.now()))


def held(database: ConnectionInfo) -> dict[str, int]:
    """Return how many hotels of each region the table has; a table that is not there has none."""
    with psycopg.connect(conninfo(database)) as connection:
        if connection.execute("select to_regclass('public.hotels')").fetchone() == (None,):
            return {}
        return dict(connection.execute("select region, count(*) from public.hotels group by region").fetchall())


def test_rows_that_are_staged_behind_an_approval_are_asked_about(
    services: Services, supplier: Supplier, database: ConnectionInfo
) -> None:
    """The old approval lets nothing pass, the run waits again, and a second approval publishes all that is staged by then."""
    supplier.control(fail={"status": 403, "region": "tokyo"})
    admit(services, RunRequest(sync="hotels", mode=Mode.FULL, review=ReviewMode.ALWAYS, origin=Origin()), RUN)
    plan_shards(services, RUN)
    bring_in(services)
    redo.review(services, RUN)
    hold(services, RUN)
    old = approve(services)
    supplier.control(reset=True)
    bring_in(services)

    with pytest.raises(ReviewWaiting) as asked:
        redo.publish(services, RUN)
    new = services.reviews.latest(RUN)
    assert new is not None
    assert (asked.value.review, new.verdict, new.figures.seen > old.figures.seen) == (new.id, Verdict.NEEDS_HUMAN, True)
    assert (services.runs.get(RUN).status, held(database)) == (RunStatus.WAITING, {})
    assert services.reviews.get(old.id).verdict is Verdict.APPROVED

    approve(services)
    published = redo.publish(services, RUN)
    assert published is not None
    assert published.review == new.id
    assert held(database).keys() == {"tokyo", "brittany"}
    assert settle(services, RUN).status is RunStatus.SUCCEEDED


def test_a_shard_that_is_fetched_again_voids_the_approval_if_the_supplier_has_changed(
    services: Services, supplier: Supplier, database: ConnectionInfo
) -> None:
    """The same bytes are what was approved; other ones are asked about."""
    admit(services, RunRequest(sync="hotels", mode=Mode.FULL, review=ReviewMode.ALWAYS, origin=Origin()), RUN)
    plan_shards(services, RUN)
    bring_in(services)
    redo.review(services, RUN)
    hold(services, RUN)
    approved = approve(services)
    services.redos.fetch_again(ShardKey("brittany"), services.runs.get(RUN))
    bring_in(services)
    assert redo.review(services, RUN) == services.reviews.get(approved.id)

    services.redos.fetch_again(ShardKey("brittany"), services.runs.get(RUN))
    supplier.control(change=5)
    with pytest.raises(ReviewWaiting):
        redo.publish(services, RUN)
    assert held(database) == {}
    approve(services)
    assert redo.publish(services, RUN) is not None
    assert held(database).keys() == {"tokyo", "brittany"}
