"""Windows as people write them, and whose outcome a run has."""

from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError

from sluice.errors import UsageInvalid
from sluice.model.base import RunId
from sluice.model.lifecycle import RunStatus
from sluice.model.run import Window, parse_window
from tests.support.nouns import a_run

START, END = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00+01:00"
NAMES = ("from", "to")


def test_a_window_is_read_with_its_time_zones() -> None:
    """Both moments arrive as the instants they were written for; none at all is no window."""
    window = parse_window(START, END, NAMES)
    assert window == Window(start=datetime(2026, 1, 1, tzinfo=UTC), end=datetime(2026, 1, 31, 23, tzinfo=UTC))
    assert parse_window(None, None, NAMES) is None


@pytest.mark.parametrize(
    ("start", "end", "problems"),
    [
        (START, None, ["to is missing: a window needs both from and to"]),
        (None, END, ["from is missing: a window needs both from and to"]),
        (END, START, [f"to {START} is not after from {END}"]),
        (START, START, [f"to {START} is not after from {START}"]),
        ("x", 7, ["from 'x' is no time such as 2026-01-31T00:00:00Z", "to 7 is no time such as 2026-01-31T00:00:00Z"]),
        ("2026-01-01", END, ["from 2026-01-01 has no time zone; write 2026-01-01T00:00:00Z for UTC"]),
        ("0001-01-01T00:00:00+14:00", END, ["from 0001-01-01T00:00:00+14:00 is not in the years 1000 to 9000"]),
        (START, "9999-12-31T23:59:59-14:00", ["to 9999-12-31T23:59:59-14:00 is not in the years 1000 to 9000"]),
    ],
)
def test_what_is_no_window_is_refused_by_name(start: Any, end: Any, problems: list[str]) -> None:
    """Everything that is wrong is told at once, by the names the asker knows."""
    with pytest.raises(UsageInvalid) as caught:
        parse_window(start, end, NAMES)
    assert caught.value.facts["problems"] == problems
    assert caught.value.message == "\n".join(problems)


def test_no_window_is_empty() -> None:
    """Whoever makes one, by whatever way: it ends after it starts."""
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    with pytest.raises(ValidationError, match="window ends at 2026-01-01"):
        Window(start=moment, end=moment)


@pytest.mark.parametrize("status", list(RunStatus))
def test_only_a_run_that_waits_for_another_is_following(status: RunStatus) -> None:
    """One that waits without another run waits for a person."""
    assert not a_run(status=status).is_following
    assert a_run(status=status, follows=RunId("owner")).is_following is (status is RunStatus.WAITING)


@pytest.mark.parametrize(
    ("follows", "force", "worked_by"), [(None, False, "run-1"), ("owner", False, "owner"), ("owner", True, "run-1")]
)
def test_whose_work_the_outcome_of_a_run_is(follows: str | None, worked_by: str, *, force: bool) -> None:
    """That of the run it followed, unless no other's would do."""
    assert a_run("run-1", follows=follows, force=force).worked_by == worked_by
