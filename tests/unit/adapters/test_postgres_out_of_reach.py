"""What is told of a database that does not answer."""

import psycopg
import pytest

from sluice.adapters.postgres import translated
from sluice.errors import StateUnavailable
from sluice.ports import ConnectionInfo


def test_what_libpq_says_in_several_lines_is_told_in_one() -> None:
    """Hints that libpq indents stand behind the reason, and the place behind what is out of reach."""
    info = ConnectionInfo("sluice_state", "postgres", "db", 5432, None, None, None, {})
    with pytest.raises(StateUnavailable) as told, translated(info, StateUnavailable):
        raise psycopg.OperationalError("connection refused\n\tIs the server running?\n")
    assert told.value.message == (
        "The state database (connection sluice_state) cannot be reached (connection sluice_state, db:5432): "
        "connection refused Is the server running?"
    )
