"""The only package that imports Airflow."""
