"""Values of the supplier in, text that shows them for what they are out: bounded, and without characters that act unseen."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from sluice.model.evidence import LONGEST_VALUE
from sluice.model.fields import TypeName
from sluice.model.ledger import Outcome
from sluice.model.lifecycle import Verdict
from sluice.model.review import Figures
from sluice.model.spec import SyncSpec

MEANINGS: Final = {
    Outcome.CREATED: "new in the table",
    Outcome.CHANGED: "differ from what the table holds",
    Outcome.REAPPEARED: "were deleted, are back",
    Outcome.DELETED: "gone from the supplier, or said by it to be gone",
    Outcome.ROLLED_BACK: "put back as they were before the publication that is undone",
    Outcome.STALE: "older than what the table holds; skipped",
    Outcome.REJECTED: "break a rule of the spec; kept as dead letters",
    Outcome.REFRESHED: "delivered in other bytes, with the same row",
}
"""What each outcome says of its objects."""

VERDICTS: Final = {
    Verdict.AUTO_APPROVED: "Within the limits of the policy: it is published without a person.",
    Verdict.NEEDS_HUMAN: "A person has to decide.",
    Verdict.BLOCKED: "Blocked: something is likely wrong at the supplier. Look before you approve.",
}
"""What each verdict of the policy asks for."""

_ALWAYS: Final = (Outcome.CREATED, Outcome.CHANGED, Outcome.DELETED)
"""Outcomes whose number is told even where it is nought."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TIMES: Final = frozenset({TypeName.DATE, TypeName.TIMESTAMPTZ})
"""Types that count from the epoch: versions in microseconds, bins of a histogram in seconds."""
_MICROSECONDS: Final = 1_000_000


_LONGEST_SENTENCE: Final = 2000
"""Characters of a reason or a failure."""


class Marked(NamedTuple):
    """A value in three parts, of which the middle one is what differs."""

    head: str
    middle: str
    tail: str


class Counted(NamedTuple):
    """How many objects there are of some kind."""

    name: str
    number: int
    meaning: str


def counts_of(figures: Figures) -> list[Counted]:
    """Return the figures of a review, with what they mean."""
    if figures.conflicts or figures.count(Outcome.ROLLED_BACK):
        return _undone(figures)
    counts = [
        Counted(outcome.value, figures.count(outcome), meaning)
        for outcome, meaning in MEANINGS.items()
        if figures.count(outcome) or outcome in _ALWAYS
    ]
    if figures.vanished > figures.count(Outcome.DELETED):
        counts.append(
            Counted("vanished", figures.vanished, "in the table, but not delivered or said to be gone; deletions are ignored")
        )
    if figures.moved:
        counts.append(Counted("moved", figures.moved, "delivered by another shard than the last time"))
    if figures.first_loaded:
        counts.append(
            Counted("first loaded", figures.first_loaded, "of the created ones: the table holds nothing of their shards")
        )
    if figures.shards_failed:
        counts.append(Counted("shards failed", figures.shards_failed, "left out; nothing is deleted because of that"))
    return [
        *counts,
        Counted("unchanged", figures.unchanged, "just as the table holds them"),
        Counted("seen", figures.seen, "delivered by the supplier, rejected ones included"),
        Counted("in the table", figures.live_before, "before this run"),
    ]


def _undone(figures: Figures) -> list[Counted]:
    """Return the figures of a review that takes a publication back."""
    restored = Counted(Outcome.ROLLED_BACK.value, figures.count(Outcome.ROLLED_BACK), MEANINGS[Outcome.ROLLED_BACK])
    return [
        restored,
        Counted("conflicts", figures.conflicts, "changed since, and left alone"),
        Counted("published", figures.seen, "objects of the publication that is undone"),
        Counted("in the table", figures.live_before, "before this run"),
    ]


def spelled(text: str, longest: int = LONGEST_VALUE) -> str:
    r"""Return text, what a page would hide, reorder or swallow spelled out, as `\u202e`; cut where it is too long."""
    cut = text if len(text) <= longest + 1 else f"{text[:longest]}…"
    if cut.isprintable():
        return cut
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in cut)


def sentence(text: str) -> str:
    """Return a sentence with words of the supplier in it, as `spelled`."""
    return spelled(text, _LONGEST_SENTENCE)


def lasting(span: timedelta) -> str:
    """Return a span in its largest unit, rounded down: `3h`."""
    seconds = int(span.total_seconds())
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= size:
            return f"{seconds // size}{unit}"
    return f"{max(seconds, 0)}s"


def pretty(record: bytes) -> str:
    """Return a record of the supplier's as people read it: indented if it is JSON, else as it is."""
    import msgspec

    try:
        return msgspec.json.format(record, indent=2).decode()
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return record.decode(errors="backslashreplace")


def marked(one: str, other: str) -> Marked:
    """Return `one` as it is spelled, its middle being what it does not share with `other`."""
    mine, yours = spelled(one), spelled(other)
    head = _alike(mine, yours)
    tail = _alike(mine[head:][::-1], yours[head:][::-1])
    end = len(mine) - tail
    return Marked(mine[:head], mine[head:end], mine[end:])


def _alike(one: str, other: str) -> int:
    """Return how many characters both begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (mine, yours) in pairs if mine != yours), min(len(one), len(other)))


def share(part: int, whole: int) -> str:
    """Return a share in percent; one that is not nothing never reads as nothing, nor one that is not all as all."""
    if not part or part == whole:
        return "100%" if part else "0%"
    percent = 100 * part / whole
    return "< 0.1%" if percent < 0.1 else "> 99.9%" if percent > 99.9 else f"{percent:.1f}%"  # noqa: PLR2004


def is_time(spec: SyncSpec, field: str | None) -> bool:
    """Whether a field of the spec holds dates or times; one that the spec does not have holds none."""
    return any(declared.name == field and declared.type.name in _TIMES for declared in spec.fields)


def version_speller(spec: SyncSpec) -> Callable[[int | None], str]:
    """Return what spells versions of the sync's objects; a time keeps its fraction, by which versions may differ."""
    of_time = is_time(spec, spec.object.version)

    def spell(version: int | None) -> str:
        if version is None:
            return ""
        moment = _moment(version) if of_time else None
        return f"{moment} UTC" if moment is not None else str(version)

    return spell


def edge(number: float, *, of_time: bool) -> str:
    """Return the edge of a bin, short."""
    moment = _moment(number * _MICROSECONDS) if of_time else None
    return f"{moment:%Y-%m-%d %H:%M}" if moment is not None else f"{number:.6g}"


def _moment(microseconds: float) -> datetime | None:
    """Return a moment in UTC, or None for what no calendar of Python holds."""
    try:
        return (_EPOCH + timedelta(microseconds=microseconds)).replace(tzinfo=None)
    except (OverflowError, ValueError):
        return None
