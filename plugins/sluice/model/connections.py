"""The Airflow connections that Sluice looks up by a name of its own; a spec names the others."""

from typing import Final

STATE: Final = "sluice_state"
TARGET: Final = "sluice_target"
"""Where a spec publishes to unless it names another."""
ARTIFACTS: Final = "sluice_artifacts"
AIRFLOW: Final = "sluice_airflow"
"""Airflow's own REST API."""
