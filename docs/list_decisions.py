"""`python docs/list_decisions.py` writes docs/adr/index.md from the decisions themselves, so that none is left out."""

from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).with_name("adr")

_HEAD: Final = """\
# Decisions

Why it is built this way: what a newcomer would question, each in a page of context, decision and consequence.

"""


def pages() -> dict[Path, str]:
    """Return the text of the page."""
    decisions = sorted(path for path in FOLDER.glob("*.md") if path.name != "index.md")
    lines = [f"- [{_title(path)}]({path.name})" for path in decisions]
    return {FOLDER / "index.md": _HEAD + "\n".join(lines) + "\n"}


def _title(path: Path) -> str:
    return path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
