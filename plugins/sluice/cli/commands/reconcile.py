"""`sluice reconcile`: a sync in; what others have changed in its table since it was published out."""

from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from sluice.cli.exits import ExitCode
from sluice.cli.output import numeral, printable, table
from sluice.cli.session import AsJson, session_of
from sluice.model.reconciliation import Alteration, Difference, Reconciliation

_MEANING = {
    Difference.MISSING: "published, and not in the table",
    Difference.UNKNOWN: "in the table, and never published",
    Difference.CHANGED: "hold other values than were published",
    Difference.DELETED: "live, and marked as deleted in the table",
    Difference.REVIVED: "deleted, and live in the table",
}


def reconcile(
    context: typer.Context,
    sync: Annotated[str, typer.Argument(metavar="SYNC", help="The sync.")],
    limit: Annotated[int, typer.Option(min=0, max=10_000, help="Name so many objects of each kind at most.")] = 20,
    as_json: AsJson = False,
) -> None:
    """Compare the table of a sync with its ledger, and tell what others have changed. Nothing is written.

    Values count as equal where they are one value: 1.5 and 1.50, a JSON document in another order. Ends with 0 if all is as it
    was published, with 4 if something is not.

    Example: sluice reconcile hotels
    """
    from sluice.upkeep.reconciliation import reconcile as compare

    session = session_of(context)
    output = session.begin(as_json=as_json)
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with (
        session.services() as services,
        Progress(*columns, console=output.err, transient=True, disable=not output.err.is_terminal) as progress,
    ):
        task = progress.add_task("looking for what is missing …")
        spec = services.spec(sync)
        found = compare(services, spec, limit, lambda rows: progress.update(task, description=f"{rows:,} rows compared …"))
    output.result({"is_in_step": found.is_in_step, **found.model_dump()}, lambda console: _draw(console, found))
    raise typer.Exit(ExitCode.DONE if found.is_in_step else ExitCode.PARTIAL)


def _draw(console: Console, found: Reconciliation) -> None:
    if found.is_in_step:
        console.print(printable(f"{found.table} is as sync {found.sync} has published it: {found.rows:,} rows", "green"))
    else:
        console.print(printable(f"{found.table} is not as sync {found.sync} has published it; {found.rows:,} rows", "yellow"))
    if found.counts:
        rows = [[difference, number, _MEANING[difference]] for difference, number in found.counts.items()]
        console.print(table(["objects", "number", "they are"], rows))
    if found.alterations:
        console.print(table(["what", "object", "publication", "published → in the table"], map(_told, found.alterations)))
    if found.unclear:
        console.print(
            printable(
                f"{found.unclear:,} objects are not as the newest spec has them, and the spec of their publication is gone",
                "yellow",
            ),
            soft_wrap=True,
        )
    if found.published_meanwhile:
        console.print(f"{found.published_meanwhile:,} objects were published meanwhile, and not compared")


def _told(one: Alteration) -> list[object]:
    changes = "; ".join(f"{change.field}: {_shown(change.old)} → {_shown(change.new)}" for change in one.changes)
    return [one.difference, one.key, numeral(one.publication), changes]


def _shown(value: str | None) -> str:
    return "null" if value is None else value
