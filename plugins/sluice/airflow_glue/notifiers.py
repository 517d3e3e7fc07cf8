"""A notice and whom it is for in; one call of a notifier of Airflow's, and what became of it, out.

Notifiers are loaded when there is something to tell, never when a DAG is parsed.
"""

from typing import Any

from airflow.sdk.log import redact  # type: ignore[attr-defined]

from sluice.adapters.notifiers import notifier_class
from sluice.airflow_glue.notices import notice_fields
from sluice.airflow_glue.workplace import Workplace, settings
from sluice.errors import ReceiverUnavailable, SpecInvalid
from sluice.flow.alerting import Send
from sluice.model.call import CallResult
from sluice.model.notice import Notice
from sluice.model.stage import Notifier


def sender(work: Workplace) -> Send:
    """Return what tells people from this task."""

    def send(to: Notifier, notice: Notice) -> CallResult:
        """Tell one of them; raise `ReceiverUnavailable` if that fails. One that cannot be made, however often, has refused."""
        try:
            made = notifier_class(to, settings().include)(**to.arguments)
        except (SpecInvalid, TypeError) as error:
            return CallResult(accepted=False, answer=_told(error))
        except Exception as error:  # what it is made with may be looked up somewhere
            raise ReceiverUnavailable(f"{to.notifier}: {_told(error)}") from error
        # A notifier writes its own fields into the context it is given.
        context: Any = {**work.context, "alert": notice_fields(work.services, notice)}
        try:
            made(context)
        except Exception as error:  # whatever it uses to reach people may raise anything
            raise ReceiverUnavailable(f"{to.notifier}: {_told(error)}") from error
        return CallResult(accepted=True, answer="told")

    return send


def _told(error: BaseException) -> str:
    """Return what an error says, without the secrets that Airflow knows of."""
    return f"{type(error).__name__}: {redact(str(error))}"
