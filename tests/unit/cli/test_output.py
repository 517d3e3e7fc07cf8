"""Output: what a terminal may be shown, and what programs read."""

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest

from sluice.cli.output import Output, as_json, numeral, printable, spell, table
from sluice.model.ledger import Outcome


def test_text_cannot_steer_the_terminal() -> None:
    """Escape sequences, bells and direction marks that a supplier wrote are shown, not obeyed."""
    assert printable("a\x1b[31mb\x07\n\u202ec é").plain == "a\\x1b[31mb\\x07\n\\u202ec é"


def test_markup_is_text(capsys: pytest.CaptureFixture[str]) -> None:
    """What looks like a style in a name is printed as it stands, also inside a table."""
    output = Output()
    output.result({}, lambda console: console.print(table(["name"], [["[red]x[/red]"]])))
    assert "[red]x[/red]" in capsys.readouterr().out


def test_nothing_is_cut_short_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    """Where there is no terminal, a long value stays on one line."""
    output = Output()
    output.result({}, lambda console: console.print(table(["a", "b"], [["x" * 100, "y" * 100]])))
    assert "x" * 100 in capsys.readouterr().out


def test_json_goes_to_stdout_and_all_else_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    """With --json, stdout is one document, whatever else is said."""
    output = Output(as_json=True)
    output.note("on my way")
    output.fail("no", "try again")
    output.result({"at": datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=1)))}, lambda console: console.print("drawn"))
    captured = capsys.readouterr()
    assert json.loads(captured.out) == {"at": "2025-12-31T23:00:00Z"}
    assert captured.err == "on my way\nno\ntry again\n"


def test_json_holds_what_models_hold() -> None:
    """Hashes, durations and outcomes have a form in JSON; anything unknown is an error and not a guess."""
    document = {"hash": b"\x00\xff", "for": timedelta(minutes=90), "counts": {Outcome.CREATED: 1}, "of": (1, None)}
    assert json.loads(as_json(document)) == {"hash": "00ff", "for": "90m", "counts": {"created": 1}, "of": [1, None]}
    with pytest.raises(TypeError, match="object has no form in JSON"):
        as_json({"x": object()})


def test_a_number_that_is_a_name_can_be_typed_as_it_stands() -> None:
    """It has no separators; where there is none, nothing is shown."""
    assert (numeral(1017), numeral(None)) == ("1017", "")


@pytest.mark.parametrize(
    ("value", "spelled"),
    [
        (None, ""),
        (True, "yes"),
        (1234567, "1,234,567"),
        (datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), "2026-01-02 03:04:05Z"),
        (timedelta(hours=2), "2h"),
        (b"\x01", "01"),
        ("text", "text"),
    ],
)
def test_values_are_spelled_for_people(value: object, spelled: str) -> None:
    """Numbers have separators, times are in UTC, nothing is empty."""
    assert spell(value) == spelled
