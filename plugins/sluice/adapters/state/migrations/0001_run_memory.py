"""Create the memory of runs: flights, runs, shards, pointers, reviews, dead letters, watermarks and events."""

from sluice.adapters.migrate import execute_beside

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Execute the SQL beside this file."""
    execute_beside(__file__)
