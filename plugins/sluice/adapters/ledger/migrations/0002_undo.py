"""Let publications say who let them pass, and which publication they took back."""

from sluice.adapters.migrate import execute_beside

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Execute the SQL beside this file."""
    execute_beside(__file__)
