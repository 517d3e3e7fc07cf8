"""Airflow DAG of the sync `hotels`, as declared in include/syncs/hotels.yaml."""

from sluice.airflow_glue import sync_dag

dag = sync_dag("hotels")
