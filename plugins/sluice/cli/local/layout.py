"""A project folder in; the places under its `.sluice/`, and the lock that lets one stack run there, out."""

import fcntl
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sluice.cli.project import ENVIRONMENT_FILE
from sluice.errors import StackFailed, StackRunning

PRIVATE: Final = ("airflow", "logs", "supplier")


@dataclass(frozen=True)
class Layout:
    """Where the local stack of a project keeps things."""

    project: Path

    @property
    def root(self) -> Path:
        """All that the stack makes; it may be removed while no stack runs."""
        return self.project / ENVIRONMENT_FILE.parent

    @property
    def environment(self) -> Path:
        """What a second terminal needs to know, as `NAME=VALUE` lines."""
        return self.project / ENVIRONMENT_FILE

    @property
    def cache(self) -> Path:
        """The workers' copies of artifacts."""
        return self.root / "cache"

    @property
    def logs(self) -> Path:
        """The logs of Airflow's processes and tasks."""
        return self.root / "logs"

    @property
    def command(self) -> str:
        """How to call the `sluice` command from the project folder."""
        if shutil.which("sluice"):
            return "sluice"
        beside = Path(sys.executable).with_name("sluice")
        return str(beside.relative_to(self.project) if beside.is_relative_to(self.project) else beside)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep other stacks off this folder; raise `StackRunning` if one is there. A killed stack holds nothing."""
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            self.root.chmod(0o711 if os.geteuid() == 0 else 0o700)  # root's Postgres runs as nobody, who has to get in
            for folder in PRIVATE:
                (self.root / folder).mkdir(mode=0o700, exist_ok=True)
            lock = os.open(self.root / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        except PermissionError as error:
            raise StackFailed(
                f"{self.root} belongs to somebody else: work as the user who made it, or remove it ({error})"
            ) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            raise StackRunning(
                f"a local stack runs for {self.project} already. Use it from here (`sluice runs`), or end it with Ctrl-C where "
                "it was started"
            ) from None
        try:
            yield
        finally:
            os.close(lock)
