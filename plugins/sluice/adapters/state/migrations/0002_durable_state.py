"""Let runs follow each other and shards begin again, and remember calls to others and what is known of suppliers."""

from sluice.adapters.migrate import execute_beside

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Execute the SQL beside this file."""
    execute_beside(__file__)
