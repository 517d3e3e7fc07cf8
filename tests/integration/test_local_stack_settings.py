"""`airflow_settings.yaml` is read as the Astro CLI reads it, and each mistake in it is told with its place."""

import json
from pathlib import Path

import pytest

from sluice.cli.connections import parse_connection
from sluice.cli.local.services import as_variable, environment_text, stage_pools
from sluice.cli.local.settings_file import Pool, read_settings
from sluice.errors import SpecInvalid
from sluice.ports import ConnectionInfo
from tests.support.servers import PROJECT

WHOLE = """
airflow:
  connections:
    - conn_id: sluice_target
      conn_type: postgres
      conn_host: db.example.org
      conn_port: 5433
      conn_login: me
      conn_password: 0123
      conn_schema: warehouse
      conn_extra: {sslmode: require}
    - conn_id: by_uri
      conn_uri: http://api.example.org:8080
    - conn_id:
      conn_type:
  pools:
    - {pool_name: mine, pool_slot: 3, pool_description: of my own}
    - {pool_name: without_slots, pool_slot: 0}
  variables:
    - {variable_name: depth, variable_value: 007}
"""


def write(folder: Path, text: str) -> Path:
    (folder / "airflow_settings.yaml").write_text(text)
    return folder


def test_connections_pools_and_variables_are_read(tmp_path: Path) -> None:
    """Text keeps its digits, entries without a name and pools without slots are left out."""
    settings = read_settings(write(tmp_path, WHOLE))
    assert set(settings.connections) == {"sluice_target", "by_uri"}
    assert parse_connection("sluice_target", settings.connections["sluice_target"]) == ConnectionInfo(
        "sluice_target", "postgres", "db.example.org", 5433, "me", "0123", "warehouse", {"sslmode": "require"}
    )
    assert settings.connections["by_uri"] == "http://api.example.org:8080"
    assert settings.pools == {"mine": Pool(3, "of my own")}
    assert settings.variables == {"depth": "007"}


def test_no_file_and_an_empty_file_say_nothing(tmp_path: Path) -> None:
    """A project without settings has none."""
    assert read_settings(tmp_path) == read_settings(write(tmp_path, "airflow:\n"))


def test_the_project_s_own_file_is_right() -> None:
    """The file that comes with the project can be read, and defines nothing."""
    assert read_settings(PROJECT).connections == {}


def test_every_mistake_is_told_with_its_line_and_key(tmp_path: Path) -> None:
    """An unknown key, a wrong type, a missing type and a repeated name are all told at once."""
    text = """
airflow:
  connections:
    - conn_id: one
      conn_hots: localhost
      conn_type: postgres
    - conn_id: two
      conn_type: http
      conn_port: eighty
  pools:
    - pool_name: mine
      pool_slot: -1
"""
    with pytest.raises(SpecInvalid) as caught:
        read_settings(write(tmp_path, text))
    problems = caught.value.problems
    assert [problem.split(": ")[0] for problem in problems] == [
        "airflow_settings.yaml:5",
        "airflow_settings.yaml:9",
        "airflow_settings.yaml:12",
    ]
    assert "airflow.connections[0].conn_hots" in problems[0]
    assert "conn_host" in problems[0]


def test_names_stand_once_and_connections_have_a_type(tmp_path: Path) -> None:
    """What is wrong with an entry as a whole is told by its line too."""
    text = """
airflow:
  connections:
    - {conn_id: one, conn_type: http}
    - {conn_id: one, conn_type: http}
    - {conn_id: two, conn_host: localhost}
"""
    with pytest.raises(SpecInvalid) as caught:
        read_settings(write(tmp_path, text))
    assert caught.value.problems == [
        "airflow_settings.yaml:5: airflow.connections[1].conn_id: 'one' stands here already",
        "airflow_settings.yaml:6: airflow.connections[2].conn_type: 'two' needs conn_type or conn_uri",
    ]


def test_broken_yaml_is_told_by_line(tmp_path: Path) -> None:
    """A file that is no YAML is a mistake like any other."""
    with pytest.raises(SpecInvalid, match=r"airflow_settings\.yaml:\d+: "):
        read_settings(write(tmp_path, "airflow: [\n"))


def test_a_connection_survives_its_variable() -> None:
    """What the stack writes into the environment, the command reads back unchanged, line by line."""
    info = ConnectionInfo("x", "aws", None, None, "key=1", "p\"'%40", None, {"bucket": "b", "endpoint_url": "http://h:1"})
    line = environment_text({"AIRFLOW_CONN_X": as_variable(info)}).splitlines()[1]
    assert parse_connection("x", line.partition("=")[2]) == info


def test_stages_have_pools_though_one_is_broken(tmp_path: Path) -> None:
    """Each stage that can be read gets a pool with the slots of its policy."""
    (tmp_path / "stages.yaml").write_text(
        json.dumps({"stages": {"hotel-content": {"max_parallel_shards": 7}, "broken": {"max_parallel_shards": "many"}}})
    )
    assert {name: pool.slots for name, pool in stage_pools(tmp_path).items()} == {"sluice_hotel_content": 7}
