"""Imports the package once; then, for each errand that comes in over its socket, forks a worker in a fraction of a second."""

import gc
import os
import pickle
import signal
import socket
import sys
from multiprocessing.connection import Connection

import psycopg_pool  # noqa: F401 - loaded here, it need not be loaded by every worker
import pyarrow.csv
import pyarrow.parquet  # noqa: F401
import stamina  # noqa: F401

import sluice.adapters.sources.rest
import sluice.adapters.targets.postgres  # noqa: F401
from sluice.adapters.artifacts.s3 import S3ArtifactStore
from sluice.ports import ConnectionInfo
from tests.chaos.worker import work

LARGEST_ERRAND = 1 << 20


def main(fd: int) -> None:
    """Fork workers until the test session closes the socket."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them: their wires tell
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started them ends them
    _ = S3ArtifactStore(ConnectionInfo("", "aws", None, None, "a", "b", None, {"bucket": "none"}))._client  # as above
    gc.freeze()
    with socket.socket(fileno=fd) as orders:
        orders.sendall(b"ready")
        while True:
            message, wires, _, _ = socket.recv_fds(orders, LARGEST_ERRAND, 1)
            if not message:
                return
            pid = os.fork()
            if pid == 0:
                orders.close()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                _live(message, Connection(wires[0]))
            os.close(wires[0])
            orders.sendall(pid.to_bytes(8, "big"))


def _live(message: bytes, wire: Connection) -> None:
    """Be a worker; nothing of the zygote's is cleaned up in the end."""
    try:
        work(pickle.loads(message), wire)  # noqa: S301 - the test session's own
    except BrokenPipeError:
        pass  # the test has gone
    finally:
        os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]))
