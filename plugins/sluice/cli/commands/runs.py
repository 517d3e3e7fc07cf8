"""`sluice runs`, `show` and `ledger`: what is asked about in; what state and ledger know of it out."""

from typing import Annotated

import typer
from rich.console import Console

from sluice.cli.account import account_of, draw_account
from sluice.cli.letters import letter_told, open_letters
from sluice.cli.output import numeral, pairs, printable, table
from sluice.cli.session import AsJson, Session, session_of
from sluice.errors import NotFound, SpecInvalid, UsageInvalid
from sluice.model.base import ObjectKey, RunId
from sluice.model.ledger import LedgerObject, ObjectEvent
from sluice.model.lifecycle import RunStatus
from sluice.model.reject import DeadLetter


def runs(
    context: typer.Context,
    sync: Annotated[str | None, typer.Option(help="Only runs of this sync.")] = None,
    status: Annotated[list[RunStatus] | None, typer.Option(help="Only runs of this status; may stand several times.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="At most so many.")] = 20,
    as_json: AsJson = False,
) -> None:
    """List runs, the newest first.

    Example: sluice runs --sync hotels --status failed --status partial
    """
    session = session_of(context)
    output = session.begin(as_json=as_json)
    with session.services() as services:
        found = services.runs.recent(sync, status or [], limit)

    def draw(console: Console) -> None:
        rows = [
            [r.id, r.sync, r.status, r.step, r.mode, numeral(r.transformer_version), r.created_at, r.finished_at, r.follows]
            for r in found
        ]
        columns = ["run", "sync", "status", "step", "mode", "transformer", "began", "ended", "follows"]
        console.print(table(columns, rows) if rows else "no runs")

    output.result({"runs": found}, draw)


def show(
    context: typer.Context, run: Annotated[str, typer.Argument(metavar="RUN", help="The run's id.")], as_json: AsJson = False
) -> None:
    """Show a run: its shards, its review and what was published.

    Example: sluice show inline-3f2a9c81d04e
    """
    session = session_of(context)
    output = session.begin(as_json=as_json)
    with session.services() as services:
        account = account_of(services, services.runs.get(RunId(run)))
    output.result(account.document(), lambda console: draw_account(console, account))


def ledger(
    context: typer.Context,
    named: Annotated[
        list[str],
        typer.Argument(
            metavar="OBJECT | SYNC OBJECT", help="The object's natural key; a sync before it, to look in that one only."
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Tell all that became of one object.

    Example: sluice ledger node/251055437
    """
    session = session_of(context)
    output = session.begin(as_json=as_json)
    found, events, letters = _looked_up(session, named)

    def draw(console: Console) -> None:
        if found is not None:
            console.print(
                pairs(
                    [
                        ("object", found.key),
                        ("state", found.state),
                        ("shard", found.shard),
                        ("first seen", found.first_seen),
                        ("last changed in", found.last_changed_run),
                        ("row hash", found.row_hash),
                        ("transformer", numeral(found.transformer_version)),
                    ]
                )
            )
        rows = [
            [e.at, e.outcome, e.run, numeral(e.publication), numeral(e.transformer_version), e.old_hash, e.new_hash]
            for e in events
        ]
        columns = ["at", "what", "run", "publication", "transformer", "old row hash", "new row hash"]
        console.print(table(columns, rows))
        for letter in letters:
            console.print(printable(letter_told(letter), "yellow"), soft_wrap=True)

    output.result({"object": found, "events": events, "letters": letters}, draw)


def _looked_up(session: Session, named: list[str]) -> tuple[LedgerObject | None, list[ObjectEvent], list[DeadLetter]]:
    """Return what the one sync that knows the object has of it, its open dead letter included."""
    from sluice.adapters.spec_files import SpecFiles

    if len(named) > len(("SYNC", "OBJECT")):
        raise UsageInvalid(f"name one object, and before it at most one sync; not {' '.join(named)}")
    *syncs, key = named
    with session.services() as services:
        known = {}
        for sync in syncs or SpecFiles(session.settings().include).names():
            try:
                kept = services.ledger(services.spec(sync))
            except SpecInvalid:
                if syncs:
                    raise
                continue
            found, events = kept.object(sync, ObjectKey(key)), kept.events(sync, ObjectKey(key))
            letters = open_letters(services, sync, ObjectKey(key))
            if found or events or letters:
                known[sync] = found, events, letters
    if not known:
        raise NotFound(f"the ledger{f' of {syncs[0]}' if syncs else ''} knows no object {key!r}: it was never published")
    if len(known) > 1:
        raise UsageInvalid(f"{', '.join(known)} know an object {key!r}: name one of them before it")
    return next(iter(known.values()))
