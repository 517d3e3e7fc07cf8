"""`python docs/draw_lifecycle.py` draws docs/lifecycle.md from the transition tables, so that it cannot drift from the code."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from sluice.model.lifecycle import REVIEW_TRANSITIONS, RUN_TRANSITIONS, SHARD_TRANSITIONS

PAGE: Final = Path(__file__).with_name("lifecycle.md")

_HEAD: Final = """\
# States

Drawn from `plugins/sluice/model/lifecycle.py`, which is the whole truth: a transition that is not here is refused, by name.
"""


def page() -> str:
    """Return the text of the page."""
    parts = [_HEAD]
    for title, table in (("Run", RUN_TRANSITIONS), ("Shard", SHARD_TRANSITIONS), ("Review", REVIEW_TRANSITIONS)):
        parts.append(f"## {title}\n\n```mermaid\nstateDiagram-v2\n{_arrows(table)}\n```\n")
    return "\n".join(parts)


def _arrows(table: Mapping[tuple[Any, Any], Any]) -> str:
    return "\n".join(
        f"    {str(state).replace('-', '_')} --> {str(after).replace('-', '_')}: {event}"
        for (state, event), after in table.items()
    )


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
