"""The numbered migrations of `sluice_ledger`."""
