"""The table of metrics: closed, and the one the docs show."""

import importlib.util
from pathlib import Path

import pytest

from sluice.model import metric
from sluice.model.metric import METRICS, STAGES, Metric, MetricKind

DOCS = Path(__file__).parents[3] / "docs"


def test_all_labels_are_from_closed_lists() -> None:
    """But for the stage, which is from the project's own; and each metric stands in the table, once."""
    open_labels = {label for one in METRICS for label, values in one.labels.items() if values == STAGES}
    declared = [value for value in vars(metric).values() if isinstance(value, Metric)]
    assert open_labels == {"stage"}
    assert sorted(one.name for one in declared) == sorted({one.name for one in METRICS})


@pytest.mark.parametrize(
    ("kind", "labels", "misuse"),
    [
        (MetricKind.COUNT, {"table": "run", "branch": "continue"}, None),
        (MetricKind.GAUGE, {"table": "run", "branch": "continue"}, "state_read is a count, no gauge"),
        (MetricKind.COUNT, {"table": "run"}, "state_read has the labels ['branch', 'table'], not ['table']"),
        (
            MetricKind.COUNT,
            {"table": "run", "branch": "h1"},
            "state_read: branch is one of ['continue', 'migrate', 'rebuild', 'refuse'], not 'h1'",
        ),
    ],
)
def test_what_the_table_does_not_declare_is_refused(kind: MetricKind, labels: dict[str, str], misuse: str | None) -> None:
    """So that the fake finds whoever makes a label of what a supplier says."""
    assert metric.STATE_READ.misuse(kind, labels) == misuse


def test_the_page_is_up_to_date() -> None:
    """`python docs/list_metrics.py` would change nothing."""
    spec = importlib.util.spec_from_file_location("list_metrics", DOCS / "list_metrics.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (DOCS / "metrics.md").read_text(encoding="utf-8") == module.page()
