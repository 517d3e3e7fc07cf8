"""What Airflow registers: the pages, mounted behind its own login, in its navigation and on every DAG run."""

import sys
from typing import TYPE_CHECKING, Any, Final

from airflow.plugins_manager import AirflowPlugin

from sluice.airflow_glue.questions import let_questions_end_with_their_try

if TYPE_CHECKING:
    from fastapi import FastAPI

_API_SERVER: Final = "airflow.api_fastapi.app"
_MOUNT: Final = "sluice"


def pages() -> "FastAPI":
    """Return the pages, with Airflow's users and permissions, its connections, and its names for runs."""
    from sluice.airflow_glue.access import airflow_access
    from sluice.airflow_glue.connections import AirflowConnections
    from sluice.airflow_glue.run_ids import run_id_of
    from sluice.airflow_glue.schedules import schedules
    from sluice.airflow_glue.workplace import settings
    from sluice.web.app import create_app
    from sluice.web.errands import Errands
    from sluice.web.surroundings import Surroundings

    def services() -> Any:
        from sluice.wiring import open_services

        return open_services(settings(), AirflowConnections())

    return create_app(
        Surroundings(
            access=airflow_access(),
            services=services,
            run_id_of=run_id_of,
            later=Errands(services).begin,
            schedules=schedules,
        )
    )


def trigger_checks() -> list[dict[str, Any]]:
    """Return the middleware that refuses forms which make no sense."""
    from sluice.airflow_glue.schedules import is_sync
    from sluice.airflow_glue.trigger_check import TriggerCheck

    return [{"middleware": TriggerCheck, "kwargs": {"is_sync": is_sync}, "name": "Sluice"}]


let_questions_end_with_their_try()


class SluicePlugin(AirflowPlugin):
    """Sluice in Airflow's UI. The pages are built in the API server only: plugins are loaded by every worker as well."""

    name = "sluice"
    fastapi_apps: list[Any] = (
        [{"app": pages(), "url_prefix": f"/{_MOUNT}", "name": "Sluice"}] if _API_SERVER in sys.modules else []
    )
    fastapi_root_middlewares: list[Any] = trigger_checks() if _API_SERVER in sys.modules else []
    external_views: list[Any] = [  # noqa: RUF012 - Airflow's own way
        {"name": "Sluice", "href": f"{_MOUNT}/", "destination": "nav", "url_route": "sluice"},
        {
            "name": "Sluice",
            "href": f"{_MOUNT}/dags/{{DAG_ID}}",
            "destination": "dag",
            "url_route": "sluice-sync",
        },
        {
            "name": "Sluice",
            "href": f"{_MOUNT}/dags/{{DAG_ID}}/dagRuns/{{RUN_ID}}",
            "destination": "dag_run",
            "url_route": "sluice-run",
        },
    ]
