"""Which log events reach a person's eyes, and that the listener gets all of them."""

import logging
from collections.abc import Iterator

import pytest
import structlog
from structlog.typing import EventDict, WrappedLogger

from sluice.cli.logs import configure_logs


@pytest.fixture(autouse=True)
def defaults() -> Iterator[None]:
    """Leave structlog as it was."""
    yield
    structlog.reset_defaults()


@pytest.mark.parametrize(("verbose", "shown"), [(False, ["careful"]), (True, ["working", "careful"])])
def test_only_what_was_asked_for_is_shown(capsys: pytest.CaptureFixture[str], verbose: bool, shown: list[str]) -> None:
    """Warnings are always shown, events with --verbose, both on stderr; the listener hears of every page."""
    heard: list[str] = []

    def listener(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
        heard.append(event["event"])
        return event

    configure_logs(verbose=verbose, listener=listener)
    log = structlog.get_logger()
    log.debug("page", records=1)
    log.info("working", shard="a")
    log.warning("careful", shard="a")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert [word for word in ("page", "working", "careful") if word in captured.err] == shown
    assert heard == ["page", "working", "careful"]


def test_the_pool_tells_nothing_of_its_own(caplog: pytest.LogCaptureFixture) -> None:
    """A database that is down is told of once, by our own error."""
    configure_logs(verbose=True)
    logging.getLogger("psycopg.pool").warning("error connecting in 'pool-1': ...")
    assert caplog.records == []
