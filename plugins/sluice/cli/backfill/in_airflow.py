"""A plan in; runs that Airflow was asked for, by a backfill of its own or one by one, and how they stand, out."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum
from functools import partial
from typing import Final

from sluice.adapters.airflow_backfills import AirflowBackfills
from sluice.cli.backfill.board import Board, Rows
from sluice.cli.backfill.plan import Asked, Plan
from sluice.errors import IllegalTransition, UsageInvalid
from sluice.model.backfill import Act, AirflowBackfill, DagRunSeen, Reprocess, Span, Standing
from sluice.model.scalars import spell_instant
from sluice.model.trigger_form import form_of
from sluice.ports import Services

BETWEEN_LOOKS: Final = timedelta(seconds=2)


class Way(Enum):
    """How Airflow is asked for a run."""

    BACKFILL = "as one of a backfill of Airflow's own"
    TRIGGER = "by itself, with its window in the form"
    CLEAR = "by letting the DagRun that failed begin again"


@dataclass
class InAirflow:
    """A backfill whose runs are DagRuns."""

    services: Services
    airflow: AirflowBackfills
    asked: Asked
    max_active: int
    _pending: deque[Callable[[], None]] = field(default_factory=deque)
    """What is asked for one by one, as others end."""

    def plan(self) -> Plan:
        """Return how things stand, in our state and in Airflow, and what is to be done."""
        return Plan(self.asked, tuple(self.spans()))

    def spans(self) -> list[Span]:
        """Return how things stand with each span."""
        return self.asked.look(self.services, self._seen())

    @property
    def pending(self) -> int:
        """How many runs are still to be asked for."""
        return len(self._pending)

    def needs_watching(self, plan: Plan) -> bool:
        """Whether some runs are asked for one by one, as others end, so that somebody has to stay."""
        seen = self._seen()
        return any(self._way(span, seen) is not Way.BACKFILL for span in plan.of(Act.START, Act.RESUME, Act.REDO))

    def begin(self, plan: Plan) -> AirflowBackfill | None:
        """Ask for what is to be begun; return Airflow's own backfill, if that does some of it.

        Raises `IllegalTransition` while another backfill of the DAG is at work, and `UsageInvalid` where Airflow would not
        begin what is planned.
        """
        seen = self._seen()
        by_way: dict[Way, list[Span]] = {way: [] for way in Way}
        for span in plan.of(Act.START, Act.RESUME, Act.REDO):
            by_way[self._way(span, seen)].append(span)
        backfill = self._begin_backfill(by_way[Way.BACKFILL]) if by_way[Way.BACKFILL] else None
        for span in by_way[Way.CLEAR]:
            if span.dag_run is not None:
                self._pending.append(partial(self.airflow.clear, span.dag_run.id))
        for span in by_way[Way.TRIGGER]:
            stem = self.asked.dag_run_stem(span.window)
            number = sum(dag_run.id.startswith(stem) for dag_run in seen)
            dag_run_id = f"{stem}__{number + 1}" if number else stem
            self._pending.append(partial(self.airflow.trigger, dag_run_id, form_of(self.asked.request_of(span))))
        return backfill

    def follow(self, board: Board) -> list[Span]:
        """Ask for what is still to be begun as others end, until all have ended, or wait for a person; return the spans."""
        rows, clock = Rows(self.services), self.services.clock
        while True:
            spans = self.spans()
            asked_now = self.ask_for_more(spans)
            board.show(rows.of(spans), clock.now())
            if not asked_now and self._is_over(spans):
                return spans
            clock.wait(BETWEEN_LOOKS)

    def ask_for_more(self, spans: Sequence[Span]) -> bool:
        """Ask for as many runs as there is room for beside those at work; return whether there was any."""
        room = self.max_active - sum(self._takes_room(span) for span in spans)
        asked = [self._pending.popleft() for _ in range(min(max(room, 0), len(self._pending)))]
        for ask in asked:
            ask()
        return bool(asked)

    def _takes_room(self, span: Span) -> bool:
        """Whether a span counts as one that is at work; what a backfill of Airflow's has yet to begin does not."""
        if span.standing in (Standing.RUNNING, Standing.WAITING):
            return True
        return span.standing is Standing.QUEUED and span.dag_run is not None and span.dag_run.kind != "backfill"

    def _is_over(self, spans: Sequence[Span]) -> bool:
        """Whether nothing moves any more: what is left waits for a person, or for the place of what does."""
        if any(span.standing is Standing.RUNNING for span in spans):
            return False
        if sum(span.standing is Standing.WAITING for span in spans) >= self.max_active:
            return True
        return not self._pending and not any(span.standing is Standing.QUEUED for span in spans)

    def _begin_backfill(self, spans: Sequence[Span]) -> AirflowBackfill:
        first, last = spans[0].window.start, spans[-1].window.start
        form = form_of(self.asked.request)
        self._refuse_second()
        new = {span.window.start for span in spans if span.dag_run is None}
        if unknown := sorted(new - self.airflow.startable(first, last, form)):
            raise UsageInvalid(
                f"Airflow would begin no run for {spell_instant(unknown[0])}, as the schedule in the spec has it: has it read "
                "the spec as it is now? It reads DAG files every so often"
            )
        reprocess = self.asked.reprocess if self.asked.reprocess is Reprocess.FAILED else Reprocess.NONE
        return self.airflow.create(first, last, form, reprocess, self.max_active)

    def _refuse_second(self) -> None:
        sync, newest = self.asked.request.sync, self.airflow.newest()
        if newest is not None and not newest.is_over:
            raise IllegalTransition(
                f"backfill {newest.id} of {sync}, from {spell_instant(newest.first)} to {spell_instant(newest.last)}, is at "
                f"work, and a DAG has one at a time: `sluice backfill {sync} --wait` follows it, `sluice backfill {sync} "
                "--cancel` ends it"
            )

    def _way(self, span: Span, seen: Sequence[DagRunSeen]) -> Way:
        """Return how to ask for a run. Airflow's own backfill has one DagRun for a date, and knows intervals alone."""
        act, dag_run = span.act(self.asked.reprocess), span.dag_run
        if act is Act.RESUME and dag_run is not None and dag_run.state == "failed":
            is_dated = self.asked.is_scheduled and dag_run.logical_date == span.window.start
            return Way.BACKFILL if is_dated else Way.CLEAR
        is_taken = any(dag_run.logical_date == span.window.start for dag_run in seen)
        return Way.BACKFILL if act is not Act.REDO and self.asked.is_scheduled and not is_taken else Way.TRIGGER

    def _seen(self) -> list[DagRunSeen]:
        return self.airflow.dag_runs(self.asked.whole)
