"""`python docs/list_metrics.py` writes docs/metrics.md from the table of metrics, so that it cannot drift from the code."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from sluice.model.metric import METRICS, STAGES, Metric

PAGE: Final = Path(__file__).with_name("metrics.md")

_HEAD: Final = """\
# Metrics

Tasks tell Airflow's own metrics how they are doing: StatsD, Datadog or OpenTelemetry, whichever `[metrics]` of your Airflow is
set up for. Sluice needs no setting of its own. `sluice run --inline --verbose` logs the same figures where the stage's
`log_level` is `debug`.

- **Names** are `sluice.` and the name below, behind Airflow's own prefix: `airflow.sluice.step_duration`.
- **Labels** come from closed lists alone, so their number is bounded: never an object, a shard, a host or a run. Those go into
  logs and pages. Plain StatsD has no labels: set `statsd_influxdb_enabled` (or use Datadog's), or all series of a metric are
  one.
- **Durations** are in milliseconds. OpenTelemetry gets histograms whose buckets fit the data, from which P50, P95 and P99
  follow over all workers. StatsD gets timers (`|ms`), of which its server makes percentiles; for Prometheus' `statsd_exporter`
  set `timer_type: histogram` in its mapping, since percentiles of several workers cannot be added up.
- **Gauges** are told when something happens, by whoever does it: the newest one of all workers counts.
- What cannot be told is dropped, and logged as `sluice.metric_dropped`: no run fails because of it.

How many tasks failed, waited or were tried again, Airflow counts itself (`ti.finish`, `task.duration`, `pool.open_slots`).

"""

_WATCHED: Final = """
## What to watch

| to see | look at |
| --- | --- |
| whether the supplier gets slower | P95 of `step_duration` with `step=fetch`, by stage |
| whether a supplier is down | `breaker_state` at 2, `retries` with `scope=request` |
| whether workers die or hang | `takeovers`, `steps_stuck` |
| whether data gets worse | `objects_reviewed` with `outcome=rejected`, beside the others |
| whether people keep up | `reviews_waiting`, P95 of `review_wait` |
| whether state is in trouble | `state_failed`, `rebuilds`, `state_read` with `branch=refuse` |
| whether caches are worth their disk | `artifact_cache` and `rows_cache`, hits beside misses; `flights`, `result=replayed` |
"""


def page() -> str:
    """Return the text of the page."""
    rows = ["| metric | kind | labels | what it tells |", "| --- | --- | --- | --- |", *map(_row, METRICS)]
    return _HEAD + "\n".join(rows) + "\n" + _WATCHED


def _row(metric: Metric) -> str:
    return f"| `{metric.name}` | {metric.kind} | {'<br>'.join(_labels(metric)) or 'none'} | {metric.meaning} |"


def _labels(metric: Metric) -> Iterator[str]:
    for label, values in metric.labels.items():
        yield f"`{label}`: {'each of `stages.yaml`' if values == STAGES else ', '.join(values)}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
