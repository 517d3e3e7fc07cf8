"""A folder in; the demo supplier of the project, on a port of 127.0.0.1 that is kept, out."""

import os
import sys
import time
from pathlib import Path

import httpx2

from sluice.cli.local import keeping, processes
from sluice.cli.local.processes import Process
from sluice.errors import StackFailed
from sluice.ports import ConnectionInfo


class DemoSupplier:
    """Serves the hotels of `include/demo/`; what was changed there survives a restart."""

    def __init__(self, home: Path, program: Path) -> None:
        self._home = home.absolute()
        self._program = program
        self._process: Process | None = None
        self.port = 0

    @property
    def log(self) -> Path:
        """What it has to say."""
        return self._home / "supplier.log"

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    def start(self, patience: float = 60.0) -> None:
        """Start it and wait until it answers."""
        self.stop_leftover()
        self.port = keeping.kept_ports(self._home / "ports.json", ["supplier"])["supplier"]
        self._process = processes.launch(
            [sys.executable, self._program, "--port", str(self.port), "--state", self._home / "state.json"],
            record=self._record,
            log=self.log,
            env=dict(os.environ),
            cwd=self._home,
        )
        deadline = time.monotonic() + patience
        while not self._answers():
            if self._process.exit_code() is not None or time.monotonic() > deadline:
                self.stop()
                raise StackFailed(
                    f"The demo supplier did not start. The end of {self.log}:\n{processes.tail(self.log, 8)}", log=str(self.log)
                )
            time.sleep(0.05)

    def stop(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.stop(patience=5.0)
            self._process = None

    def exit_code(self) -> int | None:
        """Return how it ended, None while it runs."""
        return self._process.exit_code() if self._process else None

    def stop_leftover(self) -> bool:
        """End the one that a killed stack has left here; return whether there was one."""
        return processes.stop_recorded(self._record, patience=5.0)

    def connection(self, conn_id: str) -> ConnectionInfo:
        """Return the Airflow connection to it."""
        return ConnectionInfo(conn_id, "http", "127.0.0.1", self.port, None, None, "http", {})

    @property
    def _record(self) -> Path:
        return self._home / "pid.json"

    def _answers(self) -> bool:
        try:
            return httpx2.get(f"{self.url}/_control", timeout=2, trust_env=False).is_success
        except httpx2.HTTPError:
            return False
