"""`sluice try`: a spec in; what a run of it would ask for, map and change out, and nothing written."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from sluice.adapters.spec_files import SpecFiles
from sluice.cli.commands.run import sync_mode
from sluice.cli.exits import ExitCode
from sluice.cli.logs import configure_logs
from sluice.cli.output import Output
from sluice.cli.requests import RequestsSeen
from sluice.cli.session import AsJson, session_of
from sluice.cli.trial import draw_requests, draw_trial, trial_document
from sluice.errors import SluiceError
from sluice.model.base import ShardKey
from sluice.model.run import SYNC_MODES, Mode, parse_window
from sluice.model.trial import MOST_RECORDS, Trial, TrialQuestion


def try_spec(
    *,
    context: typer.Context,
    spec: Annotated[str, typer.Argument(metavar="SPEC", help="The name of a sync, or the path of a YAML file.")],
    shard: Annotated[str | None, typer.Option(help="The key of a shard; default: the first.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=MOST_RECORDS, help="Take so many records at most.")] = 10,
    mode: Annotated[
        Mode | None,
        typer.Option(
            parser=sync_mode,
            metavar="|".join(SYNC_MODES),
            help="Default: incremental where the sync can, else full.",
        ),
    ] = None,
    window_start: Annotated[str | None, typer.Option(metavar="TIME", help="Such as 2026-01-31T00:00:00Z.")] = None,
    window_end: Annotated[str | None, typer.Option(metavar="TIME", help="The first moment outside.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show what a spec would do: requests, records, rows, rejects, changes. Writes nothing.

    Fetches a few records of one shard, maps them, and compares them with what the target holds, if there is one. There is
    no run, no artifact, and neither table nor ledger is written. What all workers share about the supplier's host is kept up
    as ever: its pace, its breaker, its access token.

    Ends with 1 if the supplier or the table would make a run fail, with 2 if the spec is invalid, with 4 if records were
    rejected.

    Example: sluice try hotels --shard tokyo --limit 3
    """
    session = session_of(context)
    output = session.begin(as_json=as_json)
    files = SpecFiles(session.settings().include)
    file = Path(spec) if spec.endswith((".yaml", ".yml")) or "/" in spec else files.sync_path(spec)
    declared = files.sync(spec) if file == files.sync_path(spec) else files.sync_in(file)
    question = TrialQuestion(
        shard=ShardKey(shard) if shard is not None else None,
        limit=limit,
        mode=mode,
        window=parse_window(window_start, window_end, ("--window-start", "--window-end")),
    )
    seen = RequestsSeen()
    configure_logs(verbose=session.verbose, listener=seen)
    from sluice.flow import trial as trying

    try:
        with session.services() as services:
            trial = trying.try_spec(services, declared, question)
    except SluiceError:
        _show_requests(output, seen)
        raise
    hints = files.placed(file, [(hint.path, hint.message) for hint in trial.hints])
    requests = seen.requests
    output.result(trial_document(trial, requests, hints), partial(draw_trial, trial=trial, requests=requests, hints=hints))
    raise typer.Exit(_ended(output, trial))


def _show_requests(output: Output, seen: RequestsSeen) -> None:
    """Show what was asked before an error took all that came of it."""
    if seen.requests:
        draw_requests(output.err, seen.requests)


def _ended(output: Output, trial: Trial) -> ExitCode:
    if trial.failure is not None:
        output.fail(f"{trial.failure.error}: {trial.failure.message}")
        return ExitCode.FAILED
    return ExitCode.PARTIAL if trial.rejects else ExitCode.DONE
