"""Small facts in, the same facts out after a restart: secrets, and ports that were free."""

import json
import secrets
import socket
from collections.abc import Sequence
from pathlib import Path

# Below the range that the kernel hands out to outgoing connections, so that a port kept over a restart is likely free.
PORTS = range(20_000, 32_000)


def kept_secret(path: Path, length: int = 24) -> str:
    """Return the secret in `path`, made up on the first call; only its owner can read the file."""
    if not path.exists():
        write_private(path, secrets.token_urlsafe(length) + "\n")
    return path.read_text().strip()


def write_private(path: Path, text: str) -> None:
    """Replace a file by one that only its owner can read; nobody ever sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(path.name + ".new")
    fresh.unlink(missing_ok=True)
    fresh.touch(mode=0o600)
    fresh.write_text(text)
    fresh.replace(path)


def kept_ports(path: Path, names: Sequence[str]) -> dict[str, int]:
    """Return a port of 127.0.0.1 for each name: the one kept in `path` if it is free, else a new one."""
    kept = read_ports(path)
    ports: dict[str, int] = {}
    for name in names:
        port = kept.get(name)
        ports[name] = port if port is not None and is_free(port) else free_port(taken=[*ports.values(), *kept.values()])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(ports, indent=1) + "\n")
    return ports


def read_ports(path: Path) -> dict[str, int]:
    """Return the ports kept in `path`, none if it cannot be read."""
    try:
        return {str(name): int(port) for name, port in json.loads(path.read_text()).items()}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}


def free_port(taken: Sequence[int] = ()) -> int:
    """Return a port of 127.0.0.1 that nobody listens on."""
    for _ in range(1000):
        port = secrets.choice(PORTS)
        if port not in taken and is_free(port):
            return port
    raise OSError(f"no port between {PORTS.start} and {PORTS.stop} is free on 127.0.0.1")


def is_free(port: int) -> bool:
    """Whether a server could listen on that port of 127.0.0.1."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
