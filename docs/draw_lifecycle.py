"""`python docs/draw_lifecycle.py` draws docs/lifecycle.md and its images from the transition tables, lest they drift."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from sluice.model.lifecycle import REVIEW_TRANSITIONS, RUN_TRANSITIONS, SHARD_TRANSITIONS, RunStatus, ShardStatus, Verdict

DOCS: Final = Path(__file__).parent

_HEAD: Final = """\
# States

Drawn from `plugins/sluice/model/lifecycle.py`, which is the whole truth: a transition that is not here is refused, by name.
Arrows to the right are above, arrows to the left below; what is in parentheses leaves a state as it is.
"""

_MACHINES: Final[tuple[tuple[str, type[StrEnum], Mapping[tuple[Any, Any], Any]], ...]] = (
    ("Run", RunStatus, RUN_TRANSITIONS),
    ("Shard", ShardStatus, SHARD_TRANSITIONS),
    ("Review", Verdict, REVIEW_TRANSITIONS),
)

_APART, _RISE, _EDGE = 190, 36, 100
"""Pixels between two states, between arrows of different lengths, and to the border."""

Arrows = dict[tuple[str, str], str]
"""From which state to which, by which events."""


def pages() -> dict[Path, str]:
    """Return the text of the page, and of each image."""
    parts, images = [_HEAD], {}
    for title, states, table in _MACHINES:
        arrows = _arrows(table)
        image = f"images/{title.lower()}-states.svg"
        images[DOCS / image] = _drawn([state.value for state in states], arrows)
        rows = [f"| {before} | {events} | {after} |" for (before, after), events in arrows.items()]
        lines = [f"## {title}\n", f"![{title}]({image})\n", "| from | by | to |", "| --- | --- | --- |", *rows, ""]
        parts.append("\n".join(lines))
    return {DOCS / "lifecycle.md": "\n".join(parts), **images}


def _arrows(table: Mapping[tuple[Any, Any], Any]) -> Arrows:
    events: dict[tuple[str, str], list[str]] = defaultdict(list)
    for (before, event), after in table.items():
        events[before.value, after.value].append(event.value)
    return {ends: ", ".join(names) for ends, names in events.items()}


def _drawn(states: list[str], arrows: Arrows) -> str:
    """Return an image: the states in a row, arrows forward above it, and backward below."""
    place = {state: index for index, state in enumerate(states)}
    spans = [place[after] - place[before] for before, after in arrows]
    above, below = 40 + _RISE * max(0, *spans), 50 + _RISE * max(0, *(-span for span in spans))
    width, height = 2 * _EDGE + _APART * (len(states) - 1), above + below + 40
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="13">',
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">',
        '<path d="M0 0L8 4L0 8z" fill="#567"/></marker></defs>',
        f'<rect width="{width}" height="{height}" rx="8" fill="#fff"/>',
    ]
    for (before, after), events in arrows.items():
        lines += _arrow(place[before], place[after], events, above)
    for state, index in place.items():
        lines += _state(state, index, arrows.get((state, state)), above)
    return "\n".join([*lines, "</svg>", ""])


def _arrow(start: int, end: int, events: str, top: int) -> Iterator[str]:
    if start == end:
        return
    way = 1 if end > start else -1
    edge, rise = (top if way > 0 else top + 40), way * (_RISE * abs(end - start) - 6)
    left, right = _EDGE + _APART * start + 16 * way, _EDGE + _APART * end - 16 * way
    bend = edge - rise * 4 / 3
    yield (
        f'<path d="M{left} {edge}C{left} {bend:.0f} {right} {bend:.0f} {right} {edge}" '
        'fill="none" stroke="#567" marker-end="url(#head)"/>'
    )
    yield (
        f'<text x="{(left + right) / 2:.0f}" y="{edge - rise + 4:.0f}" text-anchor="middle" fill="#123" '
        f'stroke="#fff" stroke-width="5" paint-order="stroke">{events}</text>'
    )


def _state(name: str, index: int, loops: str | None, top: int) -> Iterator[str]:
    x = _EDGE + _APART * index
    wide = 12 + 7 * max(len(name), len(loops or "") + 2)
    yield f'<rect x="{x - wide / 2:.0f}" y="{top}" width="{wide}" height="40" rx="6" fill="#eef3f8" stroke="#567"/>'
    yield f'<text x="{x}" y="{top + (17 if loops else 25)}" text-anchor="middle" font-weight="bold" fill="#123">{name}</text>'
    if loops:
        yield f'<text x="{x}" y="{top + 33}" text-anchor="middle" fill="#123">({loops})</text>'


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
