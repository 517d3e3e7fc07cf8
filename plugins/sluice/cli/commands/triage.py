"""`sluice dlq triage`: a sync in; what may be the matter with its dead letters, and what might mend it, out."""

from collections.abc import Mapping
from typing import Annotated, Final

import typer
from rich.console import Console

from sluice.cli.output import printable
from sluice.cli.session import AsJson, session_of
from sluice.errors import NotFound
from sluice.model.reject import Cause
from sluice.model.triage import Triaged, Weighed

_INDENT: Final = " " * 4


def triage(
    context: typer.Context,
    sync: Annotated[str, typer.Argument(metavar="SYNC", help="The name of the sync.")],
    cause: Annotated[
        str | None, typer.Option("--cause", metavar="CAUSE", help="Only this cause, as `dlq list` names it: type:rooms.")
    ] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Propose what may be the matter with dead letters, cause by cause, and which keys of the field might mend it.

    Each proposal is tried on the newest 50 objects of its cause. Nothing is changed: write what you find right into the spec,
    see it with `sluice validate`, and redrive the letters; what comes right goes through review. Without `triage` in the spec,
    rules that ship do it: values spelled alike, formats of dates, numbers that outgrow their type, values that have moved.

    Example: sluice dlq triage hotels --cause unmapped:board
    """
    from sluice.upkeep.triage import triaged

    session = session_of(context)
    output = session.begin(as_json=as_json)
    with session.services() as services:
        spec = services.spec(sync)
        found = list(triaged(services, spec, None if cause is None else Cause.named(cause)))
    if cause is not None and not found:
        raise NotFound(f"{sync} has no open dead letter of cause {cause} whose bytes are kept: see `sluice dlq list {sync}`")
    document = [
        {"cause": str(each.ward.cause), "objects": each.ward.objects, "proposals": [w.model_dump() for w in each.proposals]}
        for each in found
    ]
    output.result({"sync": sync, "causes": document}, lambda console: _draw(console, sync, found))


def _draw(console: Console, sync: str, found: list[Triaged]) -> None:
    for each in found:
        console.print(printable(f"{each.ward.cause}: {each.ward.objects:,} objects", "bold"), soft_wrap=True)
        for weighed in each.proposals:
            _draw_proposal(console, each, weighed)
        if not each.proposals:
            console.print(printable(f"{_INDENT}nothing to propose: {each.ward.specimens[0].message}"), soft_wrap=True)
        elif any(weighed.takes_in for weighed in each.proposals):
            redrive = f"sluice dlq redrive {sync} --cause {each.ward.cause} --review always"
            console.print(printable(f"{_INDENT}with the keys in include/syncs/{sync}.yaml: {redrive}", "dim"), soft_wrap=True)
    if not found:
        console.print("no dead letters are open whose bytes are kept")


def _draw_proposal(console: Console, triaged: Triaged, weighed: Weighed) -> None:
    proposal = weighed.proposal
    verdict = "" if weighed.takes_in is None else f", which takes in {weighed.takes_in:,} of {weighed.of:,}"
    told = f", which no spec can say: {weighed.refused}" if weighed.refused is not None else verdict
    console.print(printable(f"{_INDENT}{proposal.because}{told}"), soft_wrap=True)
    if proposal.changes and triaged.ward.field is not None:
        for line in _as_yaml(triaged.ward.field.name, proposal.changes).splitlines():
            console.print(printable(f"{_INDENT}{_INDENT}{line}", "cyan"), soft_wrap=True)


def _as_yaml(field: str, changes: Mapping[str, object]) -> str:
    """Return the keys as they would stand in the list of fields."""
    import yaml

    return yaml.safe_dump([{"name": field, **changes}], sort_keys=False, allow_unicode=True, width=100)
