"""Workers as the test sees them: errands in; processes that can be listened to, held, paused, woken and killed, out."""

import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path

from tests.chaos.worker import Ended, Errand, Logged

REPOSITORY = Path(__file__).parents[2]
PATIENCE = 90.0


class Worker:
    """One process at an errand."""

    def __init__(self, pid: int, wire: Connection) -> None:
        self.pid = pid
        self.log: list[Logged] = []
        self._wire = wire
        self._ended: Ended | None = None
        self._gone = False

    @property
    def events(self) -> list[str]:
        """The names of the events heard so far."""
        return [logged.event for logged in self.log]

    @property
    def account(self) -> str:
        """What is known of it, for messages."""
        return f"{self._ended} after {self.events}"

    def held(self) -> Logged:
        """Listen until it stands still; return at what."""
        assert self.is_held(), f"it never came to where it should be held: {self.account}"
        return self.log[-1]

    def is_held(self) -> bool:
        """Listen until it stands still, or has ended; return whether it stands still."""
        while (logged := self._next()) is not None:
            if logged.is_held:
                return True
        assert self._ended is not None, f"the worker died of its own accord: {self.account}"
        return False

    def go_on(self) -> None:
        """Let it go on from where it is held."""
        self._wire.send(None)

    def end(self) -> Ended:
        """Listen until it has ended; return how."""
        while self._next() is not None:
            pass
        assert self._ended is not None, f"the worker died of its own accord after {self.events}"
        return self._ended

    def is_at_work(self) -> bool:
        """Whether it has not ended, as far as can be told without waiting."""
        while not self._gone and self._wire.poll(0):
            self._next()
        return not self._gone

    def kill(self) -> None:
        """SIGKILL it, and return once it is dead."""
        self._signal(signal.SIGKILL)
        while self._next() is not None:
            pass

    def pause(self) -> None:
        """SIGSTOP it. One that is held stops before it goes on, whatever it is sent."""
        self._signal(signal.SIGSTOP)

    def wake(self) -> None:
        """SIGCONT it."""
        self._signal(signal.SIGCONT)

    def close(self) -> None:
        """End it, if it has not ended."""
        if not self._gone:
            self.kill()
        self._wire.close()

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def _next(self) -> Logged | None:
        """Return what it logs next; None once its end of the wire is closed, which the kernel does when the process ends."""
        if self._gone:
            return None
        assert self._wire.poll(PATIENCE), f"nothing heard for {PATIENCE:.0f} s: {self.account}"
        try:
            heard = self._wire.recv()
        except (EOFError, ConnectionResetError):
            self._gone = True
            return None
        if isinstance(heard, Ended):
            self._ended = heard
            return self._next()
        self.log.append(heard)
        return heard


class Nursery:
    """Makes workers, by way of a zygote process."""

    def __init__(self, orders: socket.socket) -> None:
        self._orders = orders
        self._turn = threading.Lock()

    def start(self, errand: Errand) -> Worker:
        """Start a worker at an errand."""
        ours, its = socket.socketpair()
        with self._turn, its:
            socket.send_fds(self._orders, [pickle.dumps(errand)], [its.fileno()])
            pid = int.from_bytes(self._orders.recv(8), "big")
        return Worker(pid, Connection(ours.detach()))


@contextmanager
def open_nursery() -> Iterator[Nursery]:
    """Yield a nursery; its zygote ends with the context, and with the test session whatever happens to it."""
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    with ours, its:
        zygote = subprocess.Popen(
            [sys.executable, "-m", "tests.chaos.zygote", str(its.fileno())],
            cwd=REPOSITORY,
            env={"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "PYTHONPATH": os.pathsep.join(sys.path)},
            pass_fds=[its.fileno()],
        )
        its.close()
        try:
            assert ours.recv(8) == b"ready", "the zygote did not come up"
            yield Nursery(ours)
        finally:
            ours.close()
            zygote.wait(timeout=10)
