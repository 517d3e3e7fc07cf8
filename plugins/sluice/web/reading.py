"""A DAG and a name in, what is of that DAG out: permission for one DAG shows nothing of another's."""

from collections.abc import Mapping
from typing import Any

from sluice.errors import NotFound
from sluice.model.airflow_names import dag_id_of, sync_of
from sluice.model.base import RunId
from sluice.model.lifecycle import WAITING_VERDICTS
from sluice.model.review import Review
from sluice.model.run import Run
from sluice.model.spec import SyncSpec
from sluice.packet.words import counts_of
from sluice.ports import Services


def sync_named(dag_id: str) -> str:
    """Return the sync that a DAG is of; raise `NotFound` for a DAG that is none of ours."""
    sync = sync_of(dag_id)
    if dag_id_of(sync) != dag_id:
        raise NotFound(f"{dag_id} is no DAG of Sluice")
    return sync


def spec_of(services: Services, dag_id: str) -> SyncSpec:
    """Return the spec of the DAG's sync as it stands now; raise as `sync_named` does."""
    return services.spec(sync_named(dag_id))


def run_of(services: Services, dag_id: str, run_id: RunId) -> Run:
    """Return the run, if it belongs to the DAG that the user was found to be allowed to read."""
    run = services.runs.get(run_id)
    if dag_id_of(run.sync) != dag_id:
        raise NotFound(f"there is no run {run_id} of {dag_id}")
    return run


def review_facts(review: Review | None) -> Mapping[str, Any]:
    """Return what every page that shows a review's figures shows of it."""
    return {
        "counts": [] if review is None else counts_of(review.figures),
        "waits": review is not None and review.verdict in WAITING_VERDICTS,
    }
