"""Airflow's login and permissions, as the pages ask for them. Not a declared interface of Airflow: nothing else imports it."""

from typing import Annotated

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.core_api.security import get_user, requires_access_dag, requires_authenticated
from fastapi import Depends

from sluice.web.access import Access


def airflow_access() -> Access:
    """Return the checks. Airflow protects no plugin's route by itself."""
    return Access(
        authenticated=requires_authenticated(),
        may_read_dag=requires_access_dag("GET", DagAccessEntity.RUN),
        readable_dags=readable_dags,
    )


def readable_dags(user: Annotated[BaseUser, Depends(get_user)]) -> set[str]:
    """Return the ids of the DAGs that the user may read."""
    return set(get_auth_manager().get_authorized_dag_ids(user=user, method="GET"))
