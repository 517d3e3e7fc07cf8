"""The names Sluice goes by in Airflow: a sync's DAG, a stage's pool, the tasks that ask, and what their form offers."""

from typing import Final
from urllib.parse import quote

from sluice.model.lifecycle import Step
from sluice.model.review import Choice, Review
from sluice.model.run import Origin, Run

GATE_TASK: Final = Step.GATE.value
"""The task that asks a person."""

PUBLISH_TASK: Final = Step.PUBLISH.value
"""The task that asks once more, should what was approved not be what it would publish."""

ANSWERS: Final[dict[Choice, str]] = {
    Choice.APPROVE: "Approve",
    Choice.APPROVE_WITHOUT_DELETES: "Approve without deletions",
    Choice.REJECT: "Reject",
}
"""What a person may answer, and the labels of the form."""

COMMENT: Final = "comment"
"""The field of the form for a person's words."""

DELETES_AT_MOST: Final = "deletes_at_most"
"""The field of the form for how many deletions are let through at most."""


PAGES: Final = "sluice"
"""Where Airflow has our pages, below its own address."""

REVIEW: Final = "review_id"
"""The field of the form, which nobody fills in, for the review that the form is about."""


UPKEEP_DAG: Final = "sluice-upkeep"
"""The DAG that removes what has outlived its time; no sync's DAG can have that name."""


TAG: Final = "sluice"
"""The tag of all DAGs of ours."""


def dag_id_of(sync: str) -> str:
    """Return the id of a sync's DAG."""
    return f"sluice_{sync}"


def sync_of(dag_id: str) -> str:
    """Return the name of the sync that a DAG would be of."""
    return dag_id.removeprefix(dag_id_of(""))


def pool_of(stage: str) -> str:
    """Return the name of the pool that limits how many shards of a stage are fetched at a time."""
    return f"sluice_{stage.replace('-', '_')}"


def dag_run_url(airflow: str | None, origin: Origin) -> str | None:
    """Return where people see a DagRun; None without an address of Airflow, and for a run of no DagRun."""
    if airflow is None or origin.dag_id is None or origin.dag_run_id is None:
        return None
    return f"{airflow}/dags/{quote(origin.dag_id, safe='')}/runs/{quote(origin.dag_run_id, safe='')}"


def run_url(airflow: str, run: Run) -> str:
    """Return where people see a run, with what Airflow does not know of it."""
    return f"{airflow}/{PAGES}/dags/{quote(dag_id_of(run.sync), safe='')}/runs/{quote(run.id, safe='')}"


def review_url(airflow: str, run: Run, review: Review) -> str:
    """Return where people see a review; `/packet` behind it is its packet."""
    return f"{airflow}/{PAGES}/dags/{quote(dag_id_of(run.sync), safe='')}/reviews/{quote(review.id, safe='')}"
