"""A DagRun's identity in, Sluice's run id out: recomputed by every task, so that nothing hangs on XCom."""

import hashlib
import re
from typing import Final

from sluice.model.base import RunId

_LONGEST_READABLE: Final = 120


def run_id_of(dag_id: str, dag_run_id: str) -> RunId:
    """Return the run id of a DagRun: readable, safe in keys, paths and URLs, and different for every DagRun."""
    digest = hashlib.sha256(f"{dag_id}\n{dag_run_id}".encode()).hexdigest()[:8]
    readable = re.sub(r"[^A-Za-z0-9]+", "-", dag_run_id).strip("-")[:_LONGEST_READABLE]
    return RunId(f"{readable}-{digest}" if readable else digest)
