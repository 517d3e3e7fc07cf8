"""Connections of the command line: read exactly as Airflow reads them, and told how to define where they are missing."""
# ruff: noqa: E501 - tables of cases read better with one on each line

import json
import logging
import warnings
from typing import Any

import pytest
import structlog

from sluice.cli.connections import CliConnections, parse_connection
from sluice.errors import ConnectionInvalid
from sluice.ports import ConnectionInfo, Connections

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from airflow.sdk import Connection

URIS = [
    "postgres://user:secret@db.example:5432/shop",
    "postgresql://user@db.example/shop",
    "postgres://u%40x:p%3Aw%2F%40@Db.Example:5432/my%2Fschema",
    "postgres://@/shop",
    "postgres://:5433",
    "postgres://user:@host",
    "postgres://:secret@host",
    "postgres://%2Fvar%2FRun%2Fpostgresql/shop",
    "postgres://user:pw@%2Fvar%2FRun%2Fpg:5432/shop?sslmode=require",
    "postgres://[::1]:5432/shop",
    "http://supplier.example",
    "http://supplier.example:8080/https",
    "http://https://supplier.example",
    "http://https://supplier.example:8443/?timeout=5",
    "https://supplier.example/",
    "aws://key:s%2Fecret@/?endpoint_url=http%3A%2F%2F127.0.0.1%3A8333&region_name=eu-west-1&bucket=b",
    "aws://?__extra__=%7B%22bucket%22%3A+%22b%22%2C+%22n%22%3A+1%7D",
    "google-cloud-platform://?project=x",
    "my-type://host?empty=&a=1&a=2",
    "http://host/a/b?x=%2520y",
    "://host",
    "host",
    "generic://host:65535/UPPER?Q=V",
    " postgres://host/with-spaces-around ",
]

JSONS: list[dict[str, Any]] = [
    {"conn_type": "postgresql", "host": "db", "port": "5432", "login": "u", "password": "p@:/", "schema": "s"},
    {"conn_type": "aws", "login": "k", "password": "s", "extra": {"bucket": "b", "n": 1, "deep": {"a": [1]}}},
    {"conn_type": "my-type", "extra": '{"a": "b"}', "port": 0},
    {"conn_type": "http", "host": "https://x", "description": "said", "port": None, "extra": None},
    {"host": "x", "extra": ""},
    {},
]


def as_airflow(value: str) -> ConnectionInfo:
    """Read a connection with Airflow's own code."""
    value = value.strip()
    read = Connection.from_json(value, conn_id="c") if value.startswith("{") else Connection.from_uri(value, conn_id="c")
    return ConnectionInfo(
        conn_id="c",
        conn_type=read.conn_type or "",
        host=read.host or None,
        port=read.port,
        login=read.login or None,
        password=read.password or None,
        schema=read.schema or None,
        extra=read.extra_dejson,
    )


@pytest.mark.parametrize("value", URIS + [json.dumps(fields) for fields in JSONS])
def test_a_connection_is_read_as_airflow_reads_it(value: str) -> None:
    """Every part of a URI or JSON comes out as Airflow's own code has it."""
    info = CliConnections({"AIRFLOW_CONN_C": value}, no_airflow).get("c")
    assert info == as_airflow(value)


UNREADABLE = {
    "three schemes": ("a://b://c://d:topsecret@e", "it is no URI of the form type://login:password@host:port/schema"),
    "a login before the protocol": ("http://topsecret:x@https://host", None),
    "port": ("http://u:topsecret@host:port", "its port is no whole number up to 65535"),
    "port too large": ("http://u:topsecret@host:70000", "its port is no whole number up to 65535"),
    "JSON": ('{"password": "topsecret", ', "its JSON is broken at character 26"),
    "JSON port": ('{"password": "topsecret", "port": "x"}', "its port is no whole number"),
    "JSON key": ('{"password": "topsecret", "hots": "x"}', "unknown keys hots; known: conn_type, description, extra, host, login, password, port, schema"),
    "extra that is no JSON": ('{"extra": "topsecret"}', "its JSON is broken at character 0"),
    "extra that is a list": ('{"extra": ["topsecret"]}', "its extra is no JSON object"),
}  # fmt: skip


@pytest.mark.parametrize(("value", "reason"), UNREADABLE.values(), ids=UNREADABLE.keys())
def test_what_cannot_be_read_is_named_without_its_secrets(value: str, reason: str | None) -> None:
    """A broken connection is told by the name of its variable; its value, which holds secrets, is not repeated."""
    with pytest.raises(ConnectionInvalid) as caught:
        parse_connection("supplier", value)
    assert caught.value.message.startswith("AIRFLOW_CONN_SUPPLIER cannot be read: ")
    assert "topsecret" not in caught.value.message
    if reason is not None:
        assert caught.value.message.endswith(reason)


class CountingAirflow:
    """An Airflow that knows one connection, and counts how often it was opened."""

    def __init__(self) -> None:
        self.opened = 0

    def open(self) -> Connections:
        """Open it."""
        self.opened += 1
        return self

    def get(self, conn_id: str) -> ConnectionInfo:
        """Know `known`."""
        if conn_id != "known":
            raise ConnectionInvalid(f"no {conn_id}")
        return parse_connection(conn_id, "http://from-airflow")


def test_airflow_is_asked_only_for_what_the_environment_lacks() -> None:
    """Opening Airflow takes seconds, so it is opened when needed, and once."""
    airflow = CountingAirflow()
    connections = CliConnections({"AIRFLOW_CONN_HERE": "http://here", "AIRFLOW_CONN_EMPTY": " "}, airflow.open)
    assert connections.get("here").host == "here"
    assert airflow.opened == 0
    assert connections.get("known").host == "from-airflow"
    with pytest.raises(ConnectionInvalid, match=r"no connection 'empty', neither in .*`sluice up`.*export AIRFLOW_CONN_EMPTY="):
        connections.get("empty")
    assert airflow.opened == 1


def no_airflow() -> Connections:
    """Be an Airflow that cannot even be imported."""
    raise ModuleNotFoundError("No module named 'airflow'")


def test_an_airflow_that_cannot_be_asked_is_told() -> None:
    """Whatever keeps Airflow from answering, the person learns how to define the connection without it."""
    with pytest.raises(ConnectionInvalid, match=r"Airflow could not be asked \(ModuleNotFoundError\): .*AIRFLOW_CONN_X="):
        CliConnections({}, no_airflow).get("x")


def test_airflow_is_asked_aloud_and_leaves_the_logs_alone() -> None:
    """The person learns what takes seconds, and whatever Airflow makes of the logs, ours are as they were."""
    told: list[str] = []

    def airflow() -> Connections:
        assert told == ["connection known is not in the environment: asking Airflow for it …"]
        structlog.configure(processors=[])
        logging.getLogger().addHandler(handler)
        return CountingAirflow()

    handler = logging.NullHandler()
    before = structlog.get_config()
    assert CliConnections({}, airflow, told.append).get("known").host == "from-airflow"
    assert structlog.get_config() == before
    assert handler not in logging.getLogger().handlers
