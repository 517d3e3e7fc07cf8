"""The supplier of the comparison: the pages of `hotels.py` over HTTP, read from the disk's cache, at next to no cost.

GET /<state>/countries                                 [{"code": "AT"}, …]
GET /<state>/hotels?country=AT[&limit=500][&cursor=1]  {"hotels": […], "next_cursor": "2"}, or null behind the last page
"""

import asyncio
import json
import mmap
import sys
from email.utils import formatdate
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, urlsplit

import uvloop
from hotels import STATES

_SOCKET_BYTES: Final = 4 << 20


class Pages:
    """The pages of one state."""

    def __init__(self, folder: Path, state: str) -> None:
        with (folder / f"{state}.pages").open("rb") as file:
            self._bytes = memoryview(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ))
        self._places: dict[str, list[tuple[int, int]]] = json.loads((folder / f"{state}.index.json").read_text())
        self.countries = json.dumps([{"code": code} for code in self._places]).encode()

    def page(self, country: str, cursor: int) -> memoryview:
        """Return one page."""
        start, size = self._places[country][cursor]
        return self._bytes[start : start + size]


class Connection(asyncio.Protocol):
    """Answers request after request, on a connection that is kept."""

    def __init__(self, states: dict[str, Pages]) -> None:
        self._states = states
        self._asked = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Make room for whole pages."""
        self._transport: asyncio.Transport = transport  # type: ignore[assignment]
        self._transport.set_write_buffer_limits(high=2 * _SOCKET_BYTES)

    def data_received(self, data: bytes) -> None:
        """Answer what is complete."""
        self._asked += data
        while b"\r\n\r\n" in self._asked:
            request, self._asked = self._asked.split(b"\r\n\r\n", 1)
            try:
                status, body = b"200 OK", self._answer(request.split(b" ", 2)[1].decode())
            except (KeyError, IndexError, ValueError):
                status, body = b"404 Not Found", memoryview(b"{}")
            head = b"HTTP/1.1 %b\r\nDate: %b\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
            self._transport.write(head % (status, formatdate(usegmt=True).encode(), len(body)))
            self._transport.write(body)

    def _answer(self, address: str) -> memoryview:
        parts = urlsplit(address)
        _, state, what = parts.path.split("/")
        if what == "countries":
            return memoryview(self._states[state].countries)
        query = parse_qs(parts.query)
        return self._states[state].page(query["country"][0], int(query.get("cursor", ["0"])[0]))


async def serve(folder: Path) -> None:
    """Listen on a free port, say which, and go on until the process is ended."""
    states = {state: Pages(folder, state) for state in STATES}
    server = await asyncio.get_running_loop().create_server(lambda: Connection(states), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(Path(sys.argv[1])))
