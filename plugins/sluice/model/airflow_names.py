"""The names Sluice goes by in Airflow: a sync's DAG, a stage's pool, the tasks that ask, and what their form offers."""

from typing import Final

from sluice.model.lifecycle import Step
from sluice.model.review import Choice

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


def dag_id_of(sync: str) -> str:
    """Return the id of a sync's DAG."""
    return f"sluice_{sync}"


def pool_of(stage: str) -> str:
    """Return the name of the pool that limits how many shards of a stage are fetched at a time."""
    return f"sluice_{stage.replace('-', '_')}"
