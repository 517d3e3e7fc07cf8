"""The plan of a backfill: what state has of each span, what that comes to, and how it is told."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from sluice.cli.backfill.asking import asked_again, asked_of, without_unfinished
from sluice.cli.backfill.plan import Asked, Plan, exit_code_of_spans
from sluice.cli.backfill.spans import parse_range
from sluice.cli.exits import ExitCode
from sluice.errors import UsageInvalid
from sluice.model.backfill import AirflowBackfill, DagRunSeen, Reprocess, Span
from sluice.model.base import RunId, ShardKey
from sluice.model.lifecycle import RunEvent, RunStatus, Step
from sluice.model.run import Failure, Mode, Origin, RunRequest, Window
from sluice.model.spec import SyncSpec
from tests.support.nouns import MINUTE, POLICY, a_run
from tests.unit.flow.workshop import Workshop, sync_spec

DAY = timedelta(days=1)
MARCH = parse_range("2025-03-01", "2025-03-04")
WINDOWED = {"query": {"since": "{{ window.start or watermark }}"}, "watermark": "updated_at"}


def spec(schedule: str | None = "@daily", **source: Any) -> SyncSpec:
    """Return the spec of a sync that uses its window, or, without a query, none."""
    plain = sync_spec()
    return plain.model_copy(
        update={"schedule": schedule, "source": plain.source.model_copy(update={"query": {}, **(source or WINDOWED)})}
    )


def asked(reprocess: Reprocess = Reprocess.NONE, step: timedelta | None = None, **request: Any) -> Asked:
    """Return what is asked of three days in March."""
    request = {"sync": "hotels", "mode": Mode.FULL, "origin": Origin(), **request}
    return asked_of(spec(), RunRequest(**request), MARCH, step, reprocess)


def day(number: int) -> Window:
    """Return one of the days."""
    return Window(start=MARCH.start + number * DAY, end=MARCH.start + (number + 1) * DAY)


@pytest.mark.parametrize(
    ("declared", "step", "why"),
    [
        (
            spec(query={}),
            None,
            "nothing that hotels asks its supplier depends on a window.* a parameter such as `updated_since",
        ),
        (
            spec(schedule=None),
            None,
            "hotels has no schedule whose intervals could be gone over: say how long they are: --step 1d",
        ),
    ],
)
def test_what_cannot_be_backfilled(declared: SyncSpec, step: timedelta | None, why: str) -> None:
    """Each run would bring the same; or nobody knows into what to cut. The message says what to add."""
    with pytest.raises(UsageInvalid, match=why):
        asked_of(declared, RunRequest(sync="hotels", mode=Mode.FULL, origin=Origin()), MARCH, step, Reprocess.NONE)


def test_a_replay_needs_no_window_and_none_of_the_schedule() -> None:
    """It asks no supplier; and Airflow's own backfill would not give it one."""
    found = asked_of(spec(query={}), RunRequest(sync="hotels", mode=Mode.REPLAY, origin=Origin()), MARCH, DAY, Reprocess.NONE)
    assert (found.windows, found.is_scheduled) == (tuple(day(number) for number in range(3)), False)


def test_steps_that_are_the_intervals_of_the_schedule() -> None:
    """Whether they were written as such or not, Airflow's own backfill knows them; others it does not."""
    assert (asked().is_scheduled, asked(step=DAY).is_scheduled, asked(step=2 * DAY).is_scheduled) == (True, True, False)


def test_what_is_not_over_yet_is_left_out() -> None:
    """As Airflow leaves it out; if nothing is left, that is said."""
    kept, left_out = without_unfinished(asked(), day(1).end)
    assert (kept.windows, left_out) == ((day(0), day(1)), 1)
    with pytest.raises(UsageInvalid, match="none of these spans is over yet"):
        without_unfinished(asked(), day(0).start)


def test_a_backfill_of_airflows_is_asked_for_again_as_it_was() -> None:
    """From its first interval to its last, of its shards."""
    known = AirflowBackfill(7, day(0).start, day(2).start, {"shards": ["north"]}, 4, is_over=False)
    again = asked_again(spec(), known)
    assert (again.windows, again.request.shards) == (asked().windows, ("north",))
    with pytest.raises(UsageInvalid, match="no schedule any more"):
        asked_again(spec(schedule=None), known)


