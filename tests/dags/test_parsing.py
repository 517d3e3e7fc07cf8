"""DAG files as Airflow parses them: light, whole, and each by itself."""

import subprocess
import sys
from pathlib import Path

import pytest

from sluice.model.airflow_names import UPKEEP_DAG
from tests.support.servers import PROJECT

HEAVY = {
    "pandas",
    "great_expectations",
    "boto3",
    "botocore",
    "pyarrow",
    "psycopg",
    "fastapi",
    "urllib3",
    "httpx2",
    "numpy",
    "alembic",
}

PROBE = """
import sys, time
import airflow.sdk
before, started = set(sys.modules), time.process_time()
sys.path.insert(0, sys.argv[1])
import hotels, sluice_upkeep
print(time.process_time() - started, *{name.partition(".")[0] for name in set(sys.modules) - before})
"""


def test_parsing_is_light(airflow_home: Path) -> None:
    """A DAG file loads none of the heavy libraries beyond what Airflow's SDK itself does, and little else."""
    probe = [sys.executable, "-c", PROBE, PROJECT / "dags"]
    answer = subprocess.run(probe, check=True, capture_output=True, text=True).stdout.splitlines()[-1]
    seconds, *modules = answer.split()
    assert HEAVY.isdisjoint(modules)
    assert float(seconds) < 2


def test_the_project_s_dags_parse(airflow_home: Path) -> None:
    """Every DAG file of the project gives the DAG of a sync, but for the one of upkeep, without any import error."""
    dags, errors = parsed(PROJECT / "dags")
    assert errors == {}
    syncs = {path.stem for path in (PROJECT / "dags").glob("*.py")} - {"sluice_upkeep"}
    assert dags == {UPKEEP_DAG} | {f"sluice_{sync}" for sync in syncs}


def test_a_bad_spec_hides_nothing_else(airflow_home: Path, tmp_path: Path) -> None:
    """A bad spec is one import error with file, line, key and the allowed values; the other syncs' DAGs load."""
    folder = airflow_home / "include" / "syncs"
    bad = folder / "bad.yaml"
    text = (folder / "hotels.yaml").read_text().replace("sync: hotels ", "sync: bad ")
    bad.write_text(text.replace("deletes: soft", "deletes: sofd"))
    line = 1 + next(n for n, row in enumerate(bad.read_text().splitlines()) if "sofd" in row)
    for name in ("hotels", "bad"):
        (tmp_path / f"{name}.py").write_text((PROJECT / "dags" / "hotels.py").read_text().replace("hotels", name))
    try:
        dags, errors = parsed(tmp_path)
    finally:
        bad.unlink()
    assert dags == {"sluice_hotels"}
    assert set(errors) == {"bad.py"}
    assert f"include/syncs/bad.yaml:{line}: target.deletes" in errors["bad.py"]
    assert all(value in errors["bad.py"] for value in ("soft", "hard", "ignore"))


@pytest.mark.parametrize("name", ["missing", "../secrets"])
def test_a_sync_without_a_spec_is_refused(airflow_home: Path, tmp_path: Path, name: str) -> None:
    """A DAG file that names no sync is an import error that says which syncs there are."""
    (tmp_path / "dag.py").write_text((PROJECT / "dags" / "hotels.py").read_text().replace('"hotels"', f'"{name}"'))
    dags, errors = parsed(tmp_path)
    assert dags == set()
    assert name in errors["dag.py"]
    assert "hotels" in errors["dag.py"]


def parsed(folder: Path) -> tuple[set[str], dict[str, str]]:
    """Return the ids of the DAGs in a folder, and the import errors by file, as Airflow finds them."""
    from airflow.dag_processing.dagbag import DagBag

    bag = DagBag(folder, bundle_path=folder)
    return set(bag.dags), {Path(file).name: error for file, error in bag.import_errors.items()}
