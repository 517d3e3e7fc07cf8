"""How long the pages about syncs and runs take to answer, and how many events a second the live view passes on.

    .venv/bin/python bench/pages.py [SYNCS] [SHARDS]

50 syncs unless said, each with a year of daily runs, reviews and a thousand dead letters; the newest run of one has 1,000
shards, each with the events of its life. A page is asked for over HTTP from the pages' own server, with a connection to
Postgres that is opened anew each time, as in Airflow; what Airflow's login adds is not in it. The limit for a page is 0.3 s.
"""

import logging
import shutil
import socket
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import psycopg
import structlog
import uvicorn
from fastapi import FastAPI

from sluice.adapters.migrate import upgrade
from sluice.adapters.postgres import conninfo
from sluice.cli.local.postgres import PostgresServer
from sluice.model.airflow_names import dag_id_of
from sluice.model.base import RunId
from sluice.model.connections import ARTIFACTS
from sluice.model.schedule import Schedule
from sluice.ports import ConnectionInfo, Services
from sluice.settings import Settings
from sluice.web.access import Access
from sluice.web.app import create_app
from sluice.web.surroundings import Surroundings
from sluice.wiring import open_services

PROJECT = Path(__file__).parents[1]
ROUNDS = 15
FILL = Path(__file__).with_suffix(".sql").read_text(encoding="utf-8")


class Places:
    """The connections there are: to state, and to a bucket that no page asks for."""

    def __init__(self, state: ConnectionInfo) -> None:
        self._state = state

    def get(self, conn_id: str) -> ConnectionInfo:
        """Return one."""
        if conn_id != ARTIFACTS:
            return self._state
        return ConnectionInfo(conn_id, "aws", None, None, "key", "secret", None, {"bucket": "none", "region_name": "none"})


def main(syncs: int, shards: int) -> None:
    """Fill a state, serve the pages, and ask for them."""
    home = Path(tempfile.mkdtemp(prefix="sluice-pages-"))
    server = PostgresServer(home / "postgres")
    try:
        server.start()
        server.ensure_database("sluice")
        info = server.connection("sluice_state", "sluice")
        upgrade(info, "sluice_state")
        with psycopg.connect(conninfo(info), autocommit=True) as connection:
            for statement in FILL.split(";\n")[:-1]:
                connection.execute(statement, {"syncs": syncs, "shards": shards})  # type: ignore[arg-type]
            connection.execute("vacuum (analyze)")
        with served(info, [dag_id_of(f"sync_{number}") for number in range(1, syncs + 1)]) as address:
            measure(address, shards)
    finally:
        server.stop()
        shutil.rmtree(home, ignore_errors=True)


@contextmanager
def served(info: ConnectionInfo, dags: list[str]) -> Iterator[str]:
    """Serve the pages to somebody who may see all of it."""

    @contextmanager
    def services() -> Iterator[Services]:
        with open_services(Settings(include=PROJECT / "include"), Places(info)) as opened:  # type: ignore[arg-type]
            yield opened

    def anybody() -> None:
        """Let pass."""

    access = Access(
        authenticated=anybody,
        user=lambda: "ann",
        user_id=lambda: "ann",
        readable_dags=lambda: set(dags),
        may_read_dag=anybody,
        may_change_dag=anybody,
        can_change_dag=lambda: True,
    )
    schedules = {dag: Schedule(cron="@daily") for dag in dags}
    around = Surroundings(
        access=access,
        services=services,
        run_id_of=lambda _, run: RunId(run),
        later=lambda *_: None,
        schedules=lambda: schedules,
    )
    app = FastAPI()
    app.mount("/sluice", create_app(around))
    bound = socket.create_server(("127.0.0.1", 0))
    web = uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=web.run, args=([bound],), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{bound.getsockname()[1]}/sluice"
    finally:
        web.should_exit = True
        thread.join()


def measure(address: str, shards: int) -> None:
    """Ask for each page some times, one after the other; then follow the run from its beginning."""
    run = f"{address}/dags/sluice_sync_1/runs/big"
    with httpx2.Client(timeout=30) as client:
        for name, url in {
            "all syncs": f"{address}/",
            "one sync": f"{address}/dags/sluice_sync_1",
            f"a run with {shards:,} shards": run,
            "its shards that failed": f"{run}?shards=failed",
        }.items():
            spent = time.process_time()
            times = sorted(timed(lambda url=url: asked(client, url)) for _ in range(ROUNDS))  # type: ignore[misc]
            size = len(asked(client, url))
            cpu = (time.process_time() - spent) / ROUNDS
            shown = f"median {statistics.median(times):.3f} s   worst {times[-1]:.3f} s   {cpu:.3f} s of CPU"
            print(f"{name:30}  {shown}   {size / 1000:,.0f} kB")
        began, seen = time.perf_counter(), 0
        with client.stream("GET", f"{run}/events") as stream:
            for line in stream.iter_lines():
                seen += line.startswith("id: ")
                if seen == 2 * shards:
                    break
        print(f"{seen:,} events through the live view: {seen / (time.perf_counter() - began):,.0f} a second")


def asked(client: httpx2.Client, url: str) -> bytes:
    """Return a page; end with what it says if it is none."""
    answer = client.get(url)
    if answer.status_code != httpx2.codes.OK:
        sys.exit(answer.text)
    return answer.content


def timed(ask: Callable[[], object]) -> float:
    """Return how long it takes."""
    began = time.perf_counter()
    ask()
    return time.perf_counter() - began


if __name__ == "__main__":
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    main(*(int(argument) for argument in (sys.argv[1:] + ["50", "1000"][len(sys.argv) - 1 :])))
