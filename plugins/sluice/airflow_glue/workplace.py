"""Where a task works: its DagRun in; services, run id and log fields out, and errors as Airflow understands them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog
from airflow.sdk import get_current_context
from airflow.sdk.configuration import conf

from sluice.airflow_glue.outcomes import airflow_outcomes
from sluice.airflow_glue.patience import patience
from sluice.airflow_glue.run_ids import run_id_of
from sluice.guard.log_level import drop_quiet
from sluice.guard.log_order import in_order
from sluice.model.base import RunId
from sluice.model.lifecycle import Step
from sluice.ports import Services
from sluice.settings import Settings, load_settings


@dataclass(frozen=True)
class Workplace:
    """What a task attempt works with."""

    services: Services
    run_id: RunId
    context: Any
    """Airflow's context of the task attempt."""


def settings(include: Path | None = None) -> Settings:
    """Return the settings; the include folder is the given one, `SLUICE_INCLUDE`, or the one beside the dags folder."""
    loaded = load_settings()
    if include is not None:
        return loaded.model_copy(update={"include": include})
    if "include" in loaded.model_fields_set:
        return loaded
    return loaded.model_copy(update={"include": Path(conf.get("core", "dags_folder")).parent / "include"})


def airflow_url() -> str | None:
    """Return where people reach this Airflow, if its configuration says so."""
    url: str = conf.get("api", "base_url", fallback="")
    return url.rstrip("/") if url.startswith(("http://", "https://")) else None


@contextmanager
def working(step: Step, include: Path) -> Iterator[Workplace]:
    """Open the services for one attempt of one task; what is logged meanwhile names run, step and attempt."""
    from sluice.airflow_glue.connections import AirflowConnections
    from sluice.airflow_glue.metrics import AirflowMetrics
    from sluice.flow.rebuilding import rebuilding
    from sluice.wiring import open_services

    context = get_current_context()
    dag_run = context["dag_run"]
    run_id = run_id_of(dag_run.dag_id, dag_run.run_id)
    bound = structlog.contextvars.bound_contextvars(run=run_id, step=step.value, attempt=context["ti"].try_number)
    opened = open_services(settings(include), AirflowConnections(), AirflowMetrics(), airflow_url())
    _let_logs_be_ours()
    with airflow_outcomes(), bound, opened as services, patience(services, run_id, context), rebuilding(services):
        if dag_run.clear_number:
            services.by_hand.note_clearing(run_id, dag_run.clear_number)
        yield Workplace(services=services, run_id=run_id, context=context)


@contextmanager
def tending(include: Path) -> Iterator[Services]:
    """Open the services for one attempt of a task that works for no run."""
    from sluice.airflow_glue.connections import AirflowConnections
    from sluice.airflow_glue.metrics import AirflowMetrics
    from sluice.wiring import open_services

    opened = open_services(settings(include), AirflowConnections(), AirflowMetrics(), airflow_url())
    _let_logs_be_ours()
    with airflow_outcomes(), opened as services:
        yield services


def _let_logs_be_ours() -> None:
    """Have Airflow's logging leave out what a stage does not want, and order what it shows of ours.

    Loggers that were used already share this one list.
    """
    processors = structlog.get_config()["processors"]
    if drop_quiet not in processors:
        merged = structlog.contextvars.merge_contextvars
        behind = processors.index(merged) + 1 if merged in processors else len(processors)
        processors.insert(behind, in_order)
        processors.insert(0, drop_quiet)
