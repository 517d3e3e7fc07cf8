"""Spans of a backfill: how things stand with one, by its run and its DagRun, and what is done about it."""

from datetime import timedelta

import pytest

from sluice.model.backfill import Act, DagRunSeen, Reprocess, Span, Standing, covers
from sluice.model.base import RunId, ShardKey
from sluice.model.lifecycle import RunStatus
from sluice.model.run import Window
from tests.support.nouns import NOW, a_run

DAY = Window(start=NOW, end=NOW + timedelta(days=1))


def span(run: RunStatus | None = None, dag_run: str | None = None, follows: str | None = None) -> Span:
    """Return a span with a run of a status, or a DagRun in a state, or both."""
    return Span(
        window=DAY,
        run=None if run is None else a_run(status=run, follows=None if follows is None else RunId(follows)),
        dag_run=None if dag_run is None else DagRunSeen("backfill__1", "backfill", dag_run, NOW, frozenset()),
    )


@pytest.mark.parametrize(
    ("of", "standing", "none", "failed", "completed"),
    [
        (span(), Standing.MISSING, Act.START, Act.START, Act.START),
        (span(dag_run="queued"), Standing.QUEUED, Act.FOLLOW, Act.FOLLOW, Act.FOLLOW),
        (span(dag_run="running"), Standing.RUNNING, Act.FOLLOW, Act.FOLLOW, Act.FOLLOW),
        (span(dag_run="success"), Standing.SUCCEEDED, Act.LEAVE, Act.LEAVE, Act.REDO),
        (span(dag_run="failed"), Standing.FAILED, Act.LEAVE, Act.RESUME, Act.REDO),
        (span(RunStatus.PENDING), Standing.RUNNING, Act.FOLLOW, Act.FOLLOW, Act.FOLLOW),
        (span(RunStatus.RUNNING), Standing.RUNNING, Act.FOLLOW, Act.FOLLOW, Act.FOLLOW),
        (span(RunStatus.WAITING), Standing.WAITING, Act.LEAVE, Act.LEAVE, Act.LEAVE),
        (span(RunStatus.WAITING, "running"), Standing.WAITING, Act.FOLLOW, Act.FOLLOW, Act.FOLLOW),
        (span(RunStatus.WAITING, "running", follows="other"), Standing.RUNNING, Act.FOLLOW, Act.FOLLOW, Act.FOLLOW),
        (span(RunStatus.SUCCEEDED, "success"), Standing.SUCCEEDED, Act.LEAVE, Act.LEAVE, Act.REDO),
        (span(RunStatus.PARTIAL, "failed"), Standing.PARTIAL, Act.LEAVE, Act.RESUME, Act.REDO),
        (span(RunStatus.FAILED), Standing.FAILED, Act.LEAVE, Act.RESUME, Act.REDO),
        (span(RunStatus.FAILED, "queued"), Standing.QUEUED, Act.FOLLOW, Act.FOLLOW, Act.FOLLOW),
        (span(RunStatus.CANCELLED, "success"), Standing.CANCELLED, Act.LEAVE, Act.LEAVE, Act.REDO),
    ],
)
def test_what_is_done_about_a_span(of: Span, standing: Standing, none: Act, failed: Act, completed: Act) -> None:
    """What is missing begins, what is at work is followed, and of what has ended `--reprocess` says what is taken up again."""
    assert of.standing is standing
    assert [of.act(reprocess) for reprocess in Reprocess] == [none, failed, completed]


@pytest.mark.parametrize(
    ("had", "asked", "does"), [("", "", True), ("", "a", True), ("a b", "a", True), ("a", "a b", False), ("a", "", False)]
)
def test_which_shards_have_those_that_are_asked_for(had: str, asked: str, does: bool) -> None:
    """All have some, some have fewer; some never have all."""
    assert covers(frozenset(map(ShardKey, had.split())), frozenset(map(ShardKey, asked.split()))) is does
