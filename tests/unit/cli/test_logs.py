"""Which log events reach a person's eyes, and that the listener gets all of them."""

import logging
from collections.abc import Iterator

import pytest
import structlog
from structlog.typing import EventDict, WrappedLogger

from sluice.cli.logs import configure_logs
from sluice.guard.log_level import logged_from


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
    log.debug("sluice.page", records=1)
    log.info("working", shard="a")
    log.warning("careful", shard="a")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert [word for word in ("page", "working", "careful") if word in captured.err] == shown
    assert heard == ["sluice.page", "working", "careful"]


@pytest.mark.parametrize(("level", "shown"), [("debug", ["page", "working"]), ("info", ["working"]), ("warning", [])])
def test_verbose_shows_what_the_stage_logs(capsys: pytest.CaptureFixture[str], level: str, shown: list[str]) -> None:
    """Of one stage every page, of another nothing but warnings; what others have to say at level debug is never shown."""
    configure_logs(verbose=True)
    log = structlog.get_logger()
    with logged_from(level):
        log.debug("sluice.page")
        log.info("sluice.working")
        log.debug("a library's detail")
    told = capsys.readouterr().err
    assert [word for word in ("page", "working", "detail") if word in told] == shown


def test_the_pool_tells_nothing_of_its_own(caplog: pytest.LogCaptureFixture) -> None:
    """A database that is down is told of once, by our own error."""
    configure_logs(verbose=True)
    logging.getLogger("psycopg.pool").warning("error connecting in 'pool-1': ...")
    assert caplog.records == []
