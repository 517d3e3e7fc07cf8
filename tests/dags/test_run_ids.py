"""Run ids: from a DagRun's identity alone, readable, safe, and never shared."""

import re

import pytest

from sluice.airflow_glue.run_ids import run_id_of


def test_a_run_id_is_readable_and_always_the_same() -> None:
    """What a person sees in Airflow is recognised in Sluice."""
    assert run_id_of("sluice_hotels", "scheduled__2026-01-31T00:00:00+00:00") == "scheduled-2026-01-31T00-00-00-00-00-92b1ceff"


@pytest.mark.parametrize("dag_run_id", ["manual__x/../../etc", "ä <b>", "🏨", "x" * 250])
def test_a_run_id_is_safe(dag_run_id: str) -> None:
    """Whatever somebody calls a DagRun, its run id is fit for keys, paths and URLs."""
    assert re.fullmatch(r"[A-Za-z0-9-]{8,130}", run_id_of("sluice_hotels", dag_run_id))


def test_no_two_dag_runs_share_a_run() -> None:
    """DagRuns of different DAGs, or with names that read alike, have different runs."""
    ids = {run_id_of(dag, run) for dag in ("sluice_a", "sluice_b") for run in ("r 1", "r-1", "r_1")}
    assert len(ids) == 6
