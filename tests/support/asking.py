"""A worker in a process of its own: what to ask a supplier for goes in; how many pages came, and what went wrong, comes out."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from sluice.errors import ConnectionInvalid, SluiceError
from sluice.model.spec import SyncSpec
from sluice.model.stage import StagePolicy
from sluice.ports import ConnectionInfo, PageRequest
from sluice.settings import Settings
from sluice.wiring import open_services


@dataclass(frozen=True)
class Asking:
    """So many pages of a sync's source, under a stage's policy, with the services every worker has."""

    connections: Mapping[str, ConnectionInfo]
    spec: SyncSpec
    policy: StagePolicy
    pages: int

    def get(self, conn_id: str) -> ConnectionInfo:
        """Return the connection: the port `Connections`."""
        if conn_id not in self.connections:
            raise ConnectionInvalid(f"no connection {conn_id}")
        return self.connections[conn_id]


@dataclass(frozen=True)
class Told:
    """How it went."""

    pages: int
    error: str | None = None
    message: str = ""


def ask(asking: Asking) -> Told:
    """Ask for the pages of the first shard, from its beginning."""
    request = PageRequest(shard={"region": "north"}, cursor=None, watermark=None, window_start=None, window_end=None)
    received = 0
    with open_services(Settings(include=Path("nowhere")), asking) as services:
        try:
            for _ in islice(services.source(asking.spec, asking.policy).pages(request), asking.pages):
                received += 1
        except SluiceError as error:
            return Told(received, type(error).__name__, error.message)
    return Told(received)