def test_what_state_and_airflow_have_of_each_span() -> None:
    """The newest run that has the shards; of DagRuns the one at work before the one of that run; of others nothing."""
    services = Workshop().services
    for number, (name, at, shards) in enumerate(
        [("older", 0, ()), ("newer", 0, ()), ("elsewhere", 1, ("south",)), ("some", 2, ("north", "south"))]
    ):
        facts = {"window": day(at), "shards": tuple(map(ShardKey, shards)), "request_key": str(number)}
        services.runs.open(a_run(name, **facts, origin=Origin(dag_id="d", dag_run_id=f"of-{name}")), POLICY)
    dag_runs = [
        DagRunSeen("daily", "scheduled", "success", day(1).start, frozenset()),
        DagRunSeen("of-newer", "backfill", "failed", day(0).start, frozenset()),
        DagRunSeen(f"{asked(shards=('north',)).dag_run_stem(day(2))}__2", "manual", "queued", None, frozenset()),
        DagRunSeen(f"{asked().dag_run_stem(day(1))}", "manual", "queued", None, frozenset()),
    ]
    spans = asked(shards=("north",)).look(services, dag_runs)
    assert [(span.run and span.run.id, span.dag_run and span.dag_run.id[:5]) for span in spans] == [
        ("newer", "of-ne"),
        (None, "daily"),
        ("some", "sluic"),
    ]


def test_who_follows_a_run_that_waits_for_a_person_waits_for_that_person() -> None:
    """What is asked twice at once is left to whoever decides; while the first is at work it is followed."""
    services = Workshop().services
    for name in ("first", "second"):
        services.runs.open(a_run(name, window=day(0)), POLICY)
    entered = services.runs.enter(RunId("first"), Step.REVIEW, MINUTE)
    assert [asked().look(services)[0].act(Reprocess.NONE), services.runs.get(RunId("second")).follows] == ["follow", "first"]
    services.runs.end(entered, RunEvent.PARK)
    span = asked().look(services)[0]
    assert (span.run and span.run.id, span.standing, span.act(Reprocess.NONE)) == ("first", "waiting", "leave")
    assert exit_code_of_spans([span]) is ExitCode.WAITING


def test_a_plan_as_it_is_told() -> None:
    """Span by span, with what there is, why it failed, and what is done; programs get the same."""
    services = Workshop().services
    services.runs.open(a_run("lost", window=day(1)), POLICY)
    entered = services.runs.enter(RunId("lost"), Step.FETCH, MINUTE)
    services.runs.end(entered, RunEvent.FAIL, Failure(error="SupplierUnavailable", message="503 for 5m"))
    what = asked(Reprocess.FAILED)
    plan = Plan(what, tuple(what.look(services)))
    told = [(line["standing"], line["run"], line["act"]) for line in plan.document()]
    assert told == [("missing", None, "start"), ("failed", "lost", "resume"), ("missing", None, "start")]
    assert plan.summary() == "3 runs: start 2, resume 1"
    assert what.request_of(plan.spans[1]).force is False
    again = replace(what, reprocess=Reprocess.COMPLETED)
    assert (again.request_of(plan.spans[1]).force, again.request_of(plan.spans[1]).window) == (True, day(1))


@pytest.mark.parametrize(
    ("statuses", "code"),
    [
        ([RunStatus.SUCCEEDED, RunStatus.SUCCEEDED], ExitCode.DONE),
        ([RunStatus.SUCCEEDED, RunStatus.PARTIAL], ExitCode.PARTIAL),
        ([RunStatus.PARTIAL, RunStatus.WAITING], ExitCode.WAITING),
        ([RunStatus.WAITING, RunStatus.FAILED], ExitCode.FAILED),
        ([RunStatus.SUCCEEDED, RunStatus.CANCELLED], ExitCode.FAILED),
        ([RunStatus.SUCCEEDED, RunStatus.RUNNING], ExitCode.FAILED),
        ([RunStatus.SUCCEEDED, None], ExitCode.FAILED),
    ],
)
def test_how_a_backfill_ends(statuses: list[RunStatus | None], code: ExitCode) -> None:
    """By the worst of its spans."""
    spans = [Span(window=day(0), run=None if status is None else a_run(status=status)) for status in statuses]
    assert exit_code_of_spans(spans) is code
