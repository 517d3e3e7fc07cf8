"""The stores of sluice_state, their SQL and their migrations."""
