"""What a call of `sluice backfill` asks for in; its plan shown, its runs begun or watched, and its exit code, out."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import typer
from rich.console import Console

from sluice.adapters.airflow_api import AirflowApi
from sluice.adapters.airflow_backfills import AirflowBackfills
from sluice.cli.backfill.asking import asked_again, without_unfinished
from sluice.cli.backfill.board import Board, Rows, drawn, summary_of
from sluice.cli.backfill.in_airflow import InAirflow
from sluice.cli.backfill.inline import work_off
from sluice.cli.backfill.plan import Asked, Plan, exit_code_of_spans
from sluice.cli.exits import ExitCode
from sluice.cli.output import Output, printable
from sluice.cli.session import Session
from sluice.errors import AirflowUnavailable, ConnectionInvalid, NotFound, UsageInvalid
from sluice.model.airflow_names import dag_id_of
from sluice.model.backfill import AT_WORK, Act, AirflowBackfill, Span
from sluice.model.spec import SyncSpec
from sluice.ports import Services


@dataclass(frozen=True)
class Call:
    """One call of the command, and what was asked for besides a span of time."""

    session: Session
    output: Output
    spec: SyncSpec
    max_active: int
    is_dry: bool
    waits: bool
    is_sure: bool

    def inline(self, services: Services, asked: Asked) -> ExitCode:
        """Work off the plan in this process."""
        asked = self._over(services, asked)
        plan = Plan(asked, tuple(asked.look(services)))
        if self._shows_alone(plan) or not self._is_wanted(plan):
            return ExitCode.DONE
        try:
            with Board(self.output.err) as board:
                spans = work_off(services, plan, board, verbose=self.session.verbose)
        except KeyboardInterrupt:
            self.output.note("Stopped. The same command with --reprocess failed goes on from the last checkpoint.")
            return ExitCode.INTERRUPTED
        return self._end(services, spans)

    def in_airflow(self, services: Services, asked: Asked | None) -> ExitCode:
        """Have Airflow work off the plan; without one, look at the newest backfill that it has."""
        with _airflow(self.session, self.spec.sync) as airflow:
            known = airflow.newest() if asked is None else None
            if asked is None and known is None:
                raise UsageInvalid(f"{self.spec.sync} has never been backfilled: say over which time, with --from and --to")
            if known is not None:
                asked = asked_again(self.spec, known)
            work = InAirflow(services, airflow, self._over(services, asked), known.max_active if known else self.max_active)
            if known is not None:
                if self.waits:
                    return self._watch(services, work, known.id)
                code = self._end(services, spans := work.spans(), known.id)
                return ExitCode.DONE if any(span.standing in AT_WORK for span in spans) else code
            return self._begin(services, airflow, work)

    def _begin(self, services: Services, airflow: AirflowBackfills, work: InAirflow) -> ExitCode:
        plan, is_paused = work.plan(), airflow.is_paused()
        if self._shows_alone(plan):
            return ExitCode.DONE
        self._refuse_unwatched(work, plan)
        if is_paused and self.waits:
            raise UsageInvalid(f"the DAG is paused in Airflow, so no run would begin: unpause it first: {airflow.url}")
        if not self._is_wanted(plan):
            return ExitCode.DONE
        begun = work.begin(plan) if plan.of(Act.START, Act.RESUME, Act.REDO) else None
        if is_paused:
            self.output.note(f"The DAG is paused in Airflow: the runs begin once somebody unpauses it: {airflow.url}")
        if self.waits:
            return self._watch(services, work, begun.id if begun else None)
        self._tell_begun(plan, begun, airflow)
        return ExitCode.DONE if plan.of(Act.START, Act.RESUME, Act.REDO, Act.FOLLOW) else exit_code_of_spans(plan.spans)

    def _over(self, services: Services, asked: Asked | None) -> Asked:
        """Return what is asked for of spans that are over."""
        if asked is None:
            raise TypeError("nothing was asked for")
        over, left_out = without_unfinished(asked, services.clock.now())
        if left_out:
            self.output.note(f"{left_out:,} of the intervals are not over yet, and left out.")
        return over

    def _shows_alone(self, plan: Plan) -> bool:
        """Show the plan to a person; return whether that is all there is to do."""
        if self.is_dry or not self.output.as_json:
            self.output.result({"sync": self.spec.sync, "spans": plan.document()}, plan.draw)
        return self.is_dry

    def _is_wanted(self, plan: Plan) -> bool:
        """Ask, where there is somebody to be asked and something to begin."""
        has_work = bool(plan.of(Act.START, Act.RESUME, Act.REDO))
        if self.is_sure or self.output.as_json or not sys.stdin.isatty() or not has_work:
            return True
        return typer.confirm("Begin?", err=True)

    def _refuse_unwatched(self, work: InAirflow, plan: Plan) -> None:
        if not self.waits and work.needs_watching(plan):
            raise UsageInvalid(
                "Airflow's own backfill cannot do this (it knows the intervals of the schedule, each of them once): these runs "
                "are triggered one by one, as others end. Say --wait, so that somebody does"
            )

    def _watch(self, services: Services, work: InAirflow, begun: int | None) -> ExitCode:
        try:
            with Board(self.output.err) as board:
                spans = work.follow(board)
        except KeyboardInterrupt:
            left = f" {work.pending:,} that were not asked for yet do not begin." if work.pending else ""
            self.output.note(
                f"Not watched any more: what runs in Airflow goes on.{left}\n"
                f"  see it again:  the same command; it goes on where this one stopped\n"
                f"  cancel it:     sluice backfill {self.spec.sync} --cancel"
            )
            return ExitCode.INTERRUPTED
        return self._end(services, spans, begun)

    def _end(self, services: Services, spans: Sequence[Span], begun: int | None = None) -> ExitCode:
        """Print how the spans stand."""
        rows = Rows(services).of(spans)

        def draw(console: Console) -> None:
            console.print(drawn(rows))
            console.print(printable(summary_of(rows), "bold"), soft_wrap=True)

        document: dict[str, Any] = {"sync": self.spec.sync, **({} if begun is None else {"backfill": begun})}
        self.output.result({**document, "spans": [row.document() for row in rows]}, draw)
        return exit_code_of_spans(spans)

    def _tell_begun(self, plan: Plan, begun: AirflowBackfill | None, airflow: AirflowBackfills) -> None:
        sync = self.spec.sync
        document = {"sync": sync, "backfill": begun.id if begun else None, "spans": plan.document(), "url": airflow.url}
        text = (
            f"Airflow works on it as backfill {begun.id}, at most {begun.max_active} runs at a time: {airflow.url}\n"
            if begun
            else f"Nothing is to be begun: {airflow.url}\n"
        )
        text += f"  follow it:  sluice backfill {sync} --wait\n  cancel it:  sluice backfill {sync} --cancel"
        self.output.result(document, lambda console: console.print(printable(text), soft_wrap=True))


def cancel_backfill(session: Session, sync: str) -> None:
    """End the backfill at work, and let what was triggered for spans and has not begun fail; print what that was."""
    with _airflow(session, sync) as airflow:
        _cancel(session.output, sync, airflow)


def _cancel(output: Output, sync: str, airflow: AirflowBackfills) -> None:
    newest, queued = airflow.newest(), airflow.queued()
    at_work = newest if newest is not None and not newest.is_over else None
    if at_work is None and not queued:
        raise NotFound(f"no backfill of {sync} is at work, and no run of one is queued")
    if at_work is not None:
        airflow.cancel(at_work.id)
    for dag_run in queued:
        airflow.give_up(dag_run.id)
    text = (
        "Cancelled: what has not begun fails, and what runs goes on to its end. To begin it again: the same command with "
        "--reprocess failed"
    )
    document = {"sync": sync, "backfill": at_work.id if at_work else None, "dag_runs": [dag_run.id for dag_run in queued]}
    output.result(document, lambda console: console.print(printable(text), soft_wrap=True))


@contextmanager
def _airflow(session: Session, sync: str) -> Iterator[AirflowBackfills]:
    """Open Airflow, and look whether it has the DAG; where there is none, say how else."""
    instead = "`sluice up` starts an Airflow here, whose connection is sluice_airflow; --inline does the same in this process"
    try:
        info = session.airflow_connection()
    except ConnectionInvalid as error:
        raise ConnectionInvalid(f"{error.message}\n{instead}") from error
    with AirflowApi(info) as api:
        airflow = AirflowBackfills(api, dag_id_of(sync))
        try:
            airflow.is_paused()
        except AirflowUnavailable as error:
            raise AirflowUnavailable(f"{error.message}\n{instead}") from error
        yield airflow
