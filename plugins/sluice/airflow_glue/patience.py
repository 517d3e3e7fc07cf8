"""An error that asks for a wait in; the same out while the stage's patience lasts, and a failure for good behind it."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from sluice.errors import RateLimited, SluiceError, WaitedInVain
from sluice.guard.retries import due_at
from sluice.model.base import RunId
from sluice.model.scalars import spell_duration
from sluice.ports import Services


@contextmanager
def patience(services: Services, run_id: RunId, context: Any) -> Iterator[None]:
    """Let waits for a supplier end in `WaitedInVain` once they would exceed the stage's patience.

    A supplier that asks for pauses gets up to `wait_timeout`, from the first wait of the task on, whatever came in between: one
    that says "later" forever has an end. One that is left alone because it fails has `no_progress_timeout` to recover, from the
    last checkpoint of the run on: whoever is on call hears of an outage.
    """
    try:
        yield
    except SluiceError as error:
        now = datetime.now(UTC)
        due = due_at(error, now)
        if due is None:
            raise
        stage = services.runs.get(run_id).stage
        key = "wait_timeout" if _is_asked_for(error) else "no_progress_timeout"
        limit = getattr(services.policy(stage), key)
        earliest = max(due, now) - limit
        began = context["ti"].get_first_reschedule_date(context) or now
        if began >= earliest or (not _is_asked_for(error) and _has_moved(services, run_id, earliest)):
            raise
        raise WaitedInVain(
            f"no more than {spell_duration(limit)} is waited for this supplier ({key} of stage {stage}), and the next try "
            f"would be due at {due:%Y-%m-%dT%H:%M:%SZ}: {error.message}"
        ) from error


def _has_moved(services: Services, run_id: RunId, since: datetime) -> bool:
    """Whether any shard of the run has come further since then; there may be thousands of them."""
    return any(shard.progress_at is not None and shard.progress_at >= since for shard in services.shards.of(run_id))


def _is_asked_for(error: SluiceError) -> bool:
    """Whether it is the supplier who asks for the wait; else it is left alone because it fails."""
    return isinstance(error, RateLimited) or bool(error.facts.get("is_asked_for"))
