"""The names Sluice goes by in Airflow: a sync's DAG, a stage's pool, the gate, and what its form offers."""

from typing import Final

from sluice.model.lifecycle import Step
from sluice.model.review import Choice

GATE_TASK: Final = Step.GATE.value
"""The task that asks a person."""

ANSWERS: Final[dict[Choice, str]] = {
    Choice.APPROVE: "Approve",
    Choice.APPROVE_WITHOUT_DELETES: "Approve without deletions",
    Choice.REJECT: "Reject",
}
"""What a person may answer, and the labels of the form."""

COMMENT: Final = "comment"
"""The field of the form for a person's words."""


def dag_id_of(sync: str) -> str:
    """Return the id of a sync's DAG."""
    return f"sluice_{sync}"


def pool_of(stage: str) -> str:
    """Return the name of the pool that limits how many shards of a stage are fetched at a time."""
    return f"sluice_{stage.replace('-', '_')}"
