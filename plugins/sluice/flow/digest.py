"""What an approval is of: the diff, the spec and the target it was made for, in one sha-256."""

import hashlib

from sluice.model.artifact import Pointer
from sluice.model.run import Run


def review_digest(run: Run, diff: Pointer) -> str:
    """Return the digest of a staged diff under its spec, whose review policy and checks are part of it."""
    parts = (run.id, run.spec_hash, str(run.transformer_version), diff.sha256)
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
