"""The example of docs/transforms.md does what is said of it."""

import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.unit.mapping.functions import spec_with, through, values_after

PAGE = Path(__file__).parents[3] / "docs/transforms.md"


@pytest.fixture
def enrich() -> Any:
    """The function of the page."""
    (source,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[:1]
    module: dict[str, Any] = {}
    exec(source, module)  # noqa: S102  it is our own
    return lambda frame: module["enrich"](frame, None)


def test_the_example_works(enrich: Any) -> None:
    """Null stays null, and decimal numbers stay decimal."""
    spec = spec_with({"id": "text", "city": "text", "net": "numeric(10,2)", "gross": "numeric(10,2)"})
    chunk = through(spec, enrich, '{"id": "1", "city": " Vienna ", "net": 1.15}', '{"id": "2", "city": "Graz"}')
    assert chunk.rejects == ()
    assert values_after(spec, chunk) == [
        {"id": "1", "city": "Wien", "net": Decimal("1.15"), "gross": Decimal("1.38")},
        {"id": "2", "city": "Graz", "net": None, "gross": None},
    ]
