"""What a call of the command takes from the project around it and from its local stack."""

from pathlib import Path

import pytest

from sluice.cli.session import Session
from sluice.errors import ConnectionInvalid
from sluice.ports import Connections


def no_airflow() -> Connections:
    """There is no Airflow to ask."""
    raise ConnectionInvalid


@pytest.mark.parametrize(("set_already", "cache"), [(None, "/stack/cache"), ("/mine", "/mine")])
def test_the_cache_is_where_the_local_stack_keeps_its_own(
    project: Path, monkeypatch: pytest.MonkeyPatch, set_already: str | None, cache: str
) -> None:
    """A command beside a running stack keeps its copies below the project unless told otherwise, not in the user's home."""
    monkeypatch.setenv("SLUICE_CACHE", set_already or "")
    if set_already is None:
        monkeypatch.delenv("SLUICE_CACHE")
    (project / ".sluice").mkdir()
    (project / ".sluice/env").write_text("SLUICE_CACHE=/stack/cache\n")
    assert Session(airflow=no_airflow).settings().cache == Path(cache)
