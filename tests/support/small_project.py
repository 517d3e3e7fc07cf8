"""All that a run of the demo's hotels needs, in this process: a project with small pages, a page to a chunk."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from sluice.ports import ConnectionInfo, Metrics, Services
from sluice.settings import Settings
from sluice.wiring import open_services
from tests.support.command_line import copy_project
from tests.support.servers import Supplier


@contextmanager
def small_project(
    folder: Path, database: ConnectionInfo, artifacts: ConnectionInfo, supplier: Supplier, metrics: Metrics, **policy: Any
) -> Iterator[Services]:
    """Yield the services of a project in `folder`, whose stages have this policy by default."""
    include = copy_project(folder) / "include"
    _edit(include / "syncs/hotels.yaml", lambda spec: spec["source"]["query"].update(limit="50"))
    _edit(include / "stages.yaml", lambda stages: stages["defaults"].update(chunk_bytes=1, **policy))

    class Known:
        def get(self, conn_id: str) -> ConnectionInfo:
            known = {"sluice_artifacts": artifacts, "demo_supplier": supplier.connection}
            return known.get(conn_id, database)

    with open_services(Settings(include=include, cache=folder / "cache"), Known(), metrics) as services:
        yield services


def _edit(path: Path, change: Any) -> None:
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    change(content)
    path.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
