"""Airflow DAG that removes daily what has outlived the time that include/stages.yaml gives it."""

from sluice.airflow_glue import upkeep_dag

dag = upkeep_dag()
