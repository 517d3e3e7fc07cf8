"""`sluice gc`: what has outlived its time goes; what went is told."""

from typing import Annotated

import typer
from rich.console import Console

from sluice.cli.output import pairs, printable
from sluice.cli.person import person
from sluice.cli.session import AsJson, session_of


def gc(
    context: typer.Context,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count what would be removed.")] = False,
    as_json: AsJson = False,
) -> None:
    """Remove what has outlived the time its stage gives it.

    Bytes in the object store after artifact_ttl; ended runs, with shards, pointers and reviews, after state_ttl; their
    events and progress after session_ttl; results of calls after idempotency_ttl.

    Kept all the same is what a person has pinned, what an open dead letter, a watermark or the newest publication of a sync
    needs, and whatever belongs to a run that has not ended. Safe to run at any time, again, and to kill.

    Example: sluice gc --dry-run
    """
    from sluice.upkeep.collection import collect

    session = session_of(context)
    output = session.begin(as_json=as_json)
    with session.services() as services:
        garbage = collect(services, dry_run=dry_run, by=person())

    def draw(console: Console) -> None:
        console.print("would be removed:" if dry_run else "removed:")
        console.print(
            pairs(
                [
                    ("artifacts", f"{garbage.artifacts:,} ({garbage.bytes:,} bytes)"),
                    ("runs", garbage.runs),
                    *((f"rows of {table}", number) for table, number in (garbage.session | garbage.control).items()),
                ]
            )
        )
        for sync, why in garbage.kept.items():
            console.print(
                printable(f"nothing of {sync}, whose newest publication is not known: {why}", "yellow"), soft_wrap=True
            )

    output.result({"dry_run": dry_run, **garbage.model_dump()}, draw)
