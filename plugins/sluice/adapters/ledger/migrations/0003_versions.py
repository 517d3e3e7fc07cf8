"""Let events name the version of the transformation."""

from sluice.adapters.migrate import execute_beside

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Execute the SQL beside this file."""
    execute_beside(__file__)
