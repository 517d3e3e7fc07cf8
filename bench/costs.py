"""A command comes in; what its process tree and Postgres spent on it goes out: CPU, memory, time, write-ahead log."""

import os
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

import psycopg

from sluice.cli.local.postgres import PostgresServer

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PROC: Final = Path("/proc")
_BETWEEN_LOOKS: Final = 0.2

_SETTINGS: Final = {
    # No checkpoint falls into a run, after which the first touch of each page would be logged whole.
    "max_wal_size": "16GB",
    "checkpoint_timeout": "1d",
    # What it does, and when, differs from run to run: `settle` does it in between, at nobody's expense.
    "autovacuum": "off",
    "shared_buffers": "1GB",
}
"""The server is set up alike for all; it is durable."""


@dataclass(frozen=True)
class Cost:
    """What one command took."""

    client: float
    """Seconds of CPU of the command and all that it started."""
    postgres: float
    """Seconds of CPU of the server meanwhile."""
    wall: float
    rss: int
    """The largest resident memory of one of its processes, in bytes."""
    pss: int
    """The largest memory of all of its processes together, what they share counted once."""
    wal: int
    """Bytes of write-ahead log."""

    @property
    def cpu(self) -> float:
        """Seconds of CPU of both."""
        return self.client + self.postgres


@dataclass(frozen=True)
class Done:
    """A command that has ended well: what it took, and what it said."""

    cost: Cost
    output: str


class Failed(Exception):
    """A command has ended otherwise."""


class Meter:
    """Measures commands that work on one server of Postgres."""

    def __init__(self, postgres: PostgresServer, folder: Path) -> None:
        self._postgres = postgres
        self._folder = folder
        with psycopg.connect(postgres.uri("postgres"), autocommit=True) as session:
            for name, value in _SETTINGS.items():
                session.execute(f"alter system set {name} = '{value}'")
        postgres.stop()
        postgres.start()

    def settle(self, database: str) -> None:
        """Do what autovacuum would have done by the next day."""
        with psycopg.connect(self._postgres.uri(database), autocommit=True) as session:
            session.execute("vacuum (analyze)")

    def run(self, command: Sequence[str | Path], environ: Mapping[str, str], cwd: Path) -> Done:
        """Run a command to its end; raise `Failed`, with the end of what it said, unless that is a good one."""
        said = self._folder / "said"
        served, logged, began = self._cpu(), self._wal(), time.monotonic()
        with said.open("wb") as errors:
            process = subprocess.Popen(command, cwd=cwd, env=dict(environ), stdout=subprocess.PIPE, stderr=errors)
            with _MemoryWatch(process.pid) as watch:
                output = process.stdout.read() if process.stdout else b""
                _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.stdout:
            process.stdout.close()
        cost = Cost(
            client=usage.ru_utime + usage.ru_stime,
            postgres=self._cpu() - served,
            wall=time.monotonic() - began,
            rss=usage.ru_maxrss * 1024,
            pss=watch.peak,
            wal=self._wal() - logged,
        )
        if process.returncode:
            end = (output + said.read_bytes())[-3000:].decode(errors="replace")
            raise Failed(f"exit code {process.returncode}: …{end}")
        return Done(cost, output.decode(errors="replace"))

    def _wal(self) -> int:
        with psycopg.connect(self._postgres.uri("postgres")) as session:
            row = session.execute("select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint").fetchone()
        return int(row[0]) if row else 0

    def _cpu(self) -> float:
        """Return the CPU seconds of the server, its backends, and those that have ended."""
        with psycopg.connect(self._postgres.uri("postgres")) as session:
            row = session.execute("select setting from pg_settings where name = 'data_directory'").fetchone()
        folder = Path(str(row[0]) if row else "")
        postmaster = int((folder / "postmaster.pid").read_text().split()[0])
        found = _stats()
        own = [ticks for pid, (parent, ticks) in found.items() if postmaster in (pid, parent)]
        return sum(sum(ticks) for ticks in own) / _TICKS


class _MemoryWatch:
    """Looks again and again at how much memory a process and its descendants have."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self.peak = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(_BETWEEN_LOOKS):
            self.peak = max(self.peak, sum(_proportional_bytes(pid) for pid in _tree(self._root)))


def _tree(root: int) -> set[int]:
    parents = {pid: parent for pid, (parent, _) in _stats().items()}
    tree, size = {root}, 0
    while len(tree) > size:
        size = len(tree)
        tree |= {pid for pid, parent in parents.items() if parent in tree}
    return tree


def _stats() -> dict[int, tuple[int, list[int]]]:
    """Return of each process its parent, and the ticks of CPU that it and its ended children have used."""
    found = {}
    for stat in _PROC.glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        found[int(stat.parent.name)] = int(fields[1]), [int(ticks) for ticks in fields[11:15]]
    return found


def _proportional_bytes(pid: int) -> int:
    try:
        lines = (_PROC / str(pid) / "smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)
