"""Alerting: who is told of an incident, and of a review that waits; what becomes of what cannot be told."""

from datetime import timedelta

import pytest

from sluice.errors import CallUnconfirmed, ReceiverUnavailable, SluiceError
from sluice.flow.alerting import deliver, judge_row, tell_of_review
from sluice.model.alert import Tidings
from sluice.model.base import RunId
from sluice.model.call import CallResult
from sluice.model.lifecycle import RunStatus
from sluice.model.notice import Notice
from sluice.model.run import Run
from sluice.model.stage import Alerts, Notifier, Notify, RetryPolicy, StagePolicy
from tests.support.nouns import a_review
from tests.unit.flow.workshop import RUN, Workshop

MAIL, PHONE, DESK = (Notifier(notifier=f"team.{name}") for name in ("Mail", "Phone", "Desk"))
NOTIFY = Notify(warn=(MAIL,), page=(MAIL, PHONE), review=(DESK,))
TOLD = CallResult(accepted=True, answer="told")
AWAY = ReceiverUnavailable("nobody answers")


class Bench:
    """Runs of a sync, one after the other, and who hears of them."""

    def __init__(self, alerts: Alerts | None = None) -> None:
        self.workshop = Workshop()
        limits = alerts or Alerts(warn=1, page=2, notify=NOTIFY)
        self.workshop.policy = StagePolicy(alerts=limits, retry=RetryPolicy(attempts=1), task_retries=0)
        self.heard: list[tuple[str, Tidings]] = []
        self.answers: list[CallResult | SluiceError] = []

    def send(self, to: Notifier, notice: Notice) -> CallResult:
        """Hear of it, or be away."""
        answer = self.answers.pop(0) if self.answers else TOLD
        if isinstance(answer, SluiceError):
            raise answer
        self.heard.append((to.notifier.removeprefix("team."), notice.tidings))
        return answer

    def add(self, name: str, status: RunStatus) -> Run:
        """Let another run of the sync have ended so."""
        if not self.workshop.memory.runs:
            self.workshop.begin()
        runs, now = self.workshop.memory.runs, self.workshop.memory.clock.now()
        ended = {"id": RunId(name), "status": status, "finished_at": now}
        runs[RunId(name)] = run = runs[RUN].model_copy(update=ended)
        return run

    def end(self, name: str, status: RunStatus, *, is_repeated: bool = False) -> None:
        """Settle another run of the sync that ended so."""
        run = self.add(name, status)
        judge_row(self.workshop.services, run)
        deliver(self.workshop.services, run, self.send, is_repeated=is_repeated)


def test_who_is_told_of_an_incident() -> None:
    """Once that it began, once that it got worse, and once, everybody who knows of it, that it is over."""
    bench = Bench()
    for number, status in enumerate([RunStatus.FAILED, RunStatus.PARTIAL, RunStatus.FAILED, RunStatus.SUCCEEDED] * 2):
        bench.end(f"no-{number}", status)
    once = [("Mail", "warn"), ("Mail", "page"), ("Phone", "page"), ("Mail", "recovered"), ("Phone", "recovered")]
    assert bench.heard == once * 2


@pytest.mark.parametrize(
    ("notify", "heard"),
    [
        (Notify(), []),
        (Notify(warn=(PHONE,)), [("Phone", "warn"), ("Phone", "recovered")]),
        (Notify(page=(PHONE,)), [("Phone", "page"), ("Phone", "recovered")]),
    ],
)
def test_stages_differ_in_whom_they_tell(notify: Notify, heard: list[tuple[str, str]]) -> None:
    """Nobody, who wants to know early, or who is woken."""
    bench = Bench(Alerts(warn=1, page=2, notify=notify))
    for number, status in enumerate([RunStatus.FAILED, RunStatus.FAILED, RunStatus.SUCCEEDED]):
        bench.end(f"no-{number}", status)
    assert bench.heard == heard


@pytest.mark.parametrize(("notify", "heard"), [(Notify(), []), (NOTIFY, [("Desk", "review")])])
def test_stages_differ_in_whom_they_tell_of_reviews(notify: Notify, heard: list[tuple[str, str]]) -> None:
    """Of each once, however often it is asked about."""
    bench = Bench(Alerts(notify=notify))
    run = bench.add("no-0", RunStatus.WAITING)
    for _ in range(2):
        tell_of_review(bench.workshop.services, run, a_review("r"), bench.send)
    assert bench.heard == heard


def test_a_review_that_nobody_could_be_told_of_waits_all_the_same() -> None:
    """It stands among those that wait."""
    bench = Bench()
    bench.answers = [AWAY]
    tell_of_review(bench.workshop.services, bench.add("no-0", RunStatus.WAITING), a_review("r"), bench.send)
    assert bench.heard == []


def test_the_task_is_tried_again_for_whoever_could_not_be_told() -> None:
    """And tells nobody twice."""
    bench = Bench(Alerts(warn=1, page=1, notify=NOTIFY))
    bench.answers = [TOLD, AWAY]
    with pytest.raises(CallUnconfirmed):
        bench.end("no-0", RunStatus.FAILED, is_repeated=True)
    bench.end("no-0", RunStatus.FAILED, is_repeated=True)
    assert bench.heard == [("Mail", "page"), ("Phone", "page")]


def test_a_good_run_stays_good_whoever_is_away() -> None:
    """With the last try of its task nothing is raised."""
    bench = Bench()
    bench.end("no-0", RunStatus.FAILED)
    bench.answers = [AWAY]
    bench.end("no-1", RunStatus.SUCCEEDED)
    assert bench.heard == [("Mail", "warn")]


@pytest.mark.parametrize(("later", "heard"), [(timedelta(0), []), (timedelta(hours=1), [("Mail", "warn")])])
def test_what_a_run_could_not_tell_is_told_by_a_later_one(later: timedelta, heard: list[tuple[str, str]]) -> None:
    """Once no try of its own can be left: of two runs that end at once, one tells."""
    bench = Bench(Alerts(warn=1, page=9, notify=NOTIFY))
    bench.answers = [AWAY]
    bench.end("no-0", RunStatus.FAILED)
    bench.workshop.memory.clock.move(later)
    bench.end("no-1", RunStatus.FAILED)
    assert bench.heard == heard


def test_what_is_over_is_told_no_more() -> None:
    """Whoever could not be told that a sync fails hears that it has recovered."""
    bench = Bench()
    bench.answers = [AWAY]
    bench.end("no-0", RunStatus.FAILED)
    bench.workshop.memory.clock.move(timedelta(hours=1))
    bench.end("no-1", RunStatus.SUCCEEDED)
    assert bench.heard == [("Mail", "recovered")]
