"""The pages and their API."""
