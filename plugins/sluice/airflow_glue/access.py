"""Airflow's login and permissions, as the pages ask for them. Not a declared interface of Airflow: nothing else imports it."""

from typing import Annotated, Final

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity, DagDetails
from airflow.api_fastapi.core_api.security import get_user, requires_access_dag, requires_authenticated
from airflow.models.dag import DagModel
from fastapi import Depends, HTTPException, Request

from sluice.model.airflow_names import dag_id_of, sync_of
from sluice.web.access import Access

User = Annotated[BaseUser, Depends(get_user)]

_CHANGES: Final = (requires_access_dag("PUT", DagAccessEntity.RUN), requires_access_dag("POST", DagAccessEntity.RUN))


def airflow_access() -> Access:
    """Return the checks. Airflow protects no plugin's route by itself."""
    return Access(
        authenticated=requires_authenticated(),
        user=user_name,
        user_id=user_id,
        readable_dags=readable_dags,
        may_read_dag=requires_access_dag("GET", DagAccessEntity.RUN),
        may_change_dag=may_change_dag,
        can_change_dag=can_change_dag,
    )


def user_name(user: User) -> str:
    """Return what Airflow calls the user, with the id where that is another: people choose their names."""
    name = user.get_name()
    return name if user.get_id() == name else f"{name} ({user.get_id()})"


def user_id(user: User) -> str:
    """Return by what Airflow knows the user."""
    return str(user.get_id())


def readable_dags(user: User) -> set[str]:
    """Return the ids of the DAGs of syncs whose runs the user may read: to read a DAG alone is less."""
    auth = get_auth_manager()
    ours = [dag for dag in auth.get_authorized_dag_ids(user=user, method="GET") if dag_id_of(sync_of(dag)) == dag]
    teams = DagModel.get_dag_id_to_team_name_mapping(ours)

    def may_read_runs(dag: str) -> bool:
        details = DagDetails(id=dag, team_name=teams.get(dag))
        return auth.is_authorized_dag(method="GET", access_entity=DagAccessEntity.RUN, details=details, user=user)

    return {dag for dag in ours if may_read_runs(dag)}


def may_change_dag(request: Request, user: User) -> None:
    """Demand what Airflow demands of whoever triggers a run and of whoever ends one."""
    for check in _CHANGES:
        check(request, user)


def can_change_dag(request: Request, user: User) -> bool:
    """Return whether the user may."""
    try:
        may_change_dag(request, user)
    except HTTPException:
        return False
    return True
