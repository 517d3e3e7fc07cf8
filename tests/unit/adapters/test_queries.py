"""Named queries out of `.sql` files."""

import re
from importlib.resources import files

import pytest

from sluice.adapters.queries import Queries

PACKAGES = ["sluice.adapters.state", "sluice.adapters.ledger"]
FILES = [(package, file.name) for package in PACKAGES for file in files(package).iterdir() if file.name.endswith(".sql")]


@pytest.mark.parametrize(("package", "file"), FILES)
def test_each_query_has_a_sentence_and_a_statement(package: str, file: str) -> None:
    """Below its name stands what a query is for, then one statement, without a semicolon."""
    queries = Queries(package, file)
    assert len(queries) >= 1
    for name, statement in queries.items():
        assert re.match(r"-- [A-Z].*[^-]\.\n(--.*\n)*[a-z]", statement), f"{file}: {name}"
        assert ";" not in re.sub("--.*", "", statement), f"{file}: {name}"


def test_an_unknown_query_is_refused_by_name() -> None:
    """The error says which queries there are."""
    with pytest.raises(KeyError, match=r"event\.sql has no query appendix; it has append"):
        _ = Queries("sluice.adapters.state", "event.sql")["appendix"]
