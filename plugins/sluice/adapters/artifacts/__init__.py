"""Artifacts in S3, and the codec of raw chunks."""
