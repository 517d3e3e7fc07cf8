"""A real browser, without a screen, and the pages over stores in memory, framed as Airflow frames them."""

import os
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import pytest
import uvicorn
from fastapi import FastAPI
from fastapi.responses import HTMLResponse
from playwright.sync_api import Browser, Page, sync_playwright

from sluice.cli.local.keeping import free_port
from tests.servers.running import ENVIRONMENT
from tests.unit.web.visitor import Visitor

CHROMIUM: Final = ENVIRONMENT / "chromium"
FRAME: Final = '<iframe sandbox="allow-scripts allow-same-origin allow-forms allow-downloads" src="{}"></iframe>'
"""As Airflow shows what a plugin mounts."""

_KNOWN: Final = ("net::ERR_", "can escape its sandboxing")


_FONTS: Final = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>{fonts}</dir><cachedir>{cache}</cachedir></fontconfig>
"""
"""Whatever fonts a machine has, tests see the same."""


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser for the tests of a module: while it is open, no other event loop runs in this thread."""
    if not (CHROMIUM / "chromium").exists():
        pytest.fail(f"{CHROMIUM} is not there: type `make .venv-servers/.ready`, which needs no root")
    folder = tmp_path_factory.mktemp("fonts")
    (folder / "fonts.conf").write_text(_FONTS.format(fonts=CHROMIUM / "fonts", cache=folder / "cache"), encoding="utf-8")
    libraries = {"LD_LIBRARY_PATH": str(CHROMIUM / "al2023" / "lib"), "FONTCONFIG_FILE": str(folder / "fonts.conf")}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM / "chromium", env={**os.environ, **libraries})
        yield browser
        browser.close()


@dataclass
class Site:
    """The pages on a port of their own; they can be taken down and brought up again at the same place."""

    visitor: Visitor
    port: int = field(default_factory=free_port)
    _server: uvicorn.Server | None = None
    _thread: threading.Thread | None = None

    def address(self, path: str = "") -> str:
        """Return where a page is."""
        return f"http://127.0.0.1:{self.port}/sluice/{path}"

    def framed(self, path: str) -> str:
        """Return where a page is within a frame."""
        return f"http://127.0.0.1:{self.port}/framed?page=sluice/{path}"

    def up(self) -> None:
        """Serve; there is somebody to talk to once this returns."""
        app = FastAPI()
        app.mount("/sluice", self.visitor.app())
        app.add_api_route("/framed", lambda page: HTMLResponse(FRAME.format(page)))
        bound = socket.create_server(("127.0.0.1", self.port))
        self._server = uvicorn.Server(uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=1))
        self._thread = threading.Thread(target=self._server.run, args=([bound],), daemon=True)
        self._thread.start()

    def down(self) -> None:
        """Serve no more; what is being answered is broken off."""
        assert self._server is not None
        assert self._thread is not None
        self._server.force_exit = self._server.should_exit = True
        self._thread.join()


@dataclass
class Window:
    """A page of the browser that keeps what went wrong on it."""

    page: Page
    complaints: list[str]

    def complaint(self, message: Any) -> None:
        """Keep what the console complains of, such as a break of the page's own policy; but for the frame, and lost servers."""
        if message.type in ("error", "warning") and not any(known in message.text for known in _KNOWN):
            self.complaints.append(message.text)


@pytest.fixture
def window(chromium: Browser) -> Iterator[Window]:
    """A window, on which nothing goes wrong."""
    context = chromium.new_context(viewport={"width": 1200, "height": 900})
    opened = Window(context.new_page(), [])
    opened.page.on("console", opened.complaint)
    opened.page.on("pageerror", lambda error: opened.complaints.append(str(error)))
    opened.page.set_default_timeout(20_000)
    yield opened
    context.close()
    assert opened.complaints == []
