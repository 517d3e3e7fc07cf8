"""The laboratory: servers and the story in; experiments out, each in databases, a bucket's corner and a shop of its own.

Each experiment is about one chapter of the story, and begins where an undisturbed run of the chapters before it ended. What an
undisturbed run of the chapter itself is like has been noted (`Calm`): the events it logs, the commits it makes, the pages it
asks for, and the picture it leaves, which is what every disturbed one has to come to.
"""

import time
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from sluice.adapters.artifacts.s3 import S3ArtifactStore
from sluice.adapters.postgres import conninfo
from sluice.cli.local.postgres import PostgresServer
from sluice.model.base import RunId
from sluice.model.connections import STATE, TARGET
from sluice.model.run import Mode, RunRequest
from sluice.ports import ConnectionInfo
from tests.chaos import oracle
from tests.chaos.oracle import Picture, Place
from tests.chaos.shop import Shop, open_shop
from tests.chaos.story import Chapter, World, chapters, write_project
from tests.chaos.tally import Tally
from tests.chaos.worker import Ended, Errand, Mark
from tests.chaos.workers import Nursery, Worker

PATIENCE = 60.0
CHUNK_PAGES = 2
LOCK = 1659
MOST_PUT_AHEAD = 2
"""Artifacts of a chunk, rows and rejects, that are stored before the first of their pointers is."""


@dataclass(frozen=True)
class Calm:
    """An undisturbed run of a chapter."""

    events: tuple[str, ...]
    commits: Mapping[str, int]
    asked: Counter[str]
    picture: Picture


