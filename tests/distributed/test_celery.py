"""The demo's DAG under CeleryExecutor, Redis and two workers: one is killed in mid-fetch, one in mid-publish."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import psycopg
import pytest

from sluice.adapters.postgres import conninfo
from sluice.ports import ConnectionInfo
from tests.distributed.workplace import Workplace
from tests.support.servers import Supplier

pytestmark = [pytest.mark.distributed, pytest.mark.timeout(600)]

HELD: Final = 5.0
"""Seconds that each answer takes while a worker is killed: the last page is far off."""

HALF_FETCHED: Final = "select 1 from sluice_state.shard where key = 'tokyo' and chunks >= 2 and not exhausted"

PAGES: Final = """
select max(s.pages), ceil(max(a.records) / 500.0)
from sluice_state.shard s join sluice_state.artifact a on (a.run, a.shard) = (s.run, s.key) and a.kind = 'raw'
where s.key = '{region}'
"""
"""The pages of a region, and those of its largest chunk."""

PUBLICATIONS: Final = "select id from sluice_ledger.publication"

LOCK: Final = 4711
"""An advisory lock that makes a publication wait while the test holds it."""

HOLD: Final = f"""
create function hold_publication() returns trigger language plpgsql as $$
begin
    perform pg_advisory_xact_lock_shared({LOCK});
    return null;
end
$$
"""

PLACES: Final = {
    "before its commit": """create trigger hold after insert on sluice_ledger.object_event
        for each statement execute function hold_publication()""",
    "in its commit": """create constraint trigger hold after insert on sluice_ledger.publication
        deferrable initially deferred for each row execute function hold_publication()""",
}
"""Events are written last: who waits there has written all and committed nothing. The other waits while it commits."""

WAITING: Final = """
select pid from pg_locks join pg_database d on d.oid = database and d.datname = current_database()
where locktype = 'advisory' and not granted
"""


def test_a_worker_killed_in_mid_fetch_costs_at_most_a_chunk(workplace: Workplace, session_supplier: Supplier) -> None:
    """The other worker goes on behind the last chunk, and all is as if nothing had happened."""
    before = len(session_supplier.requests())
    session_supplier.control(delay=0.3)
    run_id = workplace.trigger(mode="full")
    workplace.wait_for("tokyo has two chunks", HALF_FETCHED)
    session_supplier.control(delay=HELD)
    asked = len(of("tokyo", session_supplier.requests()))
    workplace.cluster.until("one more is asked for", lambda: len(of("tokyo", session_supplier.requests())) > asked or None)
    workplace.kill_the_worker_of(run_id, "fetch tokyo")
    assert workplace.disturbed.found(HALF_FETCHED)
    session_supplier.control(delay=0)

    tries = workplace.tries_of(run_id)
    assert tries["fetch tokyo"] == 2
    requests = session_supplier.requests()[before:]
    for region in ("tokyo", "brittany"):
        targets = of(region, requests)
        [(pages, pages_of_a_chunk)] = workplace.disturbed.found(PAGES.format(region=region))
        assert len(set(targets)) == pages
        assert len(targets) - pages <= pages_of_a_chunk
    workplace.assert_as_undisturbed("--mode", "full")


@pytest.mark.parametrize("place", PLACES)
def test_a_worker_killed_in_mid_publish_publishes_once(workplace: Workplace, session_supplier: Supplier, place: str) -> None:
    """The other worker waits for what the dead one left open, then publishes, or finds it published; never both."""
    session_supplier.control(change=2)
    with publications_held(workplace.disturbed.database, place) as release:
        run_id = workplace.trigger()
        workplace.wait_for(f"publish waits {place}", WAITING)
        published = workplace.disturbed.found(PUBLICATIONS)
        workplace.kill_the_worker_of(run_id, "publish")
        assert workplace.disturbed.found(PUBLICATIONS) == published
        [(killed_at,)] = workplace.disturbed.found("select clock_timestamp()")
        workplace.wait_for("the next try waits, too", WAITING, rows=2)
        release()
        tries = workplace.tries_of(run_id)
    assert tries["publish"] == 2
    [(applied_at,)] = workplace.disturbed.found("select max(applied_at) from sluice_ledger.publication")
    assert (applied_at < killed_at) == (place == "in its commit")
    workplace.assert_as_undisturbed()


@contextmanager
def publications_held(database: ConnectionInfo, place: str) -> Iterator[Callable[[], object]]:
    """Let every publication wait at one of the `PLACES` until the function given is called."""
    with psycopg.connect(conninfo(database), autocommit=True) as session:
        session.execute(HOLD)
        session.execute(PLACES[place])
        session.execute("select pg_advisory_lock(%s)", [LOCK])
        try:
            yield lambda: session.execute("select pg_advisory_unlock(%s)", [LOCK])
        finally:
            session.execute("select pg_advisory_unlock_all()")
            session.execute("drop function hold_publication() cascade")


def of(region: str, targets: list[str]) -> list[str]:
    return [target for target in targets if f"region={region}" in target]
