"""What is asked for, and what there is of it, in; a plan out: each span, how things stand with it, and what is to be done."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console

from sluice.adapters.airflow_backfills import asked_for
from sluice.cli.backfill.spans import spell_runs, spell_span
from sluice.cli.exits import ExitCode
from sluice.cli.output import printable, table
from sluice.model.backfill import AT_WORK, UNSETTLED, Act, DagRunSeen, Reprocess, Span, Standing, covers
from sluice.model.lifecycle import FINAL_RUN_STATUSES, RunStatus
from sluice.model.run import SYNC_MODES, Mode, Run, RunRequest, Window
from sluice.model.trigger_form import form_of
from sluice.ports import Services


@dataclass(frozen=True)
class Asked:
    """What is asked for: one request for each of many spans of time."""

    request: RunRequest
    """Of every span, but for its window."""
    windows: tuple[Window, ...]
    reprocess: Reprocess
    is_scheduled: bool
    """Whether the spans are intervals of the schedule, so that Airflow's own backfill knows them."""

    @property
    def whole(self) -> Window:
        """The time from the first span to the last."""
        return Window(start=self.windows[0].start, end=self.windows[-1].end)

    def request_of(self, span: Span) -> RunRequest:
        """Return the request for one span."""
        is_redone = span.act(self.reprocess) is Act.REDO
        return self.request.model_copy(update={"window": span.window, "force": is_redone})

    def dag_run_stem(self, window: Window) -> str:
        """Return how the ids of DagRuns begin that are triggered for a span: the same for the same request."""
        form = json.dumps(form_of(self.request), sort_keys=True).encode()
        return asked_for(window) + hashlib.sha256(form).hexdigest()[:8]

    def look(self, services: Services, dag_runs: Sequence[DagRunSeen] = ()) -> list[Span]:
        """Return how things stand with each span, by the runs in our state and, where given, the DagRuns in Airflow."""
        modes = [Mode.REPLAY] if self.request.mode is Mode.REPLAY else list(SYNC_MODES)
        wanted, newest = frozenset(self.request.shards), dict[Window, Run]()
        runs = services.runs.asked_within(self.request.sync, self.whole, modes)
        reviewed = {run.id: run for run in runs if run.status is RunStatus.WAITING and not run.is_following}
        for run in runs:
            if run.window is not None and covers(frozenset(run.shards), wanted):
                # One that follows a run that waits for a person waits for that person.
                newest.setdefault(run.window, reviewed.get(run.worked_by, run))
        return [self._span(window, newest.get(window), dag_runs) for window in self.windows]

    def _span(self, window: Window, run: Run | None, dag_runs: Iterable[DagRunSeen]) -> Span:
        stem, wanted = self.dag_run_stem(window), frozenset(self.request.shards)
        found = [
            dag_run
            for dag_run in dag_runs
            if dag_run.id == stem
            or dag_run.id.startswith(f"{stem}__")
            or (self.is_scheduled and dag_run.logical_date == window.start and covers(dag_run.shards, wanted))
        ]
        of_run = [dag_run for dag_run in found if run is not None and dag_run.id == run.origin.dag_run_id]
        at_work = [dag_run for dag_run in found if dag_run.is_at_work]
        return Span(window=window, run=run, dag_run=next(iter([*at_work, *of_run, *found]), None))


@dataclass(frozen=True)
class Plan:
    """What there is of each span, and what is to be done about it."""

    asked: Asked
    spans: tuple[Span, ...]

    def of(self, *acts: Act) -> list[Span]:
        """Return the spans about which this is done."""
        return [span for span in self.spans if span.act(self.asked.reprocess) in acts]

    def document(self) -> list[dict[str, Any]]:
        """Return the plan for programs."""
        return [{**span_document(span), "act": span.act(self.asked.reprocess).value} for span in self.spans]

    def draw(self, console: Console) -> None:
        """Draw the plan: span by span, and what it comes to."""
        rows = [[spell_span(span.window), _there_is(span), span.act(self.asked.reprocess).value] for span in self.spans]
        console.print(table(["span", "what there is", "what is done"], rows))
        console.print(printable(self.summary(), "bold"), soft_wrap=True)

    def summary(self) -> str:
        """Say how many spans there are, and what is done about how many."""
        counts = Counter(span.act(self.asked.reprocess) for span in self.spans)
        told = ", ".join(f"{act.value} {counts[act]:,}" for act in Act if counts[act])
        return f"{spell_runs(len(self.spans))}: {told}"


def span_document(span: Span) -> dict[str, Any]:
    """Return a span for programs."""
    return {
        "window": span.window,
        "standing": span.standing.value,
        "run": span.run.id if span.run else None,
        "dag_run": span.dag_run.id if span.dag_run else None,
        "failure": span.run.failure if span.run else None,
    }


def exit_code_of_spans(spans: Iterable[Span]) -> ExitCode:
    """Return how a backfill ends: by the worst of its spans. What was turned down, or has not ended, has not come in."""
    standings = {span.standing for span in spans}
    if standings & {Standing.FAILED, Standing.CANCELLED, Standing.MISSING, *AT_WORK}:
        return ExitCode.FAILED
    if Standing.WAITING in standings:
        return ExitCode.WAITING
    return ExitCode.PARTIAL if Standing.PARTIAL in standings else ExitCode.DONE


def _there_is(span: Span) -> str:
    """Say what there is of a span: how its run stands, and what run that is."""
    if span.standing is Standing.MISSING:
        return "nothing"
    if span.run is not None:
        named = f"run {span.run.id}"
        if span.run.failure is not None and span.standing in UNSETTLED:
            named += f": {span.run.failure.message}"
        elif span.run.finished_at is not None and span.run.status in FINAL_RUN_STATUSES:
            named += f", {span.run.finished_at:%Y-%m-%d %H:%MZ}"
    else:
        named = f"{span.dag_run.kind} run" if span.dag_run else ""
    return f"{span.standing}, {named}"
