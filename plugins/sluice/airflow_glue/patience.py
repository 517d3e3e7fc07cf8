"""An error that asks for a wait in; the same out while the stage's patience lasts, and a failure for good behind it."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from sluice.errors import SluiceError, WaitedInVain
from sluice.guard.retries import due_at
from sluice.model.base import RunId
from sluice.model.scalars import spell_duration
from sluice.ports import Services


@contextmanager
def patience(services: Services, run_id: RunId, context: Any) -> Iterator[None]:
    """Let waits for a supplier end in `WaitedInVain` once they would exceed the stage's `wait_timeout`.

    It counts from the first wait of the task on, whatever came in between: a supplier that says "later" forever has an end.
    """
    try:
        yield
    except SluiceError as error:
        now = datetime.now(UTC)
        due = due_at(error, now)
        if due is None:
            raise
        stage = services.runs.get(run_id).stage
        limit = services.policy(stage).wait_timeout
        began = context["ti"].get_first_reschedule_date(context) or now
        if max(due, now) - began > limit:
            raise WaitedInVain(
                f"no more than {spell_duration(limit)} is waited for a supplier in all (wait_timeout of stage {stage}), and "
                f"the next try would be due at {due:%Y-%m-%dT%H:%M:%SZ}: {error.message}"
            ) from error
        raise
