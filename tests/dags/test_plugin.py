"""What Airflow finds in the plugins folder, and what it makes of it."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.servers import PROJECT

PLUGINS = PROJECT / "plugins"

LOADS = """
import sys
from airflow import plugins_manager
plugins, errors = plugins_manager._get_plugins()
assert not errors, errors
sluice = [plugin for plugin in plugins if plugin.name == "sluice"]
print(len(sluice), len(sluice[0].fastapi_apps), len(sluice[0].external_views), "fastapi" in sys.modules)
"""


@pytest.mark.parametrize("syntax", ["glob", "regexp"])
def test_airflow_scans_exactly_one_file(syntax: str) -> None:
    """Airflow executes every file it finds below plugins/ under its bare name: it must find the registration alone."""
    from airflow._shared.module_loading import find_path_from_directory

    found = [Path(file) for file in find_path_from_directory(PLUGINS, ".airflowignore", syntax)]
    assert [file.name for file in found if file.suffix == ".py"] == ["sluice_plugin.py"]


def test_no_file_is_named_like_a_module_of_the_standard_library() -> None:
    """Should the fence ever fall, no file of ours may take the place of one of Python's own."""
    names = {file.stem for file in PLUGINS.rglob("*.py")} | {file.name for file in PLUGINS.rglob("*") if file.is_dir()}
    assert names.isdisjoint(sys.stdlib_module_names)


def test_the_plugin_loads_without_the_pages_outside_the_api_server(airflow_home: Path) -> None:
    """Every worker loads plugins; only the API server builds the pages."""
    done = subprocess.run([sys.executable, "-c", LOADS], check=True, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "1 0 3 False"


ENDS_QUESTIONS = """
import airflow.api_fastapi.app
from airflow import plugins_manager
from airflow.models.hitl_history import HITLDetailHistory
from sqlalchemy import event
plugins_manager._get_plugins()
from sluice.airflow_glue import questions
print(event.contains(HITLDetailHistory, "after_insert", questions._remove_live))
"""


def test_in_the_api_server_questions_end_with_their_try(airflow_home: Path) -> None:
    """There a try is archived, whose question would stand on before whoever is asked next."""
    done = subprocess.run([sys.executable, "-c", ENDS_QUESTIONS], check=True, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "True"
