"""A JSON API as a source."""
