"""Sluice's counts in, Airflow's metrics (StatsD or OpenTelemetry, as this Airflow is configured) out."""

from airflow.sdk.observability import stats


class AirflowMetrics:
    """Counts as `sluice.<name>`, with the labels as tags."""

    def count(self, name: str, number: int = 1, **labels: str) -> None:
        """Count so many more."""
        stats.incr(f"sluice.{name}", number, tags=labels)
