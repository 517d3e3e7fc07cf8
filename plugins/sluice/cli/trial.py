"""A trial in; all that came of it out, for people and for programs."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from rich.console import Console

from sluice.cli.output import pairs, printable, table
from sluice.model.evidence import ObjectSample
from sluice.model.ledger import Outcome
from sluice.model.trial import Trial

_RECORDS_SHOWN: Final = 2
_RECORD_CHARACTERS: Final = 1_500
_VALUE_CHARACTERS: Final = 60
_REQUESTS_SHOWN: Final = 30
_WHOLE_ROWS: Final = frozenset({Outcome.CREATED, Outcome.DELETED})


def trial_document(trial: Trial, requests: Sequence[dict[str, Any]], hints: Sequence[str]) -> dict[str, Any]:
    """Return it for programs."""
    return {**trial.model_dump(), "hints": list(hints), "requests": list(requests)}


def draw_trial(console: Console, trial: Trial, requests: Sequence[dict[str, Any]], hints: Sequence[str]) -> None:
    """Draw it for people."""
    _draw_question(console, trial)
    draw_requests(console, requests)
    _draw_records(console, trial)
    _draw_rows(console, trial)
    _draw_rejects(console, trial)
    _draw_comparison(console, trial)
    for hint in hints:
        console.print(printable(f"hint: {hint}", "yellow"), soft_wrap=True)
    if trial.paths:
        console.print(printable(f"the records have: {trial.paths}"), soft_wrap=True)


def draw_requests(console: Console, requests: Sequence[dict[str, Any]]) -> None:
    """Draw what was asked of the supplier."""
    rows = [
        # A status is a name, not a number.
        [seen["method"], seen["address"], str(seen["status"] or seen["error"] or ""), seen["bytes"], seen["milliseconds"]]
        for seen in requests[:_REQUESTS_SHOWN]
    ]
    if rows:
        console.print(table(["request", "address", "answer", "bytes", "ms"], rows, title="Requests"))
    if len(requests) > _REQUESTS_SHOWN:
        console.print(f"and {len(requests) - _REQUESTS_SHOWN:,} more requests: see --json")


def _draw_question(console: Console, trial: Trial) -> None:
    of_shards = f"{trial.shard}, of {trial.shards:,}" if trial.shards > 1 else trial.shard
    given = ", ".join(f"{name} {value}" for name, value in trial.params.items() if value not in ("", trial.shard))
    window = trial.window
    console.print(
        pairs(
            [
                ("sync", trial.sync),
                ("mode", trial.mode),
                ("shard", of_shards),
                ("with", given),
                ("window", f"{window.start.isoformat()} to {window.end.isoformat()}" if window else None),
                ("from", trial.watermark),
                ("until", trial.until),
            ]
        )
    )


def _draw_records(console: Console, trial: Trial) -> None:
    number, pages = len(trial.records), f"{trial.pages:,} page{'s' if trial.pages != 1 else ''}"
    more = "; there are more" if trial.is_cut else ""
    console.print(printable(f"Records: {number:,} of {pages}{more}", "bold"))
    for record in trial.records[:_RECORDS_SHOWN]:
        text = _indented(record)
        console.print(printable(text[:_RECORD_CHARACTERS]), soft_wrap=True)
        if len(text) > _RECORD_CHARACTERS:
            console.print(f"… {len(text) - _RECORD_CHARACTERS:,} characters more: see --json")
    if number > _RECORDS_SHOWN:
        console.print(f"and {number - _RECORDS_SHOWN:,} more: see --json")
    console.print()


def _draw_rows(console: Console, trial: Trial) -> None:
    """Draw rows field by field where there are few of them, so that wide tables stay readable."""
    if not trial.rows:
        console.print(printable("Rows: none", "bold"))
        return
    shown = trial.rows[:_RECORDS_SHOWN]
    rows = [
        [name, kind, *("gone" if row.is_gone else _value(row.values.get(name)) for row in shown)]
        for name, kind in trial.columns.items()
    ]
    columns = ["column", "type", *(f"row {place}" for place in range(1, len(shown) + 1))]
    console.print(table(columns, rows, title=f"Rows: {len(trial.rows):,}"))
    if len(trial.rows) > len(shown):
        console.print(f"and {len(trial.rows) - len(shown):,} more: see --json")


def _draw_rejects(console: Console, trial: Trial) -> None:
    if trial.rejects:
        rows = [[f"{reject.record + 1}", reject.key, reject.field, reject.error, reject.message] for reject in trial.rejects]
        console.print(table(["record", "object", "field", "breaks", "reason"], rows, title=f"Rejected: {len(rows):,}"))


def _draw_comparison(console: Console, trial: Trial) -> None:
    found = trial.comparison
    if found is None:
        console.print(printable(f"Not compared with the target: {trial.incomparable}", "yellow"), soft_wrap=True)
        return
    for statement in found.table_changes:
        console.print(printable(f"to the table: {statement}"), soft_wrap=True)
    told = [f"{number:,} {outcome}" for outcome, number in found.outcomes.items() if number]
    told += [f"{found.unchanged:,} unchanged"] if found.unchanged else []
    console.print(printable(f"Compared with the target: {', '.join(told) or 'nothing to compare'}", "bold"))
    told_of = [sample for sample in found.objects if sample.outcome is not Outcome.REJECTED]
    rows = [[sample.key, sample.outcome.value, _changed(sample)] for sample in told_of]
    if rows:
        console.print(table(["object", "would be", "what"], rows))
    console.print("What is not among these records is no deletion: only a full run can tell.")


def _changed(sample: ObjectSample) -> str:
    if sample.outcome in _WHOLE_ROWS:
        return ""
    return "; ".join(f"{change.field}: {_value(change.old)} → {_value(change.new)}" for change in sample.values)


def _value(value: str | None) -> str:
    if not value:
        return "null" if value is None else '""'
    return value if len(value) <= _VALUE_CHARACTERS else f"{value[: _VALUE_CHARACTERS - 1]}…"


def _indented(record: str) -> str:
    """Return a record as people read it, or as it is where it is not JSON; numbers keep their spelling."""
    try:
        return msgspec.json.format(record, indent=2)
    except (msgspec.MsgspecError, RecursionError):
        return record
