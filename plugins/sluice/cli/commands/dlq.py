"""`sluice dlq`: dead letters in; what they are, and what becomes of those that are redriven or discarded, out."""

import sys
from dataclasses import dataclass
from typing import Annotated, Any, Final

import typer
from rich.console import Console

from sluice.cli.boundary import bounded
from sluice.cli.commands.run import ask_airflow, run_here
from sluice.cli.commands.triage import triage
from sluice.cli.output import numeral, pairs, printable, spell, table, write_exactly
from sluice.cli.person import person
from sluice.cli.session import AsJson, Session, session_of
from sluice.errors import NotFound, UsageInvalid
from sluice.model.evidence import cut
from sluice.model.reject import Cause, DeadLetter, DeadLetterStatus
from sluice.model.run import Mode, Origin, Redrive, ReviewMode, RunRequest
from sluice.model.shard import some_of
from sluice.packet.words import pretty
from sluice.ports import Services

_OF_OBJECT: Final = 20
_COMPARED: Final = 1_000
_RAW_SHOWN: Final = 4_000

dlq = typer.Typer(
    no_args_is_help=True, help="Objects that could not be taken in: look at them, take them up again, or give them up."
)

Sync = Annotated[str, typer.Argument(metavar="SYNC", help="The name of the sync.")]
Letters = Annotated[list[int] | None, typer.Argument(metavar="ID", min=1, help="Numbers of letters. None: all of the cause.")]
OfCause = Annotated[
    str | None, typer.Option("--cause", metavar="CAUSE", help="Only those of this cause, as `dlq list` names it: type:rooms.")
]


@dlq.command("list")
@bounded
def list_(
    context: typer.Context,
    sync: Annotated[str | None, typer.Argument(metavar="SYNC", help="Only those of this sync.")] = None,
    cause: OfCause = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="With SYNC: show so many letters of it at most.")] = 20,
    as_json: AsJson = False,
) -> None:
    """List the open dead letters by cause, the most frequent first; of one sync, the newest of them as well.

    A cause is the kind of error and the field that breaks it. Of a cause, a thousand objects have a letter each; the others are
    counted, and redriven and discarded with their cause.

    Example: sluice dlq list hotels --cause type:rooms
    """
    session = session_of(context)
    output = session.begin(as_json=as_json)
    with session.services() as services:
        groups = [group for group in services.letter_desk.groups(sync) if cause in (None, str(group.cause))]
        if sync is not None and not groups:
            services.spec(sync)  # which names what is wrong with a name that is none
        letters = services.letter_desk.selected(sync, Redrive(cause=cause), limit) if sync is not None else []
    total = sum(group.objects for group in groups)

    def draw(console: Console) -> None:
        columns = ["sync", "cause", "objects", "letters", "attempts", "first seen", "last seen", "such as"]
        rows = [[g.sync, g.cause, g.objects, g.letters, g.attempts, g.first_seen, g.last_seen, cut(g.sample)] for g in groups]
        console.print(table(columns, rows))
        if letters:
            shown = [
                [numeral(x.id), x.reject.key, x.reject.cause, x.attempts, x.last_seen, cut(x.reject.message)] for x in letters
            ]
            console.print(table(["letter", "object", "cause", "attempts", "last seen", "what is wrong"], shown))
        console.print(f"objects: {total:,}; causes: {len(groups)}" if groups else "no dead letters are open")

    document = {"groups": [{**g.model_dump(), "cause": str(g.cause)} for g in groups], "objects": total, "letters": letters}
    output.result(document, draw)


