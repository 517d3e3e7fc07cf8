"""CPU time of downloading pages: a local server in, Sluice's client and urllib3 side by side out.

The bound: Sluice's client, whose library knows HTTP/2 as well, costs at most five times what urllib3 costs for HTTP/1.1 alone.
"""

import socket
import sys
import time
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection

import urllib3

from sluice.adapters.sources.transport.client import Answer, HttpClient
from sluice.adapters.sources.transport.endpoint import Endpoint
from sluice.adapters.sources.transport.request import Request
from sluice.model.stage import StagePolicy
from sluice.ports import ConnectionInfo

PAGES = 200
PAGE = 650_000
BOUND = 5.0
HEAD = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {PAGE}\r\n\r\n".encode()


class Unrestrained:
    """Holds no request back."""

    def ask(self, call: Callable[[], Answer]) -> Answer:
        """Make it."""
        return call()


def serve(ready: Connection) -> None:
    """Answer every request on a free port with one page, until the process is ended."""
    listener = socket.create_server(("127.0.0.1", 0))
    ready.send(listener.getsockname()[1])
    answer = HEAD + b"x" * PAGE
    while True:
        connection, _ = listener.accept()
        while connection.recv(65536):
            connection.sendall(answer)


def by_sluice(port: int) -> None:
    """Download all pages as a source would."""
    policy = StagePolicy()
    endpoint = Endpoint.of(ConnectionInfo("bench", "http", "127.0.0.1", port, None, None, "http", {}))
    with HttpClient(endpoint, policy, Unrestrained()) as client:
        for _ in range(PAGES):
            assert len(client.send(Request("/pages")).body) == PAGE  # noqa: S101


def by_urllib3(port: int) -> None:
    """Download all pages with nothing around it."""
    with urllib3.PoolManager(retries=False) as pool:
        for _ in range(PAGES):
            assert len(pool.request("GET", f"http://127.0.0.1:{port}/pages").data) == PAGE  # noqa: S101


def main() -> int:
    """Measure both, alternating, the best of five each; return 1 beyond the bound."""
    spawn = get_context("spawn")
    ready, told = spawn.Pipe(duplex=False)
    server = spawn.Process(target=serve, args=(told,), daemon=True)
    server.start()
    port = int(ready.recv())
    best = {by_urllib3: float("inf"), by_sluice: float("inf")}
    for _ in range(5):
        for way, least in best.items():
            begun = time.process_time()
            way(port)
            best[way] = min(least, time.process_time() - begun)
    server.terminate()
    ratio = best[by_sluice] / best[by_urllib3]
    for way, seconds in best.items():
        print(f"  {way.__name__.removeprefix('by_'):8} {seconds * 1000 / PAGES:6.2f} ms of CPU a page of {PAGE // 1000} kB")
    print(f"  ratio {ratio:.2f}, at most {BOUND}")
    return int(ratio > BOUND)


if __name__ == "__main__":
    sys.exit(main())
