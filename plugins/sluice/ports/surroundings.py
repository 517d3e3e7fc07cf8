"""What surrounds a process: time, connections, counts, and the databases and spec files it can look at."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from pydantic import JsonValue

from sluice.model.metric import Metric
from sluice.model.spec import SyncSpec
from sluice.model.stage import StagePolicy


class Clock(Protocol):
    """Time."""

    def now(self) -> datetime:
        """Return the present instant, aware, in UTC."""

    def elapsed(self) -> float:
        """Return seconds since some moment, which no change of the computer's clock affects: for measuring spans."""

    def wait(self, span: timedelta) -> None:
        """Return after that span; at once if it is negative."""


@dataclass(frozen=True)
class ConnectionInfo:
    """An Airflow connection, without Airflow. `extra` is its decoded JSON."""

    conn_id: str
    conn_type: str
    host: str | None
    port: int | None
    login: str | None
    password: str | None = field(repr=False)
    schema: str | None
    extra: Mapping[str, JsonValue] = field(repr=False)


class Connections(Protocol):
    """Looks Airflow connections up; `airflow_glue` and `cli` each supply one."""

    def get(self, conn_id: str) -> ConnectionInfo:
        """Return the connection; raise `ConnectionInvalid`, saying how to define it, if there is none."""


class Metrics(Protocol):
    """Figures for whoever watches; `airflow_glue` supplies Airflow's own. `model.metric` lists all of them with their labels.

    Nothing here raises, or waits.
    """

    def count(self, metric: Metric, number: int = 1, **labels: str) -> None:
        """Count so many more."""

    def gauge(self, metric: Metric, value: float, **labels: str) -> None:
        """Let the metric stand at this value."""

    def timing(self, metric: Metric, span: timedelta, **labels: str) -> None:
        """Add a span to those that the metric has been told."""


class SpecReader(Protocol):
    """The files a team edits."""

    def names(self) -> list[str]:
        """Return the names of all syncs."""

    def stages(self) -> list[str]:
        """Return the names of all stages."""

    def sync(self, name: str) -> SyncSpec:
        """Return the spec of a sync; raise `SpecInvalid` with all that is wrong with it."""

    def policy(self, stage: str) -> StagePolicy:
        """Return the policy of a stage; raise `SpecInvalid` with all that is wrong with it."""

    def check(self) -> list[str]:
        """Return every problem of every file."""


class DatabaseProbe(Protocol):
    """A look at a database that may not be there. Raises what its stores would."""

    def now(self) -> datetime:
        """Return the instant by its clock."""

    def revision(self) -> tuple[str | None, str]:
        """Return the revision its schema is at, None if there is none, and the one this release needs."""
