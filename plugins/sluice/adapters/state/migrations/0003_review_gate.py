"""Let reviews carry their evidence and packet, decisions a number of deletions, and runs take publications back."""

from sluice.adapters.migrate import execute_beside

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Execute the SQL beside this file."""
    execute_beside(__file__)
