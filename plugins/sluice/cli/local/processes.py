"""Commands in, child processes out: each in a session of its own, recorded by pid, and stopped without leaving any behind.

A record outlives its starter: `stop_recorded` ends what a killed stack has left. A pid is trusted only together with
the instant the process started, since pids are used again.
"""

import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROC = Path("/proc")


@dataclass(frozen=True)
class Account:
    """The user a child runs as, where that is not the user who starts it."""

    uid: int
    gid: int


@dataclass(frozen=True)
class Stat:
    """What the kernel says of a process."""

    pid: int
    state: str
    session: int
    threads: int
    started: int

    @property
    def is_alive(self) -> bool:
        """Whether any of it still runs and may hold files and ports: more than a zombie whose threads have all ended."""
        return self.state not in "ZX" or self.threads > 1


def stat(pid: int) -> Stat | None:
    """Return what the kernel says of `pid`, None if there is no such process."""
    try:
        text = (PROC / str(pid) / "stat").read_text()
    except OSError:
        return None
    fields = text[text.rindex(")") + 2 :].split()  # the name before it may hold anything
    return Stat(pid, fields[0], int(fields[3]), int(fields[17]), int(fields[19]))


class Process:
    """A child that leads a session; its end takes the whole session down."""

    def __init__(self, popen: "subprocess.Popen[bytes]", record: Path) -> None:
        self._popen = popen
        self._record = record

    @property
    def pid(self) -> int:
        """The id of the session's leader."""
        return self._popen.pid

    def exit_code(self) -> int | None:
        """Return how it ended, None while it runs."""
        return self._popen.poll()

    def stop(self, by: signal.Signals = signal.SIGTERM, patience: float = 15.0) -> None:
        """Ask it to end, wait, then end whatever is left of its session by force."""
        self.ask(by)
        self.wait_stopped(patience)

    def ask(self, by: signal.Signals = signal.SIGTERM) -> None:
        """Send the signal that ends it; return at once."""
        if self._popen.poll() is None:
            self._popen.send_signal(by)

    def wait_stopped(self, patience: float = 15.0) -> None:
        """Wait for its end, then end whatever is left of its session by force."""
        try:
            self._popen.wait(patience)
        except subprocess.TimeoutExpired:
            self._popen.kill()
        kill_session(self.pid)
        self._popen.wait()
        self._record.unlink(missing_ok=True)


def launch(
    command: Sequence[str | Path],
    *,
    record: Path,
    log: Path,
    env: Mapping[str, str],
    cwd: Path,
    account: Account | None = None,
) -> Process:
    """Start `command` with exactly `env`; what it prints goes to the end of `log`, its pid to `record`."""
    record.parent.mkdir(parents=True, exist_ok=True)
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        popen = subprocess.Popen(  # noqa: S603 - our own commands
            list(command),
            env=dict(env),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            **drop(account),
        )
    started = stat(popen.pid)
    record.write_text(json.dumps({"pid": popen.pid, "started": started.started if started else 0}))
    return Process(popen, record)


def drop(account: Account | None) -> dict[str, Any]:
    """Return the arguments that make `subprocess` run a child as `account`."""
    return {} if account is None else {"user": account.uid, "group": account.gid, "extra_groups": []}


def stop_recorded(record: Path, by: signal.Signals = signal.SIGTERM, patience: float = 15.0) -> bool:
    """End what an earlier stack recorded and left behind; return whether there was anything to end."""
    try:
        facts = json.loads(record.read_text())
        pid, started = int(facts["pid"]), int(facts["started"])
    except (OSError, ValueError, KeyError, TypeError):
        record.unlink(missing_ok=True)
        return False
    leader = stat(pid)
    is_reused = leader is not None and leader.started != started
    found = False
    if not is_reused:
        found = stop_stranger(pid, by, patience) if leader is not None else False
        found = kill_session(pid) or found
    record.unlink(missing_ok=True)
    return found


def stop_stranger(pid: int, by: signal.Signals, patience: float) -> bool:
    """End a process that is no child of ours; return whether it ran."""
    for kind, seconds in ((by, patience), (signal.SIGKILL, 5.0)):
        now = stat(pid)
        if now is None or not now.is_alive:
            return kind is not by
        os.kill(pid, kind)
        wait_gone(pid, seconds)
    return True


def wait_gone(pid: int, seconds: float) -> None:
    """Return when the process has ended, or after `seconds`."""
    deadline = time.monotonic() + seconds
    while (now := stat(pid)) is not None and now.is_alive and time.monotonic() < deadline:
        time.sleep(0.05)


def kill_session(session: int) -> bool:
    """End every process of a session by force, and wait for their ends; return whether there was one."""
    found = members(session)
    for pid in found:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    for pid in found:
        wait_gone(pid, 5.0)
    return bool(found)


def members(session: int) -> list[int]:
    """Return the processes of a session that are alive."""
    every = (stat(int(entry.name)) for entry in PROC.iterdir() if entry.name.isdigit())
    return [one.pid for one in every if one is not None and one.session == session and one.is_alive]


def tail(log: Path, lines: int = 20) -> str:
    """Return the last lines of a log, empty if there is none."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 64_000))
            text = file.read().decode(errors="replace")
    except OSError:
        return ""
    return "\n".join(text.splitlines()[-lines:])