@dlq.command()
@bounded
def show(
    context: typer.Context,
    named: Annotated[list[str], typer.Argument(metavar="ID | SYNC OBJECT", help="A letter's number, or an object of a sync.")],
    *,
    raw: Annotated[bool, typer.Option("--raw", help="Print the raw record exactly, byte for byte, and nothing else.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show all that is known of one dead letter, with its raw record as the supplier had sent it.

    Of an object that had several, the newest is shown.

    Example: sluice dlq show 17
    """
    from sluice.upkeep.letters import raw_record

    session = session_of(context)
    output = session.begin(as_json=as_json)
    with session.services() as services:
        letter = _named(services, named)
        record, gone = raw_record(services, letter)
    if raw:
        if record is None:
            raise NotFound(f"the raw bytes of letter {letter.id} are gone: {gone}")
        write_exactly(record)
        return
    said = record.decode(errors="backslashreplace") if record is not None else None
    output.result({"letter": letter, "raw": said, "gone": gone}, lambda console: _draw_letter(console, letter, record, gone))


@dlq.command()
@bounded
def redrive(
    *,
    context: typer.Context,
    sync: Sync,
    letters: Letters = None,
    cause: OfCause = None,
    version: Annotated[
        int | None, typer.Option("--transformer-version", metavar="N", min=1, help="Default: as the spec says.")
    ] = None,
    review: Annotated[ReviewMode, typer.Option(help="always: a person has to look.")] = ReviewMode.POLICY,
    inline: Annotated[bool, typer.Option("--inline", help="In this process, without Airflow.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Follow the run in Airflow to its end, or to its review.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Though a run of the same request has just succeeded.")] = False,
    as_json: AsJson = False,
) -> None:
    """Take dead letters up again: their stored records are mapped as the spec has it now, reviewed and published.

    The supplier is not asked. What comes right is published like any other change, and its letter closed; what does not has one
    attempt more. What a later delivery has brought of an object since is never overwritten. Letters whose bytes are gone are
    named, and stay open. Ends with 3 if a review waits for a person.

    Example: sluice dlq redrive hotels --cause type:rooms --inline
    """
    session = session_of(context)
    output = session.begin(as_json=as_json)
    if inline and wait:
        raise UsageInvalid("--wait is for runs in Airflow; --inline always goes on to the end")
    request = RunRequest(
        sync=sync,
        mode=Mode.REDRIVE,
        redrives=_chosen(letters, cause),
        version=version,
        review=review,
        force=force,
        origin=Origin(),
    )
    if not inline:
        raise typer.Exit(ask_airflow(session, output, request, wait=wait))
    before = _open(session, request)
    code = run_here(session, output, request)
    output.note(_what_became(session, request, before))
    raise typer.Exit(code)


@dlq.command()
@bounded
def discard(
    *,
    context: typer.Context,
    sync: Sync,
    letters: Letters = None,
    cause: OfCause = None,
    reason: Annotated[str, typer.Option(help="Why; kept with each letter, beside who gave it up.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Give dead letters up: by number, or all of a cause.

    An object that is delivered again with the same bytes stays given up; with other bytes that are no better, it has a letter
    again. If there are more than one, asks first; where nobody can be asked (no terminal, or --json) it needs --yes.

    Example: sluice dlq discard hotels 17 --reason "closed for good"
    """
    session = session_of(context)
    output = session.begin(as_json=as_json)
    if not letters and cause is None:
        raise UsageInvalid("say which: numbers of letters, or --cause")
    if not reason.strip():
        raise UsageInvalid("--reason is empty: whoever looks later wants to know why")
    chosen = _chosen(letters, cause)
    with session.services() as services:
        objects = sum(services.redrives.shards(sync, chosen).values())
        if not objects:
            raise NotFound(f"{sync} has no such open dead letter: `sluice dlq list {sync}` tells which it has")
        if objects > 1 and not yes and not _is_wanted(session, objects):
            output.note("nothing was discarded")
            return
        discarded = services.letter_desk.discard(sync, chosen, person(reason=reason))
    output.result({"sync": sync, "discarded": discarded}, lambda console: console.print(f"{discarded:,} objects are given up"))


dlq.command()(bounded(triage))


@dataclass(frozen=True)
class _Open:
    """What is open at a moment: the objects of a sync, those that are selected, and of these the letters."""

    objects: int
    selected: int
    letters: dict[int, DeadLetter]


def _open(session: Session, request: RunRequest) -> _Open:
    chosen = request.redrives or Redrive()
    with session.services() as services:
        letters = services.letter_desk.selected(request.sync, chosen, _COMPARED)
        return _Open(
            objects=sum(group.objects for group in services.letter_desk.groups(request.sync)),
            selected=sum(services.redrives.shards(request.sync, chosen).values()),
            letters={letter.id: letter for letter in letters},
        )


def _what_became(session: Session, request: RunRequest, before: _Open) -> str:
    """Say how many objects are closed, and which letters could not be taken up since their bytes are gone.

    An object that is rejected for another cause than before is selected no more, and open all the same.
    """
    from sluice.upkeep.letters import raw_records

    after = _open(session, request)
    closed = min(max(before.objects - after.objects, 0), before.selected)
    said = f"{closed:,} of {before.selected:,} objects are closed, {before.selected - closed:,} are still open"
    left = [
        letter
        for number, letter in after.letters.items()
        if (held := before.letters.get(number)) is not None
        and (letter.attempts, letter.redriven_by) == (held.attempts, held.redriven_by)
    ]
    with session.services() as services:
        found = raw_records(services, services.spec(request.sync), left)
    gone = sorted(letter.id for letter, record in zip(left, found, strict=True) if record is None)
    if not gone:
        return said
    return f"{said}; the raw bytes of letter {some_of([str(number) for number in gone])} are gone: `sluice dlq show` says why"


def _chosen(letters: list[int] | None, cause: str | None) -> Redrive:
    return Redrive(letters=tuple(sorted(set(letters or ()))), cause=cause)


def _is_wanted(session: Session, objects: int) -> bool:
    if session.output.as_json or not sys.stdin.isatty():
        raise UsageInvalid(f"these are {objects:,} objects, and nobody can be asked here: say --yes to give all of them up")
    return typer.confirm(f"Give {objects:,} objects up?", err=True)


def _named(services: Services, named: list[str]) -> DeadLetter:
    """Return the letter of a number, or the newest of an object."""
    from sluice.mapping.keys import key_named

    if len(named) == 1:
        if not named[0].isdecimal():
            raise UsageInvalid(f"{named[0]!r} is no number of a letter; an object is named behind its sync")
        return services.letter_desk.get(int(named[0]))
    if len(named) > len(("SYNC", "OBJECT")):
        raise UsageInvalid(f"name one letter, or a sync and one object of it; not {' '.join(named)}")
    sync, key = named
    found = services.letter_desk.of_object(sync, key_named(services.spec(sync), key), _OF_OBJECT)
    if not found:
        raise NotFound(f"object {key} of {sync} has no dead letter of its own")
    return next((letter for letter in found if letter.status is DeadLetterStatus.OPEN), found[0])


def _draw_letter(console: Console, letter: DeadLetter, record: bytes | None, gone: str | None) -> None:
    reject = letter.reject
    address = reject.address
    rows: list[tuple[str, Any]] = [
        ("letter", numeral(letter.id)),
        ("sync", letter.sync),
        ("object", reject.key if reject.key is not None else "its key cannot be read"),
        ("status", _standing(letter)),
        ("reason", letter.reason),
        ("cause", Cause(error=reject.error, field=reject.field)),
        ("what is wrong", reject.message),
        ("attempts", letter.attempts),
        ("first seen", letter.first_seen),
        ("last seen", letter.last_seen),
        ("run", letter.run),
        ("shard", letter.shard),
        ("transformer version", letter.transformer_version),
        ("raw bytes", f"record {address.index} of page {address.frame} of {address.artifact}"),
        ("their hash", reject.raw_hash),
    ]
    console.print(pairs(rows))
    if letter.status is DeadLetterStatus.OPEN:
        console.print(printable(f"take it up again: sluice dlq redrive {letter.sync} {letter.id}", "dim"), soft_wrap=True)
    if record is None:
        console.print(printable(f"its raw bytes are gone: {gone}", "yellow"), soft_wrap=True)
        return
    text = pretty(record)
    console.print(printable(text[:_RAW_SHOWN]), soft_wrap=True)
    if len(text) > _RAW_SHOWN:
        console.print(f"… {len(text) - _RAW_SHOWN:,} characters more: --raw prints all of the {len(record):,} bytes")


def _standing(letter: DeadLetter) -> str:
    by = f" by {letter.ended_by}" if letter.ended_by else ""
    return f"{letter.status}{by}" + (f" at {spell(letter.ended_at)}" if letter.ended_at else "")
