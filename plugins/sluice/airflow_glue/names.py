"""The names Sluice goes by in Airflow: a sync's DAG, a stage's pool."""


def dag_id_of(sync: str) -> str:
    """Return the id of a sync's DAG."""
    return f"sluice_{sync}"


def pool_of(stage: str) -> str:
    """Return the name of the pool that limits how many shards of a stage are fetched at a time."""
    return f"sluice_{stage.replace('-', '_')}"
