"""`sluice backfill`: a sync and a span of time in; a plan, a run for each interval of it, and how they ended, out."""

from datetime import timedelta
from typing import Annotated

import typer
from pydantic import TypeAdapter, ValidationError

from sluice.cli.commands.run import asked_shards
from sluice.cli.person import person
from sluice.cli.session import AsJson, session_of
from sluice.errors import UsageInvalid
from sluice.model.backfill import BACKFILL_MODES, Reprocess
from sluice.model.run import Mode, Origin, RunRequest
from sluice.model.scalars import Duration


def parse_step(written: str) -> timedelta:
    """Return a duration as people write it."""
    try:
        step: timedelta = TypeAdapter(Duration).validate_python(written)
    except ValidationError as error:
        raise typer.BadParameter(error.errors()[0]["msg"].removeprefix("Value error, ")) from error
    return step


def backfill_mode(written: str) -> Mode:
    """Return the mode that was asked for."""
    if written not in BACKFILL_MODES:
        raise typer.BadParameter(f"{written!r} is not one of {', '.join(BACKFILL_MODES)}")
    return Mode(written)


def backfill(
    *,
    context: typer.Context,
    sync: Annotated[str, typer.Argument(metavar="SYNC", help="The name of the sync.")],
    start: Annotated[str | None, typer.Option("--from", metavar="TIME", help="Such as 2026-01-01, or …T06:00:00Z.")] = None,
    end: Annotated[str | None, typer.Option("--to", metavar="TIME", help="The first moment outside.")] = None,
    step: Annotated[
        timedelta | None,
        typer.Option(parser=parse_step, metavar="DURATION", help="A run for each 6h, 7d …; default: as the sync is scheduled."),
    ] = None,
    shards: Annotated[str | None, typer.Option(metavar="A,B", help="Only these shards.")] = None,
    mode: Annotated[
        Mode,
        typer.Option(parser=backfill_mode, metavar="|".join(BACKFILL_MODES), help="replay: map again what was fetched."),
    ] = Mode.FULL,
    max_active: Annotated[int, typer.Option(min=1, max=64, help="At most so many runs at a time.")] = 4,
    reprocess: Annotated[
        Reprocess, typer.Option(help="failed: resume what failed. completed: do all again that has ended.")
    ] = Reprocess.NONE,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan, and end.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Follow the runs in Airflow to their end.")] = False,
    inline: Annotated[
        bool, typer.Option("--inline", help="In this process, one run after the other, without Airflow.")
    ] = False,
    cancel: Annotated[bool, typer.Option("--cancel", help="Let what has not begun in Airflow not begin.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Bring in a span of time, one run for each interval of it.

    Shows the plan first: each interval, what there is of it, and what is done about it; at a terminal it asks before it begins.
    What has a run already is left alone unless --reprocess says otherwise, and what is at work is followed: so the same command
    goes on where it was stopped.

    The runs are those of a backfill of Airflow's own (connection sluice_airflow). Where that cannot do it (other steps than
    the schedule's, a replay, what is done once more) they are triggered one by one, and --wait is needed. Without --from and
    --to the newest backfill is shown, and followed with --wait. Ctrl-C ends the watching, not the runs.

    Ends with 0 if all intervals are in, 1 if one failed, 3 if one waits for a review, 4 if one lacks shards.

    Example: sluice backfill hotel_days --from 2026-01-01 --to 2026-01-31 --wait

    Example: sluice backfill hotel_days --from 2026-01-01 --to 2026-01-31 --reprocess failed --inline
    """
    from sluice.adapters.spec_files import SpecFiles
    from sluice.cli.backfill.asking import asked_of
    from sluice.cli.backfill.calling import Call, cancel_backfill
    from sluice.cli.backfill.spans import parse_range

    session = session_of(context)
    output = session.begin(as_json=as_json)
    if inline and (wait or cancel):
        raise UsageInvalid(
            "--wait and --cancel are for runs in Airflow; --inline always goes on to the end, and Ctrl-C ends it"
        )
    spec = SpecFiles(session.settings().include).sync(sync)
    if cancel:
        cancel_backfill(session, sync)
        return
    asked = None
    if inline or start is not None or end is not None:
        request = RunRequest(sync=sync, mode=mode, shards=asked_shards(shards), origin=Origin(), by=person())
        asked = asked_of(spec, request, parse_range(start, end), step, reprocess)
    call = Call(session, output, spec, max_active=max_active, is_dry=dry_run, waits=wait, is_sure=yes)
    with session.services() as services:
        code = call.inline(services, asked) if inline and asked is not None else call.in_airflow(services, asked)
    raise typer.Exit(code)
