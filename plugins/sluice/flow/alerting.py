"""Alerting: a run that is over comes in; an incident begins, gets worse or ends, and people are told of that once.

An incident begins with the run that lets the row of failures reach a level of the stage's `alerts`, may reach the higher level
once, and ends with a run that succeeds. Whoever changes it notes in the same transaction whom to tell (as calls, see
`guard.calls`), so that of two runs that end at once one tells. What is noted is delivered where notifiers are at hand: by the
task that settles the run, or, where that could not, by a later one's. Nothing of that makes a good run a bad one.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Final

import structlog

from sluice import log_events
from sluice.errors import CallUnconfirmed, NotFound
from sluice.guard.calls import call_key, once
from sluice.guard.log_level import logged_from
from sluice.guard.takeover import is_taken_over
from sluice.model import metric
from sluice.model.alert import AlertLevel, Incident, Tidings, alert_for
from sluice.model.call import Call, CallResult
from sluice.model.lifecycle import RunStatus
from sluice.model.notice import Notice
from sluice.model.review import Review
from sluice.model.run import Mode, Run
from sluice.model.stage import Notifier, StagePolicy
from sluice.ports import Services

log: Final = structlog.get_logger()

_KIND: Final = "alert"

Send = Callable[[Notifier, Notice], CallResult]
"""Tells somebody. Raises a `Retryable` where nobody can say what became of it."""


def judge_row(services: Services, run: Run) -> None:
    """Raise an alert if the runs of the sync keep failing, once per incident and level; end the incident if one succeeded.

    Whose outcome was another's says nothing, nor does a rollback or a redrive: the person who asked for it is there.
    """
    is_asked_for = run.mode in (Mode.ROLLBACK, Mode.REDRIVE)
    if run.follows is not None or is_asked_for or is_taken_over(run):
        return
    policy = services.policy(run.stage)
    with logged_from(policy.log_level):
        if run.status in (RunStatus.FAILED, RunStatus.PARTIAL):
            _raise(services, run, policy)
        elif run.status is RunStatus.SUCCEEDED:
            _recover(services, run, policy)


def _raise(services: Services, run: Run, policy: StagePolicy) -> None:
    alert = alert_for(services.alerts.failed_in_a_row(run.id), policy.alerts)
    if alert is None:
        return
    incident = services.alerts.raise_alert(run, alert, lambda begun: _calls(begun, run, policy), policy.idempotency_ttl)
    if incident is None:
        return
    tell = log.error if incident.level is AlertLevel.PAGE else log.warning
    tell(
        log_events.ALERT_RAISED,
        **run.log_context,
        incident=incident.id,
        alert=incident.level.value,
        runs=incident.runs,
        failure=f"{run.failure.error}: {run.failure.message}" if run.failure else None,
    )
    services.metrics.count(metric.ALERTS, stage=run.stage, tidings=incident.tidings)


def _recover(services: Services, run: Run, policy: StagePolicy) -> None:
    incident = services.alerts.recover(run, lambda ended: _calls(ended, run, policy), policy.idempotency_ttl)
    if incident is not None:
        log.info(log_events.ALERT_ENDED, **run.log_context, incident=incident.id, alert=incident.level.value)
        services.metrics.count(metric.ALERTS, stage=run.stage, tidings=incident.tidings)


def deliver(services: Services, run: Run, send: Send, *, is_repeated: bool) -> None:
    """Tell people of the sync's incident what is due: what this run has to say, and what an earlier one could not.

    Who cannot be reached is left to a later run. But if the step `is_repeated` after an error, raises `CallUnconfirmed`.
    """
    policy = services.policy(run.stage)
    incident = services.alerts.newest(run.sync)
    if incident is None:
        return
    unconfirmed: CallUnconfirmed | None = None
    with logged_from(policy.log_level):
        for call, notifier in _due(services, incident, run, policy):
            notice = Notice(tidings=incident.tidings, run=services.runs.get(call.run), incident=incident)
            try:
                once(services.calls, call, run, policy, partial(_send, send, notifier, notice))
            except CallUnconfirmed as error:
                unconfirmed = error
    if is_repeated and unconfirmed is not None:
        raise unconfirmed


def tell_of_review(services: Services, run: Run, review: Review, send: Send) -> None:
    """Tell people, once, of a review that waits for a person; who cannot be reached finds it among those that wait."""
    policy = services.policy(run.stage)
    for notifier in policy.alerts.notify.review:
        call = _call(run, review.id, Tidings.REVIEW, notifier)
        notice = Notice(tidings=Tidings.REVIEW, run=run, review=review)
        with suppress(CallUnconfirmed):  # it has been logged
            once(services.calls, call, run, policy, partial(_send, send, notifier, notice))


def _send(send: Send, notifier: Notifier, notice: Notice, _: Call) -> CallResult:
    return send(notifier, notice)


def _due(services: Services, incident: Incident, run: Run, policy: StagePolicy) -> Iterator[tuple[Call, Notifier]]:
    """Yield the calls that tell of the incident as it is now, and that nobody else is making."""
    left = {call.key: call for call in services.calls.left(run.sync)}
    for notifier in incident.audience(policy.alerts):
        call = left.get(_call(run, _subject(incident), incident.tidings, notifier).key)
        if call is not None and (call.run == run.id or _is_given_up(services, call, policy)):
            yield call, notifier


def _is_given_up(services: Services, call: Call, policy: StagePolicy) -> bool:
    """Whether the run that noted the call can have no try of its own left that makes it: no message is to come twice."""
    with suppress(NotFound):
        ended_at = services.runs.get(call.run).finished_at
        tries = policy.task_retries + 1
        longest: timedelta = tries * policy.no_progress_timeout + policy.retry_window
        return ended_at is not None and services.clock.now() - ended_at > longest
    return False


def _calls(incident: Incident, run: Run, policy: StagePolicy) -> list[Call]:
    return [_call(run, _subject(incident), incident.tidings, to) for to in incident.audience(policy.alerts)]


def _call(run: Run, subject: str, tidings: Tidings, notifier: Notifier) -> Call:
    who = (notifier.notifier, json.dumps(notifier.arguments, sort_keys=True))
    key = call_key(_KIND, run.sync, subject, tidings, *who)
    name = f"{tidings} {notifier.notifier.rpartition('.')[2]}"
    return Call(key=key, sync=run.sync, run=run.id, subject=subject, name=name)


def _subject(incident: Incident) -> str:
    return f"incident {incident.id}"
