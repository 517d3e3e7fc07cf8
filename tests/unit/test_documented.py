"""The pages of the docs tell of all that they have to, and name nothing that is not there."""

import re
from collections.abc import Iterator
from pathlib import Path

import sluice.errors

REPOSITORY = Path(__file__).parents[2]
DOCS = REPOSITORY / "docs"


def leaves(branch: type[sluice.errors.SluiceError]) -> Iterator[str]:
    """Yield the names of the errors below a branch that have none below them."""
    for error in branch.__subclasses__():
        yield from leaves(error) if error.__subclasses__() else [error.__name__]


def test_operations_tell_of_every_error() -> None:
    """Whoever sees an error finds it in docs/operations.md, with what to do."""
    page = (DOCS / "operations.md").read_text(encoding="utf-8")
    assert [name for name in leaves(sluice.errors.SluiceError) if f"`{name}`" not in page] == []


def test_files_that_pages_name_are_there() -> None:
    """A test or a module that has moved is named where it is now."""
    named = {
        (page.name, path)
        for page in DOCS.glob("*.md")
        for path in re.findall(r"`((?:tests|plugins|bench|docs)/[\w/.-]+\.\w+)`", page.read_text(encoding="utf-8"))
    }
    assert named
    assert sorted(each for each in named if not (REPOSITORY / each[1]).exists()) == []
