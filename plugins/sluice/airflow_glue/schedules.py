"""What Airflow knows of the DAGs of syncs: nothing in, their schedules by DAG id out. Asked in the API server alone."""

from typing import Final

from airflow.models.dag import DagModel, DagTag
from airflow.models.serialized_dag import SerializedDagModel
from airflow.utils.session import create_session
from sqlalchemy import select

from sluice.model.airflow_names import TAG, dag_id_of
from sluice.model.schedule import Schedule

_UTC: Final = "UTC"


def schedules() -> dict[str, Schedule]:
    """Return when each DAG that is there runs by itself; what Airflow shows of its timetable is a cron expression, or none."""
    columns = select(DagModel.dag_id, DagModel.timetable_summary, DagModel.is_paused)
    with create_session() as session:
        found = session.execute(columns.where(DagModel.dag_id.startswith(dag_id_of(""), autoescape=True))).all()
        scheduled = [dag_id for dag_id, summary, _ in found if _cron(summary) is not None]
        zones = {
            one.dag_id: _zone(one) for one in SerializedDagModel.get_latest_serialized_dags(dag_ids=scheduled, session=session)
        }
    return {
        dag_id: Schedule(cron=_cron(summary), zone=zones.get(dag_id, _UTC), is_paused=is_paused)
        for dag_id, summary, is_paused in found
    }


def is_sync(dag_id: str) -> bool:
    """Whether a DAG is that of a sync, and not of somebody who calls theirs alike."""
    if not dag_id.startswith(dag_id_of("")):
        return False
    with create_session() as session:
        return session.scalar(select(DagTag.name).where(DagTag.dag_id == dag_id, DagTag.name == TAG)) is not None


def _cron(summary: str | None) -> str | None:
    is_cron = summary is not None and (summary.startswith("@") or len(summary.split()) in (5, 6))
    return summary if is_cron else None


def _zone(dag: SerializedDagModel) -> str:
    """Return the time zone of a DAG's timetable, which Airflow's own row of the DAG does not tell."""
    data = dag.data or {}
    zone = data.get("dag", {}).get("timetable", {}).get("__var", {}).get("timezone", _UTC)
    return zone if isinstance(zone, str) else _UTC
