"""`sluice publications`: a sync in; what was published into its table, and what was taken back, out."""

from collections.abc import Iterator
from typing import Annotated, Any

import typer
from rich.console import Console

from sluice.cli.output import numeral, table
from sluice.cli.session import AsJson, Session, session_of
from sluice.errors import NotFound, SpecInvalid, UsageInvalid
from sluice.model.base import PublicationId
from sluice.model.ledger import Publication
from sluice.model.spec import SyncSpec
from sluice.ports import Services


def publications(
    context: typer.Context,
    sync: Annotated[str | None, typer.Argument(metavar="SYNC", help="Only those of this sync.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="At most so many.")] = 20,
    as_json: AsJson = False,
) -> None:
    """List publications, the newest first.

    Example: sluice publications hotels --limit 5
    """
    session = session_of(context)
    output = session.begin(as_json=as_json)
    with session.services() as services:
        listed = [
            made for spec in specs(session, services, sync) for made in services.ledger(spec).publications(spec.sync, limit)
        ]
    found = sorted(listed, key=lambda made: (made.applied_at, made.id), reverse=True)[:limit]

    def draw(console: Console) -> None:
        columns = [
            "publication",
            "sync",
            "applied",
            "objects",
            "transformer",
            "approved by",
            "run",
            "takes back",
            "taken back by",
        ]
        console.print(table(columns, map(_listed, found)) if found else "nothing was published")

    output.result({"publications": found}, draw)


def _listed(made: Publication) -> list[Any]:
    undo = [numeral(made.undoes), numeral(made.rolled_back_by)]
    versions = ", ".join(map(str, made.transformer_versions))
    return [numeral(made.id), made.sync, made.applied_at, counted(made), versions, made.approved_by, made.run, *undo]


def specs(session: Session, services: Services, sync: str | None) -> Iterator[SyncSpec]:
    """Yield the spec of a sync, or those of all syncs whose spec can be used; which ones cannot is said beside the result."""
    from sluice.adapters.spec_files import SpecFiles

    if sync is not None:
        yield services.spec(sync)
        return
    for name in SpecFiles(session.settings().include).names():
        try:
            yield services.spec(name)
        except SpecInvalid:
            session.output.note(f"{name} is left out, since its spec cannot be used: `sluice validate {name}` says why")


def find_publication(session: Session, services: Services, publication: int, sync: str | None) -> tuple[SyncSpec, Publication]:
    """Return the one publication of that id, with the spec of its sync. Ids are those of the database a sync publishes into.

    Raises `NotFound`, or `UsageInvalid` where several databases have one.
    """
    found: list[tuple[SyncSpec, Publication]] = []
    for spec in specs(session, services, sync):
        made = services.ledger(spec).publication(PublicationId(publication))
        if made is not None and made.sync == spec.sync:
            found.append((spec, made))
    if not found:
        of = f"{sync} has" if sync else "there is"
        raise NotFound(f"{of} no publication {publication}: `sluice publications` lists them")
    if len(found) > 1:
        syncs = ", ".join(spec.sync for spec, _ in found)
        raise UsageInvalid(f"there is a publication {publication} of {syncs}: name one of them with --sync")
    return found[0]


def counted(publication: Publication) -> str:
    """Return how many objects a publication changed, by outcome."""
    return ", ".join(f"{count:,} {outcome}" for outcome, count in publication.counts.items() if count) or "newer versions alone"
