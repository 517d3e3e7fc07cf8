"""Files as a source: stored over HTTP or in S3, read as streams."""
