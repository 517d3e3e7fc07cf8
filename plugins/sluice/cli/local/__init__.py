"""The local stack: an embedded Postgres, an S3 API, a demo supplier and Airflow, all in `.sluice/` of a project folder."""
