"""Small facts in, the same facts out after a restart: secrets, and ports that were free."""

import json
import secrets
import socket
import time
from collections.abc import Callable, Sequence
from pathlib import Path

# These, and those 10,000 higher, lie below the range that the kernel hands out to outgoing connections: a port that is
# kept over a restart is likely free.
PORTS = range(12_000, 22_000)


def kept_secret(path: Path, length: int = 24, make: Callable[[], str] | None = None) -> str:
    """Return the secret in `path`, made up on the first call; only its owner can read the file."""
    if not path.exists():
        write_private(path, (make() if make else secrets.token_urlsafe(length)) + "\n")
    return path.read_text().strip()


def write_private(path: Path, text: str) -> None:
    """Replace a file by one that only its owner can read; nobody ever sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(path.name + ".new")
    fresh.unlink(missing_ok=True)
    fresh.touch(mode=0o600)
    fresh.write_text(text)
    fresh.replace(path)


def kept_ports(path: Path, names: Sequence[str], companion: int = 0) -> dict[str, int]:
    """Return a port of 127.0.0.1 for each name: the one kept in `path` if it is free, else a new one.

    With `companion`, the port that much higher is free too.
    """
    kept = read_ports(path)
    ports: dict[str, int] = {}
    for name in names:
        port = kept.get(name)
        if port is None or not comes_free(port, companion):
            port = free_port([*ports.values(), *kept.values()], companion)
        ports[name] = port
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(ports, indent=1) + "\n")
    return ports


def read_ports(path: Path) -> dict[str, int]:
    """Return the ports kept in `path`, none if it cannot be read."""
    try:
        return {str(name): int(port) for name, port in json.loads(path.read_text()).items()}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}


def free_port(taken: Sequence[int] = (), companion: int = 0) -> int:
    """Return a port of 127.0.0.1 that nobody listens on."""
    for _ in range(1000):
        port = secrets.choice(PORTS)
        if port not in taken and is_free(port, companion):
            return port
    raise OSError(f"no port between {PORTS.start} and {PORTS.stop} is free on 127.0.0.1")


def comes_free(port: int, companion: int = 0, patience: float = 1.0) -> bool:
    """Whether the port is free, or is so soon: a server that has just been ended may still be about to let go of it."""
    deadline = time.monotonic() + patience
    while not (found := is_free(port, companion)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


def is_free(port: int, companion: int = 0) -> bool:
    """Whether a server could listen on that port of 127.0.0.1, and on the one `companion` higher."""
    try:
        for number in {port, port + companion}:
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(("127.0.0.1", number))
    except OSError:
        return False
    return True
