"""The numbered migrations of `sluice_state`."""
