"""The pages of the docs that are written from the code say what the code says."""

import runpy
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("script", ["draw_lifecycle", "list_commands", "list_decisions", "list_errors", "list_models"])
def test_generated_pages_are_up_to_date(script: str) -> None:
    """`make docs` would change nothing: keys, commands, errors, acts, states and decisions are told as they are."""
    pages = runpy.run_path(str(DOCS / f"{script}.py"))["pages"]()
    assert pages
    for path, text in pages.items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name} is not up to date: run `make docs`"
