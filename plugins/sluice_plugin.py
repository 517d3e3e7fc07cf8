"""The one file of this folder that Airflow scans: it registers Sluice, which it imports as a package."""

from sluice.airflow_glue.plugin import SluicePlugin

__all__ = ["SluicePlugin"]
