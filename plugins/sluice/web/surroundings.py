"""What the pages need of whoever mounts them."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass

from sluice.model.base import RunId
from sluice.model.schedule import Schedule
from sluice.ports import Services
from sluice.web.access import Access
from sluice.web.errands import Errand


@dataclass(frozen=True)
class Surroundings:
    """Who may do what, what there is, and what a run is called."""

    access: Access
    services: Callable[[], AbstractContextManager[Services]]
    run_id_of: Callable[[str, str], RunId]
    """A DagRun's run, by DAG id and DagRun id."""
    later: Callable[[RunId, Errand], None]
    """Lets an errand be done for a run that no request can wait for."""
    schedules: Callable[[], Mapping[str, Schedule]]
    """When the syncs run by themselves, by DAG id, as far as that is known."""