class Experiment:
    """One chapter, disturbed."""

    def __init__(self, lab: "Lab", chapter: Chapter, place: Place, shop: Shop, calm: Calm | None = None) -> None:
        self.place = place
        self.shop = shop
        self.connections = {
            "sluice_state": place.state,
            "sluice_target": place.target,
            "sluice_artifacts": place.artifacts,
            "shop": shop.connection,
        }
        self.faults: list[str] = []
        self.include = lab.include
        """The project whose spec and policy its workers go by; a test may put another in its place."""
        self.cache = lab.include.with_name(f"cache-{uuid.uuid4().hex[:8]}")
        """Where its workers keep copies of artifacts; a test may do to it what it likes."""
        self.sleepers: list[Worker] = []
        """Workers that a test has paused, to wake them when all is over."""
        self._lab = lab
        self._chapter = chapter
        self._calm = calm
        self._workers: list[Worker] = []
        self._runs_before = self.sql(STATE, "select count(*) from sluice_state.run where status = 'succeeded'")[0][0]

    def start(
        self,
        *marks: Mark,
        work: RunRequest | RunId | None = None,
        connections: Mapping[str, ConnectionInfo] | None = None,
        clock_jumps: Mapping[Mark, timedelta] | None = None,
        largest_file: int | None = None,
        lacks_memory_at: Mark | None = None,
    ) -> Worker:
        """Start a worker at the chapter's request, or at other work, held at these marks."""
        errand = Errand(
            include=self.include,
            cache=self.cache,
            connections={**self.connections, **(connections or {})},
            work=work or self._chapter.request,
            marks=frozenset(marks),
            clock_jumps=clock_jumps or {},
            largest_file=largest_file,
            lacks_memory_at=lacks_memory_at,
        )
        worker = self._lab.nursery.start(errand)
        self._workers.append(worker)
        return worker

    def kill(self, worker: Worker, fault: str) -> None:
        """Kill a worker that is at work."""
        assert worker.is_at_work(), f"{fault}: the worker had ended already"
        worker.kill()
        self.faults.append(fault)

    def let_leases_run_out(self) -> None:
        """Let the time pass that the leases have left, by the clock that counts: the database's."""
        self.sql(STATE, "update sluice_state.lease set expires_at = clock_timestamp()")

    def go_on(self) -> Ended | None:
        """Ask for the same again, as whoever finds a dead run does; None if it had come to its end."""
        if self.succeeded():
            return None
        self.let_leases_run_out()
        ended = self.start().end()
        assert ended.status == "succeeded", ended
        return ended

    def succeeded(self) -> bool:
        """Whether a run of this experiment has succeeded."""
        succeeded = self.sql(STATE, "select count(*) from sluice_state.run where status = 'succeeded'")[0][0]
        return bool(succeeded > self._runs_before)

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count the faults of the experiment: they are survived if the block, which looks at what came of them, is content."""
        try:
            yield
        except BaseException:
            self._lab.tally.add(self.faults, survived=False)
            raise
        self._lab.tally.add(self.faults, survived=True)

    @property
    def calm(self) -> Calm:
        """What an undisturbed run of the chapter is like."""
        assert self._calm is not None, "there is nothing to compare with"
        return self._calm

    def check(self, *, is_in_parts: bool = False) -> None:
        """Compare with the undisturbed run; one that `is_in_parts` may have come to the same in several publications.

        Each fault may cost each region the pages of one open chunk, and the one that was under way meanwhile.
        """
        with self.counted():
            self.check_soundness()
            right, found = self.calm.picture, oracle.picture(self.place, self._lab.store)
            if is_in_parts:
                right, found = oracle.without_parts(right), oracle.without_parts(found)
            _expect_nothing(oracle.differences(right, found))
            for region, pages in self.shop.pages_asked().items():
                allowed = self.calm.asked[region] + len(self.faults) * (CHUNK_PAGES + 1)
                assert pages <= allowed, f"{region}: {pages} pages asked for, {allowed} allowed"

    def check_soundness(self) -> None:
        """Look for what may never be, whatever the run was about."""
        _expect_nothing(oracle.problems(self.place, self._lab.store))
        left = oracle.unreferenced(self.place, self._lab.store)
        assert len(left) <= MOST_PUT_AHEAD * len(self.faults), f"bytes that nothing names: {sorted(left)}"

    def sql(self, conn_id: str, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """Execute a statement in one of the databases; return what it yields."""
        info = {STATE: self.place.state, TARGET: self.place.target}[conn_id]
        with psycopg.connect(conninfo(info), autocommit=True) as connection:
            done = connection.execute(query, values or None)  # type: ignore[call-overload]
            return done.fetchall() if done.description else []

    @contextmanager
    def commit_held(self, conn_id: str, number: int) -> Iterator["HeldCommit"]:
        """Let the database stand still in its nth commit from here."""
        info = {STATE: self.place.state, TARGET: self.place.target}[conn_id]
        with psycopg.connect(conninfo(info), autocommit=True) as connection:
            connection.execute("select pg_advisory_lock(%s)", [LOCK])
            connection.execute("select setval('chaos.commits', 1, false)")
            connection.execute("update chaos.hold set number = %s", [number])
            yield HeldCommit(connection)
            connection.execute("update chaos.hold set number = null")

    def close(self) -> None:
        """End what still works."""
        for worker in self._workers:
            worker.close()


class HeldCommit:
    """A commit that its session has asked for and the server has not made yet."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def reached(self, worker: Worker) -> int:
        """Wait until the worker is in it; return the process id of its session."""
        session = self.reached_or_ended(worker)
        assert session is not None, f"the commit was never reached: {worker.account}"
        return session

    def reached_or_ended(self, worker: Worker) -> int | None:
        """Wait until the worker is in it; return the process id of its session, None if the worker ends before."""
        deadline = time.monotonic() + PATIENCE
        while True:
            found = self._connection.execute(
                "select pid from pg_locks where locktype = 'advisory' and objid = %s and not granted", [LOCK]
            ).fetchone()
            if found is not None:
                return int(found[0])
            if not worker.is_at_work():
                return None
            assert time.monotonic() < deadline
            time.sleep(0.002)  # a lock that somebody waits for announces itself to nobody

    def make(self) -> None:
        """Let the server commit; return once it has."""
        self._connection.execute("select pg_advisory_unlock(%s)", [LOCK])
        self._connection.execute("select pg_advisory_lock(%s)", [LOCK])  # behind the one who was in the queue before

    def refuse(self, session: int) -> None:
        """End the session, and with it the transaction."""
        self._connection.execute("select pg_terminate_backend(%s, 10000)", [session])


def _expect_nothing(told: list[str]) -> None:
    assert not told, "\n".join(["", *told[:40]])


