"""A DagRun in, its task instances' states out: what scheduler, worker and a person do, in this process."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from fastapi.testclient import TestClient

from sluice.model.airflow_names import UPKEEP_DAG

States = dict[str, str]


@dataclass
class DrivenAirflow:
    """An Airflow whose scheduler and worker this process plays; its API is the real one."""

    client: TestClient
    home: Path

    def trigger(self, dag_id: str, **conf: Any) -> str:
        """Trigger a DAG with this form filled in; return the DagRun's id."""
        answer = self.client.post(f"/api/v2/dags/{dag_id}/dagRuns", json={"logical_date": None, "conf": conf})
        assert answer.status_code == 200, answer.text
        return str(answer.json()["dag_run_id"])

    def drive(self, dag_id: str, run_id: str, up_to: str | None = None) -> States:
        """Run what can be run until the DagRun ends, waits or comes to a task; return the states, the DagRun's under ``""``."""
        from airflow.models.dagrun import DagRun
        from airflow.sdk.definitions.dag import _run_task
        from airflow.utils.session import create_session
        from airflow.utils.state import DagRunState, TaskInstanceState

        from sluice.airflow_glue import sync_dag, upkeep_dag

        dag = upkeep_dag() if dag_id == UPKEEP_DAG else sync_dag(dag_id.removeprefix("sluice_"))
        with create_session() as session:
            run = session.query(DagRun).filter_by(dag_id=dag_id, run_id=run_id).one()
            run.dag = serialized(dag_id, session)
            run.state = DagRunState.RUNNING
            session.commit()
            before: States = {}
            while run.state == DagRunState.RUNNING:
                session.expire_all()
                ready, _ = run.update_state(session=session)
                run.schedule_tis(ready, session=session)
                session.commit()
                session.expire_all()
                scheduled = run.get_task_instances(session=session, state=[TaskInstanceState.SCHEDULED])
                due = [instance for instance in scheduled if instance.task_id != up_to]
                for instance in due:
                    _run_task(ti=instance, task=dag.task_dict[instance.task_id])
                states = states_of(run, session)
                if not due and states == before:
                    break
                before = states
            session.expire_all()
            return {"": str(run.state), **states_of(run, session)}

    def clear(self, dag_id: str, run_id: str, task_id: str, map_index: int | None = None, *, downstream: bool = True) -> None:
        """Clear a task, or one of its mapped ones, with all that comes after it unless told otherwise, as a person does."""
        body = {
            "dry_run": False,
            "dag_run_id": run_id,
            "task_ids": [task_id if map_index is None else [task_id, map_index]],
            "include_downstream": downstream,
            "only_failed": False,
            "reset_dag_runs": True,
        }
        answer = self.client.post(f"/api/v2/dags/{dag_id}/clearTaskInstances", json=body)
        assert answer.status_code == 200, answer.text

    def question(self, dag_id: str, run_id: str, task_id: str = "gate") -> dict[str, Any]:
        """Return what a task asks."""
        answer = self.client.get(question_of(dag_id, run_id, task_id))
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def answer(self, dag_id: str, run_id: str, choice: str, task_id: str = "gate", **params: Any) -> None:
        """Answer what a task asks, as a person does in Airflow's form."""
        body = {"chosen_options": [choice], "params_input": params}
        answer = self.client.patch(question_of(dag_id, run_id, task_id), json=body)
        assert answer.status_code == 200, answer.text

    def let_it_expire(self, dag_id: str, run_id: str) -> None:
        """Let the time of the gate be over, and the scheduler notice."""
        from datetime import timedelta

        from airflow.jobs.job import Job
        from airflow.jobs.scheduler_job_runner import SchedulerJobRunner
        from airflow.models.taskinstance import TaskInstance
        from airflow.sdk import timezone
        from airflow.utils.session import create_session

        with create_session() as session:
            instance = session.query(TaskInstance).filter_by(dag_id=dag_id, run_id=run_id, task_id="gate").one()
            assert instance.trigger_timeout is not None
            instance.trigger_timeout = timezone.utcnow() - timedelta(seconds=1)
        SchedulerJobRunner(Job()).check_awaiting_input_timeouts()

    def use_up_tries(self, dag_id: str, run_id: str, task_id: str) -> None:
        """Leave a task no try but the one it is in."""
        from airflow.models.taskinstance import TaskInstance
        from airflow.utils.session import create_session

        with create_session() as session:
            session.query(TaskInstance).filter_by(dag_id=dag_id, run_id=run_id, task_id=task_id).one().max_tries = 0

    def let_it_look_again(
        self, dag_id: str, run_id: str, task_id: str, map_index: int = -1, *, began_ago: timedelta | None = None
    ) -> None:
        """Let the time be over after which a task that waits is called again; and let all its waits have begun so long ago."""
        from airflow.models.taskinstance import TaskInstance
        from airflow.models.taskreschedule import TaskReschedule
        from airflow.sdk import timezone
        from airflow.utils.session import create_session

        with create_session() as session:
            facts = {"dag_id": dag_id, "run_id": run_id, "task_id": task_id, "map_index": map_index}
            instance = session.query(TaskInstance).filter_by(**facts).one()
            waits = session.query(TaskReschedule).filter_by(ti_id=instance.id).order_by(TaskReschedule.id.desc()).all()
            assert waits[0].reschedule_date > timezone.utcnow()
            waits[0].reschedule_date = timezone.utcnow() - timedelta(seconds=1)
            if began_ago is not None:
                waits[-1].start_date = timezone.utcnow() - began_ago

    def looks_again_at(self, dag_id: str, run_id: str, task_id: str, map_index: int = -1) -> datetime:
        """Return when a task that waits is called again."""
        from airflow.models.taskinstance import TaskInstance
        from airflow.models.taskreschedule import TaskReschedule
        from airflow.utils.session import create_session

        with create_session() as session:
            facts = {"dag_id": dag_id, "run_id": run_id, "task_id": task_id, "map_index": map_index}
            instance = session.query(TaskInstance).filter_by(**facts).one()
            waits = session.query(TaskReschedule).filter_by(ti_id=instance.id).order_by(TaskReschedule.id.desc()).first()
            assert waits is not None
            due: datetime = waits.reschedule_date
            return due

    def pause(self, pattern: str, *, paused: bool) -> None:
        """Pause DAGs, or let them run by themselves."""
        answer = self.client.patch("/api/v2/dags", params={"dag_id_pattern": pattern}, json={"is_paused": paused})
        assert answer.status_code == 200, answer.text

    def remember_scheduled_run(self, dag_id: str, start: datetime, end: datetime) -> None:
        """Let the last run that the scheduler began by itself have been that of this interval."""
        from airflow.models.dag import DagModel
        from airflow.utils.session import create_session
        from airflow.utils.state import DagRunState
        from airflow.utils.types import DagRunTriggeredByType, DagRunType

        with create_session() as session:
            dag = serialized(dag_id, session)
            run = dag.create_dagrun(
                run_id=f"scheduled__{start.isoformat()}",
                logical_date=start,
                data_interval=(start, end),
                run_after=end,
                run_type=DagRunType.SCHEDULED,
                triggered_by=DagRunTriggeredByType.TIMETABLE,
                state=DagRunState.SUCCESS,
                session=session,
            )
            session.query(DagModel).filter_by(dag_id=dag_id).one().calculate_dagrun_date_fields(dag, reference_run=run)

    def let_scheduler_look(self) -> None:
        """Let the scheduler begin the runs that are due, and no task yet."""
        from airflow.jobs.job import Job
        from airflow.jobs.scheduler_job_runner import SchedulerJobRunner
        from airflow.utils.session import create_session
        from airflow.utils.sqlalchemy import prohibit_commit

        with create_session() as session, prohibit_commit(session) as guard:
            scheduler = SchedulerJobRunner(Job())
            scheduler._create_dagruns_for_dags(guard, session)
            scheduler._start_queued_dagruns(session)
            guard.commit()

    def names(self, dag_id: str, run_id: str) -> dict[str, list[str]]:
        """Return the names of the mapped tasks, as the UI shows them."""
        answer = self.client.get(f"/api/v2/dags/{dag_id}/dagRuns/{run_id}/taskInstances")
        assert answer.status_code == 200, answer.text
        names: dict[str, list[str]] = {}
        for instance in sorted(answer.json()["task_instances"], key=lambda one: (one["task_id"], one["map_index"])):
            if instance["map_index"] >= 0:
                names.setdefault(instance["task_id"], []).append(instance["rendered_map_index"])
        return names

    def tries(self, dag_id: str, run_id: str, task_id: str, map_index: int = -1) -> int:
        """Return how often a task was tried."""
        answer = self.client.get(f"/api/v2/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}/{map_index}")
        assert answer.status_code == 200, answer.text
        return int(answer.json()["try_number"])

    def asset_events(self, uri: str) -> list[dict[str, Any]]:
        """Return what came with the events of an asset, oldest first."""
        assets = self.client.get("/api/v2/assets", params={"uri_pattern": uri}).json()["assets"]
        query = {"asset_id": assets[0]["id"], "order_by": "timestamp"}
        return [event["extra"] for event in self.client.get("/api/v2/assets/events", params=query).json()["asset_events"]]

    def xcom(self, dag_id: str, run_id: str, task_id: str, key: str = "return_value") -> Any:
        """Return what a task left behind."""
        answer = self.client.get(
            f"/api/v2/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}/xcomEntries/{key}?deserialize=true"
        )
        assert answer.status_code == 200, answer.text
        return answer.json()["value"]


