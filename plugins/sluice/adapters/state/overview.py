"""All syncs at a glance: what `sluice_state` knows of them behind the port `OverviewStore`."""

from collections.abc import Sequence
from typing import Final

from sluice.adapters.postgres import Transactions
from sluice.adapters.queries import Queries
from sluice.model.ledger import WRITING_OUTCOMES
from sluice.model.lifecycle import APPROVALS
from sluice.model.overview import RestingStage, SyncGlance

_SQL: Final = Queries(__package__, "overview.sql")
_LOOKED_AT: Final = 60
"""Among so many runs of a sync its last publication is looked for: two months of daily ones."""


class PostgresOverviewStore:
    """Glances in Postgres, one statement each."""

    def __init__(self, database: Transactions) -> None:
        self._database = database

    def syncs(self, syncs: Sequence[str], runs: int) -> list[SyncGlance]:
        """Return these syncs, by name, each with so many of its newest runs."""
        facts = {
            "syncs": list(syncs),
            "runs": runs,
            "looked_at": _LOOKED_AT,
            "approvals": list(APPROVALS),
            "writing": list(WRITING_OUTCOMES),
        }
        with self._database.transaction() as connection:
            return [
                SyncGlance.model_validate({**row, "runs": tuple(row["runs"] or ())})
                for row in connection.execute(_SQL["syncs"], facts)
            ]

    def resting(self) -> list[RestingStage]:
        """Return the stages that leave a supplier alone, since its breaker is not closed."""
        with self._database.transaction() as connection:
            return [RestingStage(**row) for row in connection.execute(_SQL["resting"])]
