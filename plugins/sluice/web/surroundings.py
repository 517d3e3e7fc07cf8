"""What the pages need of whoever mounts them."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from sluice.model.base import RunId
from sluice.ports import Services
from sluice.web.access import Access


@dataclass(frozen=True)
class Surroundings:
    """Who may do what, what there is, and what a run is called."""

    access: Access
    services: Callable[[], AbstractContextManager[Services]]
    run_id_of: Callable[[str, str], RunId]
    """A DagRun's run, by DAG id and DagRun id."""