@contextmanager
def driven(home: Path) -> Iterator[DrivenAirflow]:
    """Yield an Airflow that knows the DAGs of its folder."""
    from airflow.api_fastapi.app import create_app, get_auth_manager
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
    from airflow.dag_processing.bundles.manager import DagBundlesManager
    from airflow.dag_processing.dagbag import BundleDagBag, sync_bag_to_db

    DagBundlesManager().sync_bundles_to_db()
    bag = BundleDagBag(dag_folder=home / "dags", bundle_path=home / "dags", bundle_name="dags-folder")
    sync_bag_to_db(bag, "dags-folder", None)
    with TestClient(create_app(), follow_redirects=False) as client:
        client.headers["Authorization"] = (
            f"Bearer {token(get_auth_manager(), SimpleAuthManagerUser(username='ann', role='admin'))}"
        )
        yield DrivenAirflow(client, home)


def token(manager: Any, user: Any) -> str:
    """Return what a user of that role logs in with."""
    return str(manager.generate_jwt(user))


def question_of(dag_id: str, run_id: str, task_id: str = "gate") -> str:
    """Return where a task's question stands in the API."""
    return f"/api/v2/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}/-1/hitlDetails"


def serialized(dag_id: str, session: Any) -> Any:
    """Return a DAG as the scheduler knows it."""
    from airflow.models.serialized_dag import SerializedDagModel

    return SerializedDagModel.get_dag(dag_id, session=session)


def states_of(run: Any, session: Any) -> States:
    """Return the state of each task instance of a DagRun, by name."""
    return {named(instance): str(instance.state) for instance in run.get_task_instances(session=session)}


def named(instance: Any) -> str:
    """Return a task instance's name: the step, and the map index where it has one."""
    step = str(instance.task_id).removeprefix("shards.")
    return step if instance.map_index < 0 else f"{step}[{instance.map_index}]"
