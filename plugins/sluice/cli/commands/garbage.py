"""`sluice gc`: what has outlived its time goes; what went is told."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Final

import typer
from rich.console import Console

from sluice.cli.output import Output, pairs, printable
from sluice.cli.person import person
from sluice.cli.session import AsJson, session_of

_SECONDS_BETWEEN_LINES: Final = 5.0


def gc(
    context: typer.Context,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count what would be removed.")] = False,
    as_json: AsJson = False,
) -> None:
    """Remove what has outlived the time its stage gives it.

    Bytes in the object store after artifact_ttl; ended runs, with shards, pointers and reviews, after state_ttl; their
    events and progress after session_ttl; results of calls after idempotency_ttl. Also objects that nothing has ever pointed
    to, after a week; and runs that nobody has heard of for a week have failed from then on.

    Kept all the same is what a person has pinned, what an open dead letter, a watermark, the newest publication of a sync or
    one that can still be undone needs, and whatever belongs to a run that has not ended. With a cold_prefix or a cold_bucket in
    the extra of the connection sluice_artifacts, what goes is copied there first. Safe to run at any time, again, and to kill.

    Example: sluice gc --dry-run
    """
    from sluice.upkeep.collection import collect
    from sluice.upkeep.collection_report import lines

    session = session_of(context)
    output = session.begin(as_json=as_json)
    with session.services() as services, _progress(output) as tell:
        garbage = collect(services, dry_run=dry_run, by=person(), tell=tell)

    def draw(console: Console) -> None:
        console.print("would be removed:" if dry_run else "removed:")
        console.print(pairs(lines(garbage)))
        for sync, why in garbage.kept.items():
            console.print(printable(f"nothing of {sync}, whose publications are not known: {why}", "yellow"), soft_wrap=True)

    output.result({"dry_run": dry_run, **garbage.model_dump()}, draw)


@contextmanager
def _progress(output: Output) -> Iterator[Callable[[str], None]]:
    """Yield what shows how far it is: at a terminal always, elsewhere a line now and then."""
    if output.err.is_terminal:
        with output.err.status("") as status:
            yield lambda text: status.update(printable(text))
        return
    told = time.monotonic()

    def tell(text: str) -> None:
        nonlocal told
        if time.monotonic() - told >= _SECONDS_BETWEEN_LINES:
            told = time.monotonic()
            output.note(text)

    yield tell
