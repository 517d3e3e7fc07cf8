"""What is told of requests to a supplier."""

import pytest
from structlog.testing import capture_logs

from sluice.adapters.sources.telling import told
from sluice.errors import SupplierUnavailable


def test_a_request_is_told_once_it_is_over() -> None:
    """With what is known of its answer."""
    with capture_logs() as logs, told("GET", "http://a/first") as answer:
        answer.address, answer.status, answer.bytes = "http://a/second", 200, 7
        assert logs == []
    [event] = logs
    assert event.pop("seconds") >= 0
    assert event == {
        "event": "sluice.request_answered",
        "log_level": "debug",
        "method": "GET",
        "address": "http://a/second",
        "status": 200,
        "bytes": 7,
        "error": None,
    }


def test_a_request_that_failed_is_told_by_its_error() -> None:
    """And the error goes on."""
    with capture_logs() as logs, pytest.raises(SupplierUnavailable), told("GET", "http://a/"):
        raise SupplierUnavailable
    assert [(event["status"], event["bytes"], event["error"]) for event in logs] == [(None, None, "SupplierUnavailable")]


def test_what_is_yet_to_come_is_told_by_whoever_reads_it() -> None:
    """So that it is not told twice."""
    with capture_logs() as logs, told("GET", "http://a/") as answer:
        answer.is_over = False
    assert logs == []
