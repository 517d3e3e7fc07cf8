"""The ledger beside the target, its SQL and its migrations."""
