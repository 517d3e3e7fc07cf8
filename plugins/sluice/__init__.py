"""Sluice keeps Postgres tables in step with slow, unreliable suppliers, and lets nothing reach them unreviewed."""

__version__ = "0.1.0"
