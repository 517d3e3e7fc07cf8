"""The runs: `sluice_state.run` and its flights behind the port `RunStore`."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

import structlog

from sluice import log_events
from sluice.adapters.postgres import Transactions
from sluice.adapters.state import flights, handover, journal
from sluice.adapters.state.columns import failure_columns, failure_facts
from sluice.adapters.state.opening import open_run
from sluice.adapters.state.run_rows import SQL, find_run, run_from_row
from sluice.adapters.state.versions import readable
from sluice.errors import Fenced
from sluice.model import metric
from sluice.model.audit import Actor
from sluice.model.base import RunId, Token
from sluice.model.lifecycle import (
    FINAL_RUN_STATUSES,
    RUN_TRANSITIONS,
    RunEvent,
    RunStatus,
    Step,
    advance,
    destination,
    sources,
)
from sluice.model.run import LEFT_UNFINISHED, RUN_STATE_VERSION, SYNC_MODES, Failure, Mode, Run, Window
from sluice.model.stage import StagePolicy
from sluice.ports import Metrics

_log: Final = structlog.get_logger()


class PostgresRunStore:
    """Runs in Postgres."""

    def __init__(self, database: Transactions, metrics: Metrics | None = None) -> None:
        """Without `metrics`, takeovers are told by the log alone."""
        self._database = database
        self._metrics = metrics

    def open(self, run: Run, policy: StagePolicy, by: Actor | None = None) -> Run:
        """Insert the run, or look at it again: it has its request's flight, follows the run that has it, or is over already."""
        with self._database.transaction() as connection:
            opened, dead = open_run(connection, run, policy, by)
        for taken in dead:
            _log.warning(log_events.RUN_TAKEN_OVER, **opened.log_context, taken_over=taken.id)
            if self._metrics is not None:
                self._metrics.count(metric.TAKEOVERS, stage=opened.stage)
        return opened

    def get(self, run: RunId) -> Run:
        """Return the run; raise `NotFound` naming it."""
        with self._database.transaction() as connection:
            return find_run(connection, run)

    def enter(self, run: RunId, step: Step, lease_ttl: timedelta) -> Run:
        """Put the run at `step`, `running`; raise `FlightTaken` while another run of its request is alive."""
        with self._database.transaction() as connection:
            before = find_run(connection, run)
            if before.status is RunStatus.SUCCEEDED:
                return before
            flights.take(connection, run, lease_ttl)
            event = RunEvent.REOPEN if before.status in FINAL_RUN_STATUSES else RunEvent.ENTER
            row = connection.execute(
                SQL["enter"],
                {
                    "id": run,
                    "step": step,
                    "lease_ttl": lease_ttl,
                    "state_version": RUN_STATE_VERSION,
                    "status": destination(RUN_TRANSITIONS, event),
                    "sources": [*sources(RUN_TRANSITIONS, RunEvent.ENTER), *sources(RUN_TRANSITIONS, RunEvent.REOPEN)],
                },
            ).fetchone()
            if row is None:  # it has succeeded just now
                flights.release(connection, run)
                return find_run(connection, run)
            journal.note_run(connection, run, event, row["status"], step=step)
            return run_from_row(row)

    def end(self, run: Run, event: RunEvent, failure: Failure | None = None) -> Run:
        """Let `event` happen to the run, and release its flight: one that waits for a person holds nobody up either."""
        status = destination(RUN_TRANSITIONS, event)
        with self._database.transaction() as connection:
            flights.release(connection, run.id)
            row = connection.execute(
                SQL["end"],
                {
                    "id": run.id,
                    "token": run.token,
                    "status": status,
                    "sources": sources(RUN_TRANSITIONS, event),
                    "is_final": status in FINAL_RUN_STATUSES,
                    **failure_columns(failure),
                },
            ).fetchone()
            if row is None:
                raise _refusal(find_run(connection, run.id), run.token, event)
            ended = run_from_row(row)
            journal.note_run(connection, run.id, event, status, **failure_facts(failure))
            if status in FINAL_RUN_STATUSES:
                handover.end_shards(connection, run.id, failure or LEFT_UNFINISHED, all_of_them=False)
            return ended

    def renew(self, run: Run, lease_ttl: timedelta) -> bool:
        """Extend the run's flight; `Fenced` on an older token. Return whether the run still runs."""
        with self._database.transaction() as connection:
            flights.still_run(connection, run.id, run.token, lease_ttl)
            return flights.keep(connection, run.id)

    def next_token(self, run: Run) -> Run:
        """Give the run a newer token; `Fenced` on an older one, or if the run is over."""
        with self._database.transaction() as connection:
            flights.still_run(connection, run.id, run.token)
            row = connection.execute(SQL["next_token"], {"id": run.id}).fetchone()
            if row is None:
                raise Fenced(f"run {run.id} was ended meanwhile", run=run.id)
            return run_from_row(row)

    def reach(self, run: Run, step: Step) -> None:
        """Let `step` be next; `Fenced` on an older token, or if the run is over."""
        with self._database.transaction() as connection:
            flights.still_run(connection, run.id, run.token)
            if connection.execute(SQL["reach"], {"id": run.id, "step": step}).rowcount == 0:
                raise Fenced(f"run {run.id} was ended meanwhile", run=run.id)

    def fetched_within(self, sync: str, window: Window) -> list[Run]:
        """Return the runs that have asked the supplier, and were begun within the window, oldest first."""
        facts = {"sync": sync, "fetching": list(SYNC_MODES), "window_start": window.start, "window_end": window.end}
        with self._database.transaction() as connection:
            return [run_from_row(row) for row in connection.execute(SQL["fetched_within"], facts)]

    def asked_within(self, sync: str, span: Window, modes: Sequence[Mode]) -> list[Run]:
        """Return the runs in some modes whose windows lie within a span of time, the newest first."""
        facts = {"sync": sync, "modes": list(modes), "window_start": span.start, "window_end": span.end}
        with self._database.transaction() as connection:
            return readable(connection.execute(SQL["asked_within"], facts), run_from_row)

    def newer_than(self, run: Run) -> list[RunId]:
        """Return the runs whose data is newer than that of a replay, or of unknown age."""
        facts = {"sync": run.sync, "fetching": list(SYNC_MODES), "run": run.id}
        with self._database.transaction() as connection:
            return [RunId(row["id"]) for row in connection.execute(SQL["newer_than"], facts)]

    def recent(self, sync: str | None, statuses: Sequence[RunStatus], limit: int, before: RunId | None = None) -> list[Run]:
        """Return the newest runs first, filtered where a filter is given."""
        with self._database.transaction() as connection:
            facts = {"sync": sync, "statuses": list(statuses), "limit": limit, "before": before}
            return readable(connection.execute(SQL["recent"], facts), run_from_row)

    def followed_by(self, run: RunId, limit: int) -> list[Run]:
        """Return the runs that wait for that one, or have ended with its outcome, the newest first."""
        with self._database.transaction() as connection:
            return readable(connection.execute(SQL["followed_by"], {"run": run, "limit": limit}), run_from_row)


def _refusal(run: Run, token: Token, event: RunEvent) -> Fenced:
    """Return why the run did not move, or raise `IllegalTransition`."""
    if run.token == token:
        advance(RUN_TRANSITIONS, run.status, event)
    return Fenced(f"run {run.id} was taken over: it holds token {run.token}, not {token}", token=run.token)
