"""Tables and queries of a Postgres database as sources."""
