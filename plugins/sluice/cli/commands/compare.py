"""`sluice compare`: two versions of the transformation in; where they differ over stored raw data out."""

from collections.abc import Iterator
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from sluice.cli.output import pairs, printable, table
from sluice.cli.session import AsJson, session_of
from sluice.model.base import RunId, ShardKey
from sluice.model.comparison import Comparison, FieldDifference, RejectDifference


def compare(
    context: typer.Context,
    sync: Annotated[str, typer.Argument(metavar="SYNC", help="The sync.")],
    first: Annotated[int, typer.Argument(metavar="V1", min=1, help="A version: the spec's, its canary's, or an older run's.")],
    second: Annotated[int, typer.Argument(metavar="V2", min=1, help="The version to lay beside it.")],
    *,
    of: Annotated[
        str | None, typer.Option(metavar="RUN", help="Whose raw data is mapped. Default: the newest full run that succeeded.")
    ] = None,
    shards: Annotated[
        list[str] | None, typer.Option("--shard", metavar="KEY", help="Only this shard; may stand several times.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="So many examples of each difference at most.")] = 3,
    as_json: AsJson = False,
) -> None:
    """Map stored raw data by two versions of the transformation, and tell in which objects and fields they differ.

    No supplier is asked and nothing is written: see what a new version would do before it does it. Declare the new version as
    the spec's, or as its canary; a version that the spec has no more is taken from the newest run that knew it. Ends with 0
    whether they differ or not.

    Example: sluice compare hotels 2 3

    Example: sluice compare hotels 2 3 --shard tokyo --shard oslo --limit 10 --json
    """
    from sluice.upkeep.compare import Asked
    from sluice.upkeep.compare import compare as laid_side_by_side

    session = session_of(context)
    output = session.begin(as_json=as_json)
    asked = Asked(
        first=first,
        second=second,
        of=None if of is None else RunId(of),
        shards=tuple(map(ShardKey, shards or ())),
        samples=limit,
    )
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with (
        session.services() as services,
        Progress(*columns, console=output.err, transient=True, disable=not output.err.is_terminal) as progress,
    ):
        task = progress.add_task("looking for raw data …")

        def tell(done: int, of_all: int) -> None:
            progress.update(task, description=f"{done:,} of {of_all:,} chunks mapped by both …")

        found = laid_side_by_side(services, services.spec(sync), asked, tell)
    output.result(found.model_dump(), lambda console: _draw(console, found))


def _draw(console: Console, found: Comparison) -> None:
    one, other = (found.rejected_by_one(version) for version in (found.first, found.second))
    console.print(
        pairs(
            [
                ("sync", found.sync),
                ("versions", f"{found.first} and {found.second}"),
                ("raw data of", f"run {found.run}: {found.shards:,} shards, {found.chunks:,} chunks"),
                ("objects", f"{found.objects:,}"),
                ("alike", f"{found.equal:,}"),
                ("differing", f"{found.differing:,}"),
                (f"rejected by {found.first} alone", f"{one:,}"),
                (f"rejected by {found.second} alone", f"{other:,}"),
                ("rejected by both", f"{found.rejected_by_both:,}"),
            ]
        )
    )
    for version, names in ((found.first, found.only_in_first), (found.second, found.only_in_second)):
        if names:
            console.print(printable(f"fields of version {version} alone, not compared: {', '.join(names)}", "yellow"))
    if found.fields:
        columns = ["field", "objects", "for example", f"by version {found.first}", f"by version {found.second}"]
        console.print(table(columns, (row for field in found.fields for row in _field_rows(field))))
    if found.rejects:
        columns = ["rejected by", "error", "field", "objects", "for example", "since"]
        console.print(table(columns, (row for reject in found.rejects for row in _reject_rows(reject))))


def _field_rows(difference: FieldDifference) -> Iterator[list[object]]:
    for nth, (key, old, new) in enumerate(difference.samples):
        head = ["", ""] if nth else [difference.field, difference.objects]
        yield [*head, key, _value(old), _value(new)]


def _reject_rows(difference: RejectDifference) -> Iterator[list[object]]:
    for nth, (key, message) in enumerate(difference.samples):
        told = [f"version {difference.version}", difference.error, difference.field, difference.objects]
        yield [*(["", "", "", ""] if nth else told), key or "no key", message]


def _value(value: str | None) -> str:
    return "null" if value is None else repr(value)
