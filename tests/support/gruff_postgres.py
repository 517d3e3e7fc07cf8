"""Errors in; a server on 127.0.0.1 that speaks Postgres' protocol as far as it takes to end connections with them, out."""

import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from sluice.ports import ConnectionInfo

_WELCOME: Final = b"R" + struct.pack("!ii", 8, 0) + b"Z" + struct.pack("!ic", 5, b"I")
"""That no proof is asked for, and that statements may come."""


def fatal(severity: str, code: str, said: str) -> bytes:
    """Return an error that ends a connection. The first word is of the server's language, and there is one that never is."""
    fields = b"".join(f"{kind}{value}\0".encode() for kind, value in zip("SVCM", (severity, "FATAL", code, said), strict=True))
    return b"E" + struct.pack("!i", len(fields) + 5) + fields + b"\0"


@contextmanager
def gruff_postgres(error: bytes, *, lets_in: bool = False) -> Iterator[ConnectionInfo]:
    """Yield the connection to a server that answers every login with an error, or every first statement.

    It is a process of its own, since libpq's ping lets no other thread of this one have its turn.
    """
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        subprocess.Popen(
            [sys.executable, "-m", __name__, str(server.fileno()), error.hex(), "in" if lets_in else "out"],
            pass_fds=[server.fileno()],
        ) as process,
    ):
        try:
            port = server.getsockname()[1]
            yield ConnectionInfo("gruff", "postgres", "127.0.0.1", port, "me", "x", "shop", {"sslmode": "disable"})
        finally:
            process.kill()


def serve(server: socket.socket, error: bytes, *, lets_in: bool) -> None:
    """Answer one connection after another."""
    while True:
        client, _ = server.accept()
        with client:
            client.recv(10_000)
            if lets_in:
                client.sendall(_WELCOME)
                client.recv(10_000)
            client.sendall(error)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])), bytes.fromhex(sys.argv[2]), lets_in=sys.argv[3] == "in")
