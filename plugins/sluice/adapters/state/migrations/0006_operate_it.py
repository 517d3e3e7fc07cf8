"""Let people end runs and shards by hand, and keep a trail of what they and policy have done."""

from sluice.adapters.migrate import execute_beside

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Execute the SQL beside this file."""
    execute_beside(__file__)
