"""Let shards have a transformer version of their own, and dead letters be taken up again or given up."""

from sluice.adapters.migrate import execute_beside

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Execute the SQL beside this file."""
    execute_beside(__file__)
