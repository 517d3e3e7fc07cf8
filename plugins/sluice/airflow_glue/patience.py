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
        began = context["ti"].get_first_reschedule_date(context) or now
        if is_asked_for(error):
            key, since = "wait_timeout", began
        else:
            key = "no_progress_timeout"
            since = max([began, *(shard.progress_at for shard in services.shards.of(run_id) if shard.progress_at)])
        limit = getattr(services.policy(stage), key)
        if max(due, now) - since > limit:
            raise WaitedInVain(
                f"no more than {spell_duration(limit)} is waited for this supplier ({key} of stage {stage}), and the next try "
                f"would be due at {due:%Y-%m-%dT%H:%M:%SZ}: {error.message}"
            ) from error
        raise


def is_asked_for(error: SluiceError) -> bool:
    """Whether it is the supplier who asks for the wait; else it is left alone because it fails."""
    return isinstance(error, RateLimited) or bool(error.facts.get("is_asked_for"))
