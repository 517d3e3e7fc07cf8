"""The example of docs/dead-letters.md does what is said of it."""

import re
from pathlib import Path
from typing import Any

from sluice.model.fields import FieldSpec
from sluice.model.reject import Cause
from sluice.model.triage import Proposal, Ward

PAGE = Path(__file__).parents[3] / "docs/dead-letters.md"
BOARD = FieldSpec.model_validate({"name": "board", "type": "text", "map": {"HB": "hb"}})


def test_the_example_works() -> None:
    """It extends the map of the one cause it knows, and sends people to the supplier for all others."""
    (source,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    module: dict[str, Any] = {}
    exec(source, module)  # noqa: S102  it is our own

    def proposed(error: str) -> list[Proposal]:
        cause = Cause(error=error, field="board")
        return list(module["triage"](Ward(sync="hotels", cause=cause, field=BOARD, objects=3, specimens=())))

    (known,) = proposed("unmapped")
    assert known.changes == {"map": {"HB": "hb", "B&B": "bb", "FB": "fb"}}
    (other,) = proposed("type")
    assert (other.because, other.changes) == ("3 objects: call the supplier", {})
