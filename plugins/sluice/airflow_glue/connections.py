"""Airflow connections in, `ConnectionInfo` out: in a task, in the API server and in a plain process alike."""

import json
import sys
from typing import Any, Final

from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowNotFoundException

from sluice.errors import ConnectionInvalid
from sluice.ports import ConnectionInfo

_TASK_RUNNER: Final = "airflow.sdk.execution_time.task_runner"


class AirflowConnections:
    """The connections of this Airflow, wherever they are defined."""

    def get(self, conn_id: str) -> ConnectionInfo:
        """Return the connection; raise `ConnectionInvalid`, saying how to define it, if there is none."""
        try:
            connection = _look_up(conn_id)
        except AirflowNotFoundException:
            raise ConnectionInvalid(
                f"there is no Airflow connection {conn_id!r}: define it under Admin > Connections, with "
                f"`airflow connections add {conn_id} …`, or as environment variable AIRFLOW_CONN_{conn_id.upper()}",
                conn_id=conn_id,
            ) from None
        return ConnectionInfo(
            conn_id=conn_id,
            conn_type=connection.conn_type or "",
            host=connection.host or None,
            port=connection.port,
            login=connection.login or None,
            password=connection.password or None,
            schema=connection.schema or None,
            extra=_extra(connection),
        )


def _look_up(conn_id: str) -> Any:
    """Ask the secrets backends; in a plain process, where those leave it out, the metadata database as well."""
    try:
        return BaseHook.get_connection(conn_id)
    except AirflowNotFoundException:
        if hasattr(sys.modules.get(_TASK_RUNNER), "SUPERVISOR_COMMS"):
            raise
        from airflow.models.connection import Connection

        return Connection.get_connection_from_secrets(conn_id)


def _extra(connection: Any) -> dict[str, Any]:
    """Return the extra, decoded: by ourselves first, since Airflow takes what is no JSON for an empty one."""
    try:
        extra = json.loads(connection.extra or "{}")
    except ValueError:
        extra = None
    if not isinstance(extra, dict):
        raise ConnectionInvalid(f"the extra of Airflow connection {connection.conn_id!r} is no JSON object")
    return dict(connection.extra_dejson)
