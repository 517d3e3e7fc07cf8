"""Connections as every process finds them: in the environment, or in Airflow's metadata database."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sluice.airflow_glue.connections import AirflowConnections
from sluice.errors import ConnectionInvalid
from sluice.ports import ConnectionInfo

WHOLE = ConnectionInfo("some_where", "http", "example.org", 8080, "ann", "p:w/d@x", "https", {"headers": {"X-Key": "1"}})


def test_a_connection_of_the_environment(airflow_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """JSON in AIRFLOW_CONN_… arrives field by field."""
    extra = {"headers": {"X-Key": "1"}}
    fields = {"conn_type": "http", "host": "example.org", "port": 8080, "login": "ann", "password": "p:w/d@x"}
    monkeypatch.setenv("AIRFLOW_CONN_SOME_WHERE", json.dumps({**fields, "schema": "https", "extra": extra}))
    assert AirflowConnections().get("some_where") == WHOLE


def test_a_connection_as_uri(airflow_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A URI in AIRFLOW_CONN_… means the same; what it leaves out is absent, not empty."""
    monkeypatch.setenv("AIRFLOW_CONN_SOME_WHERE", "postgres://example.org:5433/rows")
    assert AirflowConnections().get("some_where") == ConnectionInfo(
        "some_where", "postgres", "example.org", 5433, None, None, "rows", {}
    )


def test_a_connection_of_the_metadata_database(airflow_home: Path) -> None:
    """What somebody defined in Airflow's UI is found by a plain process as well."""
    with in_the_database():
        assert AirflowConnections().get("some_where") == WHOLE


def test_the_api_server_finds_it_there_too(airflow_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pages run in a process that Airflow treats as a server."""
    monkeypatch.setenv("_AIRFLOW_PROCESS_CONTEXT", "server")
    with in_the_database():
        assert AirflowConnections().get("some_where") == WHOLE


def test_a_missing_connection_says_how_to_define_it(airflow_home: Path) -> None:
    """The error names the connection and the places to define it."""
    with pytest.raises(ConnectionInvalid, match=r"'nowhere'.*AIRFLOW_CONN_NOWHERE"):
        AirflowConnections().get("nowhere")


@pytest.mark.parametrize("extra", ["no json", '"text"', "[1]"])
def test_an_extra_that_is_no_object_is_refused(airflow_home: Path, monkeypatch: pytest.MonkeyPatch, extra: str) -> None:
    """A slip in the extra is not taken for an empty one."""
    monkeypatch.setenv("AIRFLOW_CONN_SOME_WHERE", json.dumps({"conn_type": "http", "extra": extra}))
    with pytest.raises(ConnectionInvalid, match="some_where"):
        AirflowConnections().get("some_where")


@contextmanager
def in_the_database() -> Iterator[None]:
    """Define the connection as Airflow's UI does, for a while."""
    from airflow.models.connection import Connection
    from airflow.utils.session import create_session

    with create_session() as session:
        connection = Connection(
            conn_id=WHOLE.conn_id,
            conn_type=WHOLE.conn_type,
            host=WHOLE.host,
            port=WHOLE.port,
            login=WHOLE.login,
            password=WHOLE.password,
            schema=WHOLE.schema,
            extra=json.dumps(dict(WHOLE.extra)),
        )
        session.add(connection)
    try:
        yield
    finally:
        with create_session() as session:
            session.delete(session.merge(connection))
