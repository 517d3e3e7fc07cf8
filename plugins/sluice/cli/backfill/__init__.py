"""What `sluice backfill` does: spans of time in; a plan, its runs, and a table of them out."""
