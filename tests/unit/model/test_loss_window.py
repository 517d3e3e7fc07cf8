"""What a killed worker may take with it, computed."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from sluice.model.loss_window import Writing, loss_windows
from sluice.model.progress import TOLD_EVERY
from sluice.model.stage import StagePolicy
from sluice.model.state_class import StateClass

SECONDS = st.integers(min_value=0, max_value=10_000).map(lambda number: timedelta(seconds=number))
WRITING = st.builds(Writing, retries=st.integers(min_value=0, max_value=20), timeout=SECONDS)


@given(SECONDS, WRITING, WRITING, WRITING)
def test_the_formula(age: timedelta, control: Writing, task: Writing, session: Writing) -> None:
    """Batch interval + (retries + 1) x time-out + shutdown; nothing of control state, however long its writes take."""
    policy = StagePolicy.model_validate({"chunk_age": f"{int(age.total_seconds())}s"})
    writing = {StateClass.CONTROL: control, StateClass.TASK: task, StateClass.SESSION: session}
    spans = {window.state_class: window.span for window in loss_windows(policy, writing)}
    assert spans == {
        StateClass.CONTROL: timedelta(0),
        StateClass.TASK: age + (task.retries + 1) * task.timeout,
        StateClass.SESSION: TOLD_EVERY + (session.retries + 1) * session.timeout,
    }
