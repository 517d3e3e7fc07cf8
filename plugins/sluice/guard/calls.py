"""Calls with side effects: a call and who makes it go in; its result comes out, the call having been made once.

The intent is committed before the call and its result after it, so that a process may die at any moment in between. Whoever
comes next reuses a result that is known, and repeats a call whose result is not, under the same key, which the receiver is
told: it sees from the key that it knows the call already.

Of two workers with one call only one may make it. Both work for the same run, and the younger has fenced the elder by the
token it took, so that the elder can neither begin a call nor keep a result. What the elder has under way the younger repeats
under the same key.
"""

import hashlib
import json
from collections.abc import Callable
from typing import Final

import structlog

from sluice import log_events
from sluice.errors import CallUnconfirmed, Retryable, SluiceError
from sluice.guard.retries import patiently
from sluice.model.call import Call, CallResult
from sluice.model.run import Run
from sluice.model.stage import StagePolicy
from sluice.ports import CallStore

log: Final = structlog.get_logger()


def call_key(*parts: str) -> str:
    """Return the key of what these stable names say together; no clock and no random number is in it."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def once(calls: CallStore, call: Call, run: Run, policy: StagePolicy, send: Callable[[Call], CallResult]) -> CallResult:
    """Return the result of `call`: the known one, or that of `send`, repeated as the policy's `retry` allows.

    `run` is the one that works, whose token fences. Raises `CallUnconfirmed` if nobody can say what became of the call, and
    what else `send` raises; either way the call is left to be repeated.
    """
    begun = calls.begin(call, run, policy.idempotency_ttl)
    facts = {"call": call.name, "subject": call.subject, "key": call.key}
    if begun.result is not None:
        log.info(log_events.CALL_FOUND, **facts, answer=begun.result.answer)
        return begun.result
    try:
        # Patience must not be taken for a standstill.
        within = min(policy.timeouts.step, policy.no_progress_timeout / 2)
        result = patiently(lambda: send(begun), policy.retry, within=within)
    except SluiceError as error:
        calls.leave(begun, run, error.message)
        log.warning(log_events.CALL_LEFT, **facts, error=type(error).__name__, message=error.message)
        if isinstance(error, Retryable):
            raise CallUnconfirmed(f"{CallUnconfirmed.__doc__} ({error.message})", key=call.key) from error
        raise
    calls.answer(begun, run, result)
    tell = log.info if result.accepted else log.warning
    tell(log_events.CALL_ANSWERED, **facts, accepted=result.accepted, answer=result.answer)
    return result
