"""Airflow DAG of the sync `hotel_days`, as declared in include/syncs/hotel_days.yaml."""

from sluice.airflow_glue import sync_dag

dag = sync_dag("hotel_days")
