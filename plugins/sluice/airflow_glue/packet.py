"""A review and its evidence in, the Markdown that a person decides by in Airflow out: short, with a link to all of it.

Airflow renders GitHub's Markdown and drops HTML, together with what follows it. Words of ours with others' in them are escaped;
values of the supplier stand in code spans, where nothing is markup and no address becomes a link.
"""

import re
from collections.abc import Iterator
from typing import Final

from sluice.checks.policy import is_mass_deletion
from sluice.model.airflow_names import DELETES_AT_MOST, review_url
from sluice.model.evidence import Evidence, FieldChange, ObjectSample
from sluice.model.ledger import Outcome
from sluice.model.lifecycle import Verdict
from sluice.model.review import Review
from sluice.model.run import Run
from sluice.model.spec import SyncSpec
from sluice.packet.words import VERDICTS, counts_of, spelled

_MARKUP: Final = re.compile(r"([\\`*_{}\[\]()<>#+\-.!|~&])")
_LONGEST_VALUE: Final = 60
"""Characters of a value: the packet has more of it."""
_LONGEST_SENTENCE: Final = 480
"""Characters: a refusal that names a review and what to do instead is read to its end."""
_REASONS: Final = 8
_STATEMENTS: Final = 5
_FIELDS: Final = 5
_DRIFTS: Final = 5
_SAMPLES: Final = 3
"""Objects of each outcome that people look at before they let it pass."""
_VALUES: Final = 2
_SAMPLED: Final = (Outcome.DELETED, Outcome.CHANGED, Outcome.CREATED)


def markdown_text(text: str) -> str:
    """Return text that Markdown shows as it is, on one line."""
    return _MARKUP.sub(r"\\\1", _short(" ".join(text.split()), _LONGEST_SENTENCE))


def markdown_value(text: str | None) -> str:
    """Return a value of the supplier as a code span, short; outside of tables, where a `|` would end it."""
    if not text:
        return "*null*" if text is None else "*empty text*"
    cut = _short(text, _LONGEST_VALUE)
    fence = "`" * (1 + max(map(len, re.findall("`+", cut)), default=0))
    return f"{fence} {cut} {fence}" if "`" in cut or not cut.strip() else f"{fence}{cut}{fence}"


def _short(text: str, longest: int) -> str:
    """Return a text with what acts unseen spelled out, and cut after that."""
    shown = spelled(text, longest)
    return shown if len(shown) <= longest + 1 else f"{shown[:longest]}…"


def review_subject(spec: SyncSpec, review: Review) -> str:
    """Return the headline of the question."""
    blocked = ", blocked" if review.verdict is Verdict.BLOCKED else ""
    return f"{spec.sync}{blocked}: change {review.figures.writes:,} rows of {spec.target.table}?"


def review_body(spec: SyncSpec, run: Run, review: Review, evidence: Evidence | None, airflow_url: str | None) -> str:
    """Return what would happen, why policy does not let it pass, and where to look deeper; without evidence, less of it."""
    parts = [
        f"**{VERDICTS.get(review.verdict, 'This needs a person to decide.')}**",
        "\n".join(_reasons(review)),
        "\n".join(_counts(review)),
        *(_evidence(spec, review, evidence) if evidence is not None else ()),
        _where_to_look(run, review, airflow_url),
        "\n".join(_answers(spec, review)),
    ]
    return "\n\n".join(part for part in parts if part)


def _reasons(review: Review) -> Iterator[str]:
    for reason in review.reasons[:_REASONS]:
        yield f"- {markdown_text(reason)}"
    if more := len(review.reasons[_REASONS:]):
        yield f"- and {more} more reasons: see the packet"


def _counts(review: Review) -> Iterator[str]:
    yield "| objects | number | |"
    yield "| --- | ---: | --- |"
    for name, number, meaning in counts_of(review.figures):
        yield f"| {name} | {number:,} | {meaning} |"