class Lab:
    """Makes experiments."""

    def __init__(self, server: PostgresServer, template: str, bucket: ConnectionInfo, nursery: Nursery, include: Path) -> None:
        self.nursery = nursery
        self.include = include
        self.tally = Tally()
        self.store = S3ArtifactStore(bucket)
        self._server = server
        self._bucket = bucket
        self._story = chapters()
        self._calm: list[Calm] = []
        self._starts = [(self._prepared(template), self._prepared(template))]

    @property
    def story(self) -> list[Chapter]:
        """The chapters, in order."""
        return self._story

    def calm(self, chapter: Chapter) -> Calm:
        """Return what an undisturbed run of the chapter is like."""
        place = self._story.index(chapter)
        while len(self._calm) <= place:
            self._tell(self._story[len(self._calm)])
        return self._calm[place]

    @contextmanager
    def experiment(self, chapter: Chapter) -> Iterator[Experiment]:
        """Yield an experiment with a chapter; its databases are gone in the end."""
        calm = self.calm(chapter)
        with ExitStack() as stack:
            yield self._enter(stack, chapter, self._starts[self._story.index(chapter)], calm)

    @contextmanager
    def another_story(self, world: World) -> Iterator[Experiment]:
        """Yield an experiment that begins with nothing, and with a full load of what some other supplier holds."""
        with ExitStack() as stack:
            yield self._enter(stack, Chapter("another story", Mode.FULL, world), self._starts[0], None)

    def project(self, **changes: Mapping[str, Any]) -> Path:
        """Return the folder of a project with another `sync` or `stage`."""
        return write_project(self.include.with_name(f"include-{uuid.uuid4().hex[:8]}"), **changes)

    def _enter(self, stack: ExitStack, chapter: Chapter, start: tuple[str, str], calm: Calm | None) -> Experiment:
        state, target = self._copies(start)
        stack.callback(self._drop, state, target)
        shop = stack.enter_context(open_shop(chapter.world))
        experiment = Experiment(self, chapter, self._place(state, target), shop, calm)
        stack.callback(experiment.close)
        return experiment

    def close(self) -> None:
        """Drop the databases that experiments begin with."""
        for pair in self._starts:
            self._drop(*pair)

    def _tell(self, chapter: Chapter) -> None:
        """Run the next chapter undisturbed; the following one begins with what it leaves."""
        state, target = self._copies(self._starts[-1])
        with open_shop(chapter.world) as shop:
            experiment = Experiment(self, chapter, self._place(state, target), shop)
            worker = experiment.start()
            ended = worker.end()
            assert ended.status == "succeeded", f"{ended.error}: {ended.message}"
            experiment.close()
            _expect_nothing(oracle.problems(experiment.place, self.store))
            _expect_nothing(sorted(oracle.unreferenced(experiment.place, self.store)))
            commits = {
                conn_id: experiment.sql(conn_id, "select last_value from chaos.commits")[0][0] for conn_id in (STATE, TARGET)
            }
            for conn_id in (STATE, TARGET):
                experiment.sql(conn_id, "select setval('chaos.commits', 1, false)")
            self._calm.append(
                Calm(tuple(worker.events), commits, shop.pages_asked(), oracle.picture(experiment.place, self.store))
            )
        self._starts.append((state, target))

    def _place(self, state: str, target: str) -> Place:
        corner = {**self._bucket.extra, "prefix": state}
        return Place(
            self._server.connection(STATE, state), self._server.connection(TARGET, target), replace(self._bucket, extra=corner)
        )

    def _prepared(self, template: str) -> str:
        name = self._copy(template)
        with psycopg.connect(self._server.uri(name), autocommit=True) as connection:
            connection.execute((Path(__file__).parent / "commits.sql").read_bytes())
            connection.execute("insert into chaos.hold values (null)")
        return name

    def _copies(self, pair: tuple[str, str]) -> tuple[str, str]:
        return self._copy(pair[0]), self._copy(pair[1])

    def _copy(self, database: str) -> str:
        name = f"chaos_{uuid.uuid4().hex[:16]}"
        with psycopg.connect(self._server.uri("postgres"), autocommit=True) as session:
            copying = sql.SQL("create database {} template {}")
            session.execute(copying.format(sql.Identifier(name), sql.Identifier(database)))
        return name

    def _drop(self, *databases: str) -> None:
        with psycopg.connect(self._server.uri("postgres"), autocommit=True) as session:
            for name in databases:
                session.execute(sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name)))
