"""Nothing but a folder in; the DAG that removes daily what has outlived its time, out."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import structlog
from airflow.sdk import DAG, Param, get_current_context, task
from airflow.sdk.exceptions import AirflowSkipException

from sluice import log_events
from sluice.airflow_glue.tasks import Report, asked_by
from sluice.airflow_glue.workplace import settings, tending
from sluice.model.airflow_names import UPKEEP_DAG
from sluice.model.audit import POLICY

log: Final = structlog.get_logger()

_EPOCH: Final = datetime(2020, 1, 1, tzinfo=UTC)
"""Airflow wants a start; without catch-up any past one does."""

_PAGE: Final = """
Removes what has outlived the time that the stages of `include/stages.yaml` give it, and that nobody needs: `look` says what
would go and what stays and why, `remove` removes it. Cold copies are made first where the connection `sluice_artifacts` wants
them.
It may be killed, and run again, at any time. `sluice gc` does the same by hand.
"""


def upkeep_dag(include: Path | None = None) -> DAG:
    """Return the DAG `sluice-upkeep`, of which there is one for all syncs."""
    tasks = UpkeepTasks(settings(include).include)
    with DAG(
        dag_id=UPKEEP_DAG,
        description="Removes what has outlived its time",
        schedule="@daily",
        start_date=_EPOCH,
        catchup=False,
        max_active_runs=1,
        params={
            "dry_run": Param(
                False,
                type="boolean",
                title="Only look",
                description="Say what would go, what stays and why; remove nothing.",
            )
        },
        tags=["sluice"],
        doc_md=_PAGE,
        default_args={"owner": "sluice", "retries": 2, "retry_delay": timedelta(minutes=5)},
    ) as dag:
        task(task_id="look")(tasks.look)() >> task(task_id="remove")(tasks.remove)()
    return dag


class UpkeepTasks:
    """The tasks. What they use is imported when they run, so that parsing the DAG stays light."""

    def __init__(self, include: Path) -> None:
        self._include = include

    def look(self) -> Report:
        """Return what would go, by sync and by table."""
        return self._collected(dry_run=True)

    def remove(self) -> Report:
        """Remove it, and return what it was; skip where somebody only wanted to look."""
        if get_current_context()["params"]["dry_run"]:
            raise AirflowSkipException("somebody only wanted to look: nothing is removed")
        return self._collected(dry_run=False)

    def _collected(self, *, dry_run: bool) -> Report:
        from sluice.upkeep.collection import collect
        from sluice.upkeep.collection_report import lines

        dag_run: Any = get_current_context()["dag_run"]
        with tending(self._include) as services:
            garbage = collect(services, dry_run=dry_run, by=asked_by(dag_run) or POLICY, tell=_tell)
        for what, figure in lines(garbage):
            log.info(log_events.GARBAGE_FOUND, what=what, figure=figure, dry_run=dry_run)
        return garbage.model_dump(mode="json")


def _tell(done: str) -> None:
    log.info(log_events.GARBAGE_PROGRESS, done=done)