def _evidence(spec: SyncSpec, review: Review, evidence: Evidence) -> Iterator[str]:
    if evidence.schema_changes:
        more = len(evidence.schema_changes[_STATEMENTS:])
        rest = [f"- and {more} more statements"] if more else []
        lines = [f"- {markdown_text(statement)}" for statement in evidence.schema_changes[:_STATEMENTS]]
        yield "\n".join(["**The table itself would change**", "", *lines, *rest])
    if (ahead := evidence.postdated) is not None:
        yield f"**Dated after the fetch**: {ahead.objects:,}, first: {markdown_value(ahead.key)} {markdown_value(ahead.value)}"
    if evidence.changes:
        more = len(evidence.changes[_FIELDS:])
        rest = [f"- and {more} more fields"] if more else []
        yield "\n".join(["**Fields that change**", "", *map(_change, evidence.changes[:_FIELDS]), *rest])
    limit = spec.review.auto_approve.drift
    if far := [drift for drift in evidence.drifts if drift.value > limit]:
        lines = [f"- `{drift.field}`: {drift.measure.value} {drift.value:.3f}" for drift in far[:_DRIFTS]]
        more = len(far[_DRIFTS:])
        rest = [f"- and {more} more fields"] if more else []
        yield "\n".join([f"**Drift since the last publication** above {limit:g}", "", *lines, *rest])
    for outcome in _SAMPLED:
        if some := [sample for sample in evidence.samples if sample.outcome is outcome][:_SAMPLES]:
            in_all = max(review.figures.count(outcome), len(some))
            yield "\n".join(
                [
                    f"**{outcome.value.capitalize()}**, {len(some)} of {in_all:,}",
                    "",
                    *(_sample(spec, sample) for sample in some),
                ]
            )


def _change(change: FieldChange) -> str:
    such_as = ""
    if change.samples:
        key, old, new = change.samples[0]
        such_as = f", such as {markdown_value(key)}: {markdown_value(old)} → {markdown_value(new)}"
    return f"- `{change.field}` of {change.objects:,} objects{such_as}"


def _sample(spec: SyncSpec, sample: ObjectSample) -> str:
    """Return one line of an object: what changes of it, or the first of its fields, but those of its key."""
    others = [value for value in sample.values if value.field not in spec.object.key]
    shown, more = others[:_VALUES], len(others[_VALUES:])
    if sample.outcome is Outcome.CHANGED:
        values = [f"`{value.field}` {markdown_value(value.old)} → {markdown_value(value.new)}" for value in shown]
    else:
        values = [f"`{value.field}` {markdown_value(value.old if value.new is None else value.new)}" for value in shown]
    rest = [f"{more} more"] if more else []
    return f"- {markdown_value(sample.key)}" + (": " if values else "") + ", ".join([*values, *rest])


def _where_to_look(run: Run, review: Review, airflow_url: str | None) -> str:
    ids = f"Mode {run.mode.value}, run `{run.id}`, review `{review.id}`."
    command = f"`sluice review show {review.id}`"
    if airflow_url is None:
        return f"{ids} To look deeper: the tab *Sluice* of this DAG run, or {command}."
    page = review_url(airflow_url, run, review)
    packet = f"[the packet]({page}/packet), " if review.report is not None else ""
    return f"{ids} To look deeper: {packet}[the page of the review]({page}), or {command}."


def _answers(spec: SyncSpec, review: Review) -> Iterator[str]:
    deleted = review.figures.count(Outcome.DELETED)
    if not deleted:
        yield "- *Approve* publishes all of it."
    elif is_mass_deletion(spec.review, review.figures):
        yield (
            f"- *Approve* publishes all of it, with {deleted:,} deletions: so many need a number in `{DELETES_AT_MOST}`, "
            f"at least {deleted:,}."
        )
    else:
        yield (
            f"- *Approve* publishes all of it, with {deleted:,} deletions. `{DELETES_AT_MOST}` may say how many at most; "
            "empty: just these."
        )
    yield "- *Approve without deletions* leaves deleted objects in the table."
    yield "- *Reject* publishes nothing and ends the run."
