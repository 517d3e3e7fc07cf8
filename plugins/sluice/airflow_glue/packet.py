"""A review in, the Markdown that a person decides by in Airflow out."""

import re
from typing import Final

from sluice.model.ledger import Outcome
from sluice.model.lifecycle import Verdict
from sluice.model.review import Review
from sluice.model.run import Run
from sluice.model.spec import SyncSpec

_MARKUP: Final = re.compile(r"([\\`*_{}\[\]()<>#+\-.!|~&])")

_MEANING: Final = {
    Outcome.CREATED: "new in the table",
    Outcome.CHANGED: "differ from what the table holds",
    Outcome.REAPPEARED: "were deleted, are back",
    Outcome.DELETED: "gone from the supplier",
    Outcome.STALE: "older than what the table holds; skipped",
    Outcome.REJECTED: "break a rule of the spec; kept as dead letters",
}


def markdown_text(text: str) -> str:
    """Return text that Markdown shows as it is, on one line."""
    return _MARKUP.sub(r"\\\1", " ".join(text.split()))


def review_subject(spec: SyncSpec, review: Review) -> str:
    """Return the headline of the question."""
    blocked = ", blocked" if review.verdict is Verdict.BLOCKED else ""
    return f"{spec.sync}{blocked}: change {review.figures.writes:,} rows of {spec.target.table}?"


def review_body(run: Run, review: Review) -> str:
    """Return what would happen, why policy does not let it pass, and where to look deeper."""
    figures = review.figures
    lines = [
        "**Blocked**: something is likely wrong at the supplier. Look before you approve."
        if review.verdict is Verdict.BLOCKED
        else "This needs a person to decide:",
        "",
        *(f"- {markdown_text(reason)}" for reason in review.reasons),
        "",
        "| objects | number | |",
        "| --- | ---: | --- |",
        *(f"| {outcome.value} | {figures.count(outcome):,} | {meaning} |" for outcome, meaning in _MEANING.items()),
        f"| unchanged | {figures.unchanged + figures.count(Outcome.REFRESHED):,} | |",
        f"| **seen** | {figures.seen:,} | {figures.live_before:,} are in the table now |",
        "",
    ]
    if figures.shards_failed:
        lines += [f"{figures.shards_failed} shards failed and are left out; nothing is deleted because of that.", ""]
    lines += [
        f"Mode {run.mode}, run `{run.id}`, review `{review.id}`.",
        "",
        f"To look deeper: the tab *Sluice* of this DAG run, or `sluice review show {review.id}`.",
        "",
        "- *Approve* publishes all of it.",
        "- *Approve without deletions* leaves deleted objects in the table.",
        "- *Reject* publishes nothing and ends the run.",
    ]
    return "\n".join(lines)
