"""Fixtures that hand tests a database, a bucket and a supplier of their own, on servers that one session shares."""

import atexit
import os
import shutil
import signal
import sys
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import structlog
from structlog._config import BoundLoggerLazyProxy

from sluice.cli.local.postgres import PostgresServer
from sluice.cli.local.s3 import S3Server
from sluice.ports import ConnectionInfo
from tests.support import servers
from tests.support.summary import summary_of

# A shell that starts the tests in the background has them ignore Ctrl-C, and with them all that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)

# A busy machine is no bug: speed is measured by the benchmarks.
hypothesis.settings.register_profile("patient", deadline=None)
hypothesis.settings.load_profile("patient")

# Workers of tests keep their copies of artifacts where nobody else looks.
os.environ["SLUICE_CACHE"] = tempfile.mkdtemp(prefix="sluice-cache-")
atexit.register(shutil.rmtree, os.environ["SLUICE_CACHE"], ignore_errors=True)


COSTLY_TO_SET_UP = ("chaos", "dags", "distributed")
"""Folders whose tests share what takes long to start: of several processes that test, one takes all of a folder."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Spread the tests over processes by file, those that share a costly set-up by folder."""
    from xdist.scheduler.loadscope import LoadScopeScheduling

    class ByPlace(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            folder = file.split("/")[1]
            return folder if folder in COSTLY_TO_SET_UP else file

    return ByPlace(config, log)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand the lines over to the process that prints them, where another one does."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["summary"] = summary_of(session.config)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take the lines of a process that has ended."""
    summary_of(node.config).extend(getattr(node, "workeroutput", {}).get("summary", []))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print what tests had to say about the session as a whole."""
    if lines := summary_of(config):
        terminalreporter.section("what was done")
        for line in lines:
            terminalreporter.write_line(line)


_AIRFLOW_LOGS: dict[str, Any] = {}
"""What Airflow has made of structlog, since it does so only once."""


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Undo what Airflow, or a command, has made of structlog in this process, unless it is Airflow that is tested."""
    if "dags" in item.path.parts:
        if _AIRFLOW_LOGS and not structlog.is_configured():
            structlog.configure(**_AIRFLOW_LOGS)
        return
    if not structlog.is_configured():
        return
    if type(structlog.get_config()["logger_factory"]).__module__.startswith("airflow."):
        _AIRFLOW_LOGS.update(structlog.get_config())
    structlog.reset_defaults()
    for name, module in list(sys.modules.items()):
        if name.startswith("sluice."):
            for logger in vars(module).values():
                if isinstance(logger, BoundLoggerLazyProxy):
                    vars(logger).pop("bind", None)  # where Airflow has it cached, with its own processors


@pytest.fixture(scope="session")
def session_folder() -> Iterator[Path]:
    """A folder for this session's servers."""
    with servers.session_folder() as folder:
        yield folder


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A Postgres server for the session."""
    with servers.session_folder(servers.quickest_place()) as folder, servers.postgres(folder) as server:
        yield server


@pytest.fixture(scope="session")
def s3(session_folder: Path) -> Iterator[S3Server]:
    """An S3 API for the session."""
    with servers.s3(session_folder) as server:
        yield server


@pytest.fixture(scope="session")
def migrated_template(postgres: PostgresServer) -> str:
    """The name of a database with both schemas, for cloning."""
    return servers.migrated_template(postgres)


@pytest.fixture
def empty_database(postgres: PostgresServer) -> Iterator[ConnectionInfo]:
    """A fresh database with nothing in it."""
    with servers.throw_away_database(postgres) as info:
        yield info


@pytest.fixture
def database(postgres: PostgresServer, migrated_template: str) -> Iterator[ConnectionInfo]:
    """A fresh database with both schemas."""
    with servers.throw_away_database(postgres, migrated_template) as info:
        yield info


@pytest.fixture
def artifacts(s3: S3Server) -> ConnectionInfo:
    """A fresh bucket."""
    return servers.new_bucket(s3, f"test-{uuid.uuid4().hex}")


@pytest.fixture(scope="session")
def session_supplier(session_folder: Path) -> Iterator[servers.Supplier]:
    """The demo supplier, for the session."""
    supplier = servers.Supplier(session_folder)
    yield supplier
    supplier.stop()


@pytest.fixture
def supplier(session_supplier: servers.Supplier) -> servers.Supplier:
    """The demo supplier, as if nobody had used it before."""
    session_supplier.reset()
    return session_supplier
