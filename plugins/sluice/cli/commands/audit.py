"""`sluice audit`: a sync or a run in; what people and policy have done to it out."""

from typing import Annotated

import typer
from rich.console import Console

from sluice.cli.session import AsJson, session_of
from sluice.cli.trail import trail_drawn
from sluice.model.base import RunId


def audit(
    context: typer.Context,
    sync: Annotated[str | None, typer.Option(help="Only what was done to this sync.")] = None,
    run: Annotated[str | None, typer.Option(metavar="RUN", help="Only what was done to this run.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="At most so many.")] = 50,
    as_json: AsJson = False,
) -> None:
    """Tell who did what, when and why, the newest first: decisions, rollbacks, redrives, discards, acts by hand, policy's too.

    Example: sluice audit --sync hotels
    """
    session = session_of(context)
    output = session.begin(as_json=as_json)
    with session.services() as services:
        found = services.audit.of(sync, RunId(run) if run is not None else None, limit)

    def draw(console: Console) -> None:
        console.print(trail_drawn(found) if found else "nothing was done")

    output.result({"entries": found}, draw)
