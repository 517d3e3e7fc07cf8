"""Retries are bounded, honour pauses, and are told in the log."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from sluice.errors import RateLimited, Retryable, SluiceError, SupplierRefused, SupplierResting, SupplierUnavailable
from sluice.guard.retries import due_at, patiently, pause_asked_for
from sluice.model.stage import RetryPolicy

NOW = datetime(2024, 1, 1, 12, tzinfo=UTC)
QUICK = RetryPolicy(attempts=3, base=timedelta(milliseconds=1), cap=timedelta(milliseconds=2))


class Call:
    """Raises the errors it is given, then returns."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.times = 0

    def __call__(self) -> str:
        self.times += 1
        if self.errors:
            raise self.errors.pop(0)
        return "done"


def test_returns_after_trouble_and_tells_of_it() -> None:
    """A retryable error is repeated, each time with one event."""
    call = Call(SupplierUnavailable("first"), Retryable("second"))
    with capture_logs() as logs:
        assert patiently(call, QUICK, timedelta(minutes=1)) == "done"
    assert [{k: v for k, v in entry.items() if k != "seconds"} for entry in logs] == [
        {
            "event": "sluice.call_retried",
            "log_level": "warning",
            "attempt": 1,
            "error": "SupplierUnavailable",
            "message": "first",
        },
        {"event": "sluice.call_retried", "log_level": "warning", "attempt": 2, "error": "Retryable", "message": "second"},
    ]
    assert all(0 < entry["seconds"] <= 0.002 for entry in logs)


def test_ends_after_the_last_attempt() -> None:
    """The last error comes through, and the call was made as often as allowed."""
    call = Call(*[SupplierUnavailable(str(number)) for number in range(9)])
    with pytest.raises(SupplierUnavailable, match="2"):
        patiently(call, QUICK, timedelta(minutes=1))
    assert call.times == 3


def test_ends_when_the_time_is_over() -> None:
    """No attempt begins once the time for all of them is spent."""
    call = Call(*[SupplierUnavailable() for _ in range(9)])
    with pytest.raises(SupplierUnavailable):
        patiently(call, QUICK.model_copy(update={"attempts": 20}), timedelta(microseconds=1))
    assert call.times == 1


@pytest.mark.parametrize(
    "error",
    [
        SupplierRefused("no"),
        SupplierResting("until noon"),
        ValueError("bug"),
        RateLimited("an hour", retry_after=3600),
        RateLimited("longer than there is time", retry_after=61),
    ],
)
def test_does_not_repeat_what_will_not_help(error: Exception) -> None:
    """Permanent errors, bugs, a supplier that rests, and pauses too long to wait for come through at once."""
    call = Call(error)
    with pytest.raises(type(error)):
        patiently(call, QUICK, timedelta(minutes=1))
    assert call.times == 1


def test_waits_at_least_as_long_as_asked() -> None:
    """A pause asked for is not shortened to the policy's cap."""
    with capture_logs() as logs:
        patiently(Call(RateLimited(retry_after=0.05)), QUICK, timedelta(minutes=1))
    assert 0.05 <= logs[0]["seconds"] <= 0.06


def test_pauses_together_are_no_longer_than_there_is_time() -> None:
    """A pause that would have been waited for at first is not once too little time is left for it."""
    call = Call(*[RateLimited(retry_after=0.3)] * 9)
    with pytest.raises(RateLimited):
        patiently(call, QUICK.model_copy(update={"attempts": 9}), timedelta(seconds=0.5))
    assert call.times == 2


def waits_of(retry: RetryPolicy) -> list[float]:
    """Return the seconds a call that keeps failing waits between its tries, as they are logged."""
    with capture_logs() as logs, pytest.raises(SupplierUnavailable):
        patiently(Call(*[SupplierUnavailable()] * retry.attempts), retry, timedelta(minutes=1))
    return [entry["seconds"] for entry in logs]


def test_two_stages_try_as_often_as_each_declares() -> None:
    """`retry.attempts` counts the first try as well."""
    tries = {}
    for attempts in (1, 4):
        call = Call(*[SupplierUnavailable()] * 9)
        with pytest.raises(SupplierUnavailable):
            patiently(call, QUICK.model_copy(update={"attempts": attempts}), timedelta(minutes=1))
        tries[attempts] = call.times
    assert tries == {1: 1, 4: 4}


def test_two_stages_wait_as_long_as_each_declares() -> None:
    """`retry.base` is the wait before the second try, and the longest jitter on top; then it doubles."""
    short, long = (
        waits_of(RetryPolicy(attempts=3, base=timedelta(milliseconds=base), cap=timedelta(minutes=1))) for base in (2, 20)
    )
    assert 0.002 <= short[0] <= 0.004 <= short[1] <= 0.006
    assert 0.02 <= long[0] <= 0.04 <= long[1] <= 0.06


def test_two_stages_wait_no_longer_than_each_declares() -> None:
    """`retry.cap` bounds what grows."""
    capped, free = (
        waits_of(RetryPolicy(attempts=6, base=timedelta(milliseconds=1), cap=timedelta(milliseconds=cap))) for cap in (3, 1000)
    )
    assert max(capped) <= 0.003
    assert max(free) >= 0.016


@pytest.mark.parametrize(
    ("header", "pause"),
    [
        (None, None),
        ("0", 0),
        (" 120 ", 120),
        ("1.5", 1.5),
        (format_datetime(NOW + timedelta(minutes=2), usegmt=True), 120),
        ("Mon, 01 Jan 2024 12:00:30 -0000", 30),
        (format_datetime(NOW - timedelta(days=1), usegmt=True), 0),
        ("-5", 0),
        ("-0.5", 0),
        ("99999999999", 99999999999),
        ("soon", None),
        ("--5", None),
        ("1,5", None),
        ("nan", None),
        ("", None),
        ("1e9", None),
        ("٣", None),
    ],
)
def test_reads_both_forms_of_retry_after(header: str | None, pause: float | None) -> None:
    """Seconds and dates are understood; nonsense is no wish."""
    assert pause_asked_for(header, NOW) == pause


@pytest.mark.parametrize(
    ("error", "due"),
    [
        (RateLimited(retry_after=90), NOW + timedelta(seconds=90)),
        (RateLimited(retry_after=0), NOW),
        (RateLimited(retry_after=1e15), NOW + timedelta(days=365)),
        (RateLimited(), None),
        (SupplierResting(until=NOW + timedelta(minutes=1)), NOW + timedelta(minutes=1)),
        (SupplierResting(), None),
        (RateLimited(retry_after=90, until=NOW), NOW),
        (SupplierUnavailable(), None),
        (ValueError("a bug"), None),
    ],
)
def test_knows_from_when_on_a_call_may_be_repeated(error: Exception, due: datetime | None) -> None:
    """A pause counts from now on unless its end was noted already, a rest has its own end, and all else says nothing."""
    assert due_at(error, NOW) == due


@given(st.text(max_size=40))
def test_no_header_breaks_the_reading(header: str) -> None:
    """Whatever a supplier sends, the pause is a number that is not negative, or none."""
    pause = pause_asked_for(header, NOW)
    assert pause is None or pause >= 0


def test_errors_keep_their_kind() -> None:
    """The error that comes through is the very one that was raised."""
    error = SluiceError("as it was")
    with pytest.raises(SluiceError) as caught:
        patiently(Call(error), QUICK, timedelta(minutes=1))
    assert caught.value is error
