"""The order of the steps, stated once; the DAG factory and the inline runner both read it."""

from dataclasses import dataclass
from typing import Final, Literal

from sluice.model.lifecycle import Step


@dataclass(frozen=True)
class PipelineStep:
    """One step, how often it happens in a run, and whether it happens whatever became of the steps before it."""

    step: Step
    grain: Literal["run", "shard"]
    always: bool = False


PIPELINE: Final = (
    PipelineStep(Step.ADMIT, "run"),
    PipelineStep(Step.SHARD, "run"),
    PipelineStep(Step.FETCH, "shard"),
    PipelineStep(Step.TRANSFORM, "shard"),
    PipelineStep(Step.REVIEW, "run"),
    PipelineStep(Step.GATE, "run"),
    PipelineStep(Step.PUBLISH, "run"),
    PipelineStep(Step.SETTLE, "run", always=True),
)
