"""The only package that imports Airflow; a DAG file needs nothing but `sync_dag` or `upkeep_dag` from it."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow.sdk import DAG

__all__ = ["sync_dag", "upkeep_dag"]


def sync_dag(name: str, include: Path | None = None) -> "DAG":
    """Return the DAG of the sync declared in `include/syncs/<name>.yaml`.

    Without `include`: `SLUICE_INCLUDE`, or the folder `include` beside Airflow's dags folder. Whoever needs a connection
    and nothing else imports this package without the DAG machinery, hence the import in here.
    """
    from sluice.airflow_glue.dag_factory import sync_dag as build

    return build(name, include)


def upkeep_dag(include: Path | None = None) -> "DAG":
    """Return the DAG that removes daily what has outlived its time; `include` is as for a sync."""
    from sluice.airflow_glue.upkeep import upkeep_dag as build

    return build(include)
