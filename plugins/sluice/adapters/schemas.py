"""Sluice's own schemas in Postgres: what they are called, where each notes its revision, and how its absence is told."""

from typing import Final, Literal

from sluice.errors import Retryable, StateUnavailable, TargetUnavailable

Schema = Literal["sluice_state", "sluice_ledger"]

VERSION_TABLE: Final = "migration"

UNAVAILABLE: Final[dict[Schema, type[Retryable]]] = {
    "sluice_state": StateUnavailable,
    "sluice_ledger": TargetUnavailable,
}
