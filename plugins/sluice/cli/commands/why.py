"""`sluice why`: an object in; where each of its values comes from, and what it was before, out."""

from collections.abc import Sequence
from typing import Annotated, Any, Final

import typer
from rich.console import Console

from sluice.cli.letters import letter_told, open_letters
from sluice.cli.output import numeral, pairs, printable, table, write_exactly
from sluice.cli.session import AsJson, session_of
from sluice.errors import NotFound, UsageInvalid
from sluice.model.evidence import cut
from sluice.model.explanation import Explanation, FieldOrigin, RawRecord, Trace
from sluice.model.reject import DeadLetter

_RAW_SHOWN: Final = 4_000


def why(
    context: typer.Context,
    sync: Annotated[str, typer.Argument(metavar="SYNC", help="The sync.")],
    named: Annotated[
        str, typer.Argument(metavar="OBJECT", help="The object's key; of several key fields: a JSON list of their values.")
    ],
    *,
    field: Annotated[str | None, typer.Option(help="Only this field, with all values it has had.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Go back over so many events at most.")] = 20,
    raw: Annotated[
        bool, typer.Option("--raw", help="Print the supplier's bytes behind the present value exactly, and nothing else.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Tell why the table holds what it holds of an object: publication, person, review, run, and the supplier's own bytes.

    What others have changed in the table is told as well, and what has outlived its time (artifact_ttl, state_ttl) is said to
    be gone. A key of several fields is named as `sluice ledger` shows it: '["FR", "2026-01-31"]'.

    Example: sluice why hotels node/251055437 --field rooms
    """
    from sluice.mapping.keys import key_named
    from sluice.upkeep.explanation import explain

    session = session_of(context)
    output = session.begin(as_json=as_json)
    with session.services() as services:
        spec = services.spec(sync)
        if field is not None and field not in (known := [declared.name for declared in spec.fields]):
            raise UsageInvalid(f"{sync} has no field {field!r}; it has {', '.join(known)}")
        key = key_named(spec, named)
        letters = open_letters(services, sync, key)
        try:
            explained = explain(services, spec, key, limit)
        except NotFound as error:
            if letters:
                raise NotFound(f"{error.message}; {letter_told(letters[0])}", sync=sync) from error
            raise
    if raw:
        write_exactly(_raw_behind(explained, field).data)
    elif field is not None:
        values = explained.former(field)
        output.result(_field_document(explained, field, values), lambda console: _draw_field(console, explained, values))
    else:
        output.result({**_document(explained), "letters": letters}, lambda console: _draw(console, explained, letters))


def _raw_behind(explained: Explanation, field: str | None) -> RawRecord:
    """Return the record that the object, or the present value of one of its fields, was made of."""
    trace = explained.present
    if trace is not None and field is not None:
        publication = next((origin.publication for origin in explained.origins if origin.field == field), None)
        trace = explained.trace_of(publication) or trace
    source = explained.source_of(trace) if trace is not None else None
    if source is None or source.raw is None:
        gone = "; ".join(source.gone) if source is not None else "the table holds no row of it, or it is older than --limit"
        raise NotFound(f"there are no raw bytes behind object {explained.key}: {gone}")
    return source.raw


def _draw(console: Console, explained: Explanation, letters: Sequence[DeadLetter]) -> None:
    _draw_standing(console, explained)
    for letter in letters:
        console.print(printable(letter_told(letter), "yellow"), soft_wrap=True)
    if origins := explained.origins:
        rows = [[origin.field, _shown(origin.value), *_dated(explained, origin)] for origin in origins]
        console.print(table(["field", "value", "since publication", "by", "run"], rows))
    console.print(
        table(
            ["at", "what", "publication", "by", "run", "transformer", "from"],
            [_told(explained, seen) for seen in explained.traces],
        )
    )
    if explained.earlier:
        console.print(f"{explained.earlier:,} older events are not shown: see --limit")
    _draw_gone(console, explained.traces)
    if (present := explained.present) is not None:
        _draw_raw(console, explained.source_of(present).raw)


def _draw_field(console: Console, explained: Explanation, values: Sequence[FieldOrigin]) -> None:
    _draw_standing(console, explained)
    rows = [[_shown(origin.value), *_dated(explained, origin), _place(explained, origin)] for origin in values]
    console.print(table([values[0].field if values else "value", "since publication", "by", "run", "from"], rows))
    if explained.earlier:
        console.print(f"{explained.earlier:,} older events are not shown: see --limit")
    _draw_gone(console, explained.traces)
    trace = explained.trace_of(values[0].publication) if values else None
    if trace is not None:
        _draw_raw(console, explained.source_of(trace).raw)


def _draw_standing(console: Console, explained: Explanation) -> None:
    held = explained.held
    console.print(
        pairs(
            [
                ("object", explained.key),
                ("sync", explained.sync),
                ("state", held.state if held else "never published"),
                ("shard", held.shard if held else None),
                ("first seen", held.first_seen if held else None),
            ]
        )
    )
    if explained.altered is None:
        console.print("the table is as it was published")
        return
    console.print(printable(f"the table: {explained.altered}", "yellow"), soft_wrap=True)
    if explained.alterations:
        rows = [[change.field, _shown(change.old), _shown(change.new)] for change in explained.alterations]
        console.print(table(["field", "published", "in the table now"], rows))


def _draw_gone(console: Console, traces: Sequence[Trace]) -> None:
    for trace in traces:
        for gone in trace.gone:
            console.print(
                printable(f"of {trace.event.outcome} at {trace.event.at:%Y-%m-%d %H:%M:%SZ} is gone {gone}", "yellow")
            )


def _draw_raw(console: Console, record: RawRecord | None) -> None:
    if record is None:
        return
    console.print(printable(f"raw bytes: {_address(record)} of {record.artifact}, {len(record.data):,} bytes"), soft_wrap=True)
    console.print(printable(record.data[:_RAW_SHOWN].decode(errors="backslashreplace")), soft_wrap=True)
    if len(record.data) > _RAW_SHOWN:
        console.print(f"… {len(record.data) - _RAW_SHOWN:,} bytes more: --raw prints all of them")


def _told(explained: Explanation, trace: Trace) -> list[Any]:
    what = f"{explained.what(trace)}: {trace.said}" if trace.said else explained.what(trace)
    version = trace.event.transformer_version or (trace.run.transformer_version if trace.run else None)
    where = _address(trace.raw) if trace.raw else None
    return [trace.event.at, what, numeral(trace.event.publication), trace.by, trace.event.run, version, where]


def _dated(explained: Explanation, origin: FieldOrigin) -> list[Any]:
    trace = explained.trace_of(origin.publication)
    since = f"{origin.publication}" if origin.is_certain else f"{origin.publication} or before"
    return [since, trace.by if trace else None, trace.event.run if trace else None]


def _place(explained: Explanation, origin: FieldOrigin) -> str | None:
    trace = explained.trace_of(origin.publication)
    record = explained.source_of(trace).raw if trace is not None else None
    return _address(record) if record is not None else None


def _address(record: RawRecord) -> str:
    return f"record {record.index} of page {record.page}, chunk {record.chunk} of shard {record.shard}"


def _shown(value: str | None) -> str:
    return "null" if value is None else cut(value) or ""


def _document(explained: Explanation) -> dict[str, Any]:
    return {**_head(explained), "fields": explained.origins, "history": [_trace_document(trace) for trace in explained.traces]}


def _field_document(explained: Explanation, field: str, values: Sequence[FieldOrigin]) -> dict[str, Any]:
    listed = []
    for origin in values:
        trace = explained.trace_of(origin.publication)
        source = explained.source_of(trace) if trace is not None else None
        listed.append({**origin.model_dump(), "from": _trace_document(source) if source is not None else None})
    return {**_head(explained), "field": field, "values": listed}


def _head(explained: Explanation) -> dict[str, Any]:
    return {
        "sync": explained.sync,
        "object": explained.key,
        "ledger": explained.held,
        "altered": explained.altered,
        "alterations": explained.alterations,
        "earlier": explained.earlier,
    }


def _trace_document(trace: Trace) -> dict[str, Any]:
    review, run, record = trace.review, trace.run, trace.raw
    return {
        "event": trace.event,
        "publication": trace.publication,
        "review": {"id": review.id, "verdict": review.verdict, "decision": review.decision} if review is not None else None,
        "run": run.model_dump(include={"id", "mode", "window", "spec_hash", "transformer_version", "origin"}) if run else None,
        "values": trace.values,
        "raw": {**record.model_dump(), "data": record.data.decode(errors="backslashreplace")} if record is not None else None,
        "said": trace.said,
        "gone": trace.gone,
    }
