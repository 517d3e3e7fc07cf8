"""Runs whose reviews were decided or superseded elsewhere in; answers to their gates in Airflow out, so that those go on."""

from typing import Final

import structlog

from sluice import log_events
from sluice.errors import ConnectionInvalid, SluiceError
from sluice.model.base import ReviewId
from sluice.model.connections import AIRFLOW
from sluice.model.review import Choice, Decision
from sluice.model.run import Run
from sluice.ports import Connections

log: Final = structlog.get_logger()


class AirflowGates:
    """The gates of DagRuns, answered as the user of the connection `sluice_airflow`."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def close(self, run: Run, superseded: ReviewId, successor: ReviewId) -> None:
        """Reject what the gate asks, with a comment that names the newer review; without a connection it is left alone."""
        if not run.origin.is_airflow:
            return
        try:
            info = self._connections.get(AIRFLOW)
        except ConnectionInvalid as missing:
            log.info(log_events.GATE_LEFT_OPEN, superseded=run.id, review=successor, message=missing.message)
            return
        from sluice.adapters.airflow_api import AirflowApi

        comment = f"superseded by review {successor}: there is nothing left to decide here"
        try:
            with AirflowApi(info) as api:
                api.answer_gate(run.origin, superseded, Choice.REJECT, comment)
        except SluiceError as error:
            log.warning(log_events.GATE_LEFT_OPEN, superseded=run.id, review=successor, message=error.message)
        else:
            log.info(log_events.GATE_CLOSED, superseded=run.id, review=successor)

    def require_unanswered(self, run: Run) -> None:
        """Raise `NotFound` if the gate of a DagRun does not ask, and `IllegalTransition` if it was answered or has ended."""
        from sluice.adapters.airflow_api import AirflowApi

        with AirflowApi(self._connections.get(AIRFLOW)) as api:
            api.require_unanswered(run.origin)

    def release(self, run: Run, review: ReviewId, decision: Decision) -> None:
        """Give the gate the answer that was recorded already; it finds it there, and goes on."""
        from sluice.adapters.airflow_api import AirflowApi

        said = f": {decision.comment}" if decision.comment else ""
        comment = f"decided by {decision.by} in the pages of Sluice{said}"
        with AirflowApi(self._connections.get(AIRFLOW)) as api:
            api.answer_gate(run.origin, review, decision.choice, comment, decision.deletes_at_most)
