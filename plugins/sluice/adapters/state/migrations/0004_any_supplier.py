"""Let shards keep the supplier's time when they were begun, and workers share access tokens."""

from sluice.adapters.migrate import execute_beside

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Execute the SQL beside this file."""
    execute_beside(__file__)
