"""The ports, made real: Postgres, S3, HTTP, YAML."""
