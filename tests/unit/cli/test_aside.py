"""What a team's function prints gets into no result of a command."""

from typing import Any

import pytest

from sluice.cli.aside import aside
from tests.unit.mapping.functions import Function, OutOfReach


def test_prints_go_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    """Stdout is for results; else it is the same function."""

    def talks(frame: Any) -> Any:
        print("hello")  # noqa: T201
        return frame

    function = aside(Function(talks, digest=3))
    assert function is not None
    assert (function("frame"), function.name, function.digest) == ("frame", "transforms.hotels.enrich", 3)
    assert function.where_raised(ValueError()) == "hotels.py:3"
    assert (function.is_outage(OutOfReach()), function.is_outage(ValueError())) == (True, False)
    assert capsys.readouterr() == ("", "hello\n")
    assert aside(None) is None
