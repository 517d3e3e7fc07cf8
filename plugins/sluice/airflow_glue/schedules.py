"""What Airflow knows of the DAGs of syncs: nothing in, their schedules by DAG id out. Asked in the API server alone."""

from airflow.models.dag import DagModel
from airflow.utils.session import create_session
from sqlalchemy import select

from sluice.model.airflow_names import dag_id_of
from sluice.model.schedule import Schedule


def schedules() -> dict[str, Schedule]:
    """Return when each DAG that is there runs by itself; what Airflow shows of its timetable is a cron expression, or none."""
    columns = select(DagModel.dag_id, DagModel.timetable_summary, DagModel.is_paused)
    with create_session() as session:
        found = session.execute(columns.where(DagModel.dag_id.startswith(dag_id_of(""), autoescape=True))).all()
    return {dag_id: Schedule(cron=_cron(summary), is_paused=is_paused) for dag_id, summary, is_paused in found}


def _cron(summary: str | None) -> str | None:
    is_cron = summary is not None and (summary.startswith("@") or len(summary.split()) in (5, 6))
    return summary if is_cron else None
