"""`sluice run`: a request in; a run in this process, or one asked of Airflow, out."""

import time
from functools import partial
from typing import Annotated, Any, Final

import typer
from rich.console import Console

from sluice.cli.account import Account, account_of, draw_account
from sluice.cli.exits import ExitCode, exit_code_of
from sluice.cli.logs import configure_logs
from sluice.cli.output import Output, printable
from sluice.cli.person import person
from sluice.cli.progress import RunProgress
from sluice.cli.session import AsJson, Session, session_of
from sluice.errors import UsageInvalid
from sluice.model.airflow_names import dag_id_of
from sluice.model.base import RunId, ShardKey
from sluice.model.lifecycle import FINAL_RUN_STATUSES, RunStatus
from sluice.model.run import ASKED_MODES, SYNC_MODES, Mode, Origin, ReviewMode, Run, RunRequest, parse_window
from sluice.model.trigger_form import form_of

_SECONDS_BETWEEN_LOOKS: Final = 2.0
_RECENT: Final = 100


def sync_mode(written: str) -> Mode:
    """Return the mode that was asked for; what looks at no supplier is none to run a sync in."""
    return _one_of(SYNC_MODES, written)


def asked_mode(written: str) -> Mode:
    """Return the mode that was asked for, which may be to map once more what another run has fetched."""
    return _one_of(ASKED_MODES, written)


def _one_of(modes: tuple[Mode, ...], written: str) -> Mode:
    if written not in modes:
        raise typer.BadParameter(f"{written!r} is not one of {', '.join(modes)}")
    return Mode(written)


def run(
    *,
    context: typer.Context,
    sync: Annotated[str, typer.Argument(metavar="SYNC", help="The name of the sync.")],
    inline: Annotated[bool, typer.Option("--inline", help="In this process, without Airflow.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Follow the run in Airflow to its end, or to its review.")] = False,
    mode: Annotated[
        Mode | None,
        typer.Option(
            parser=asked_mode,
            metavar="|".join(ASKED_MODES),
            help="Default: incremental where the sync can, else full.",
        ),
    ] = None,
    of: Annotated[str | None, typer.Option(metavar="RUN", help="With --mode replay: whose raw data is mapped again.")] = None,
    shards: Annotated[str | None, typer.Option(metavar="A,B", help="Only these shards; nothing is deleted then.")] = None,
    window_start: Annotated[
        str | None, typer.Option("--window-start", "--from", metavar="TIME", help="Such as 2026-01-31T00:00:00Z.")
    ] = None,
    window_end: Annotated[
        str | None, typer.Option("--window-end", "--to", metavar="TIME", help="The first moment outside.")
    ] = None,
    version: Annotated[
        int | None,
        typer.Option(
            "--transformer-version", metavar="N", min=1, help="All shards by this version: the spec's, or its canary's alone."
        ),
    ] = None,
    review: Annotated[ReviewMode, typer.Option(help="always: a person has to look.")] = ReviewMode.POLICY,
    force: Annotated[bool, typer.Option("--force", help="Do all of it again, whatever another run of it has brought.")] = False,
    as_json: AsJson = False,
) -> None:
    """Bring a sync's table up to date.

    Fetches what the supplier has, transforms it, reviews what would change, and publishes it.

    Without --inline, Airflow is asked to run it (connection sluice_airflow). With it, the same steps run in this process
    on the same state; run it again after a kill, and it goes on from the last checkpoint. While another run of the same
    request is at work, this one waits, and ends as that one does. Ends with 3 if a review waits for a person, with 4 if some
    shards failed and the others were published.

    With --mode replay no supplier is asked: what the run named by --of has fetched is mapped again, as the spec has it now; or
    what all runs have fetched that were begun within --from and --to.

    Example: sluice run hotels --inline --shards tokyo

    Example: sluice run hotels --inline --mode replay --from 2026-01-30T00:00:00Z --to 2026-02-01T00:00:00Z
    """
    session = session_of(context)
    output = session.begin(as_json=as_json)
    request = RunRequest(
        sync=sync,
        mode=mode,
        window=parse_window(window_start, window_end, ("--window-start", "--window-end")),
        shards=asked_shards(shards),
        review=review,
        force=force,
        replays=None if of is None else RunId(of),
        version=version,
        origin=Origin(),
    )
    if inline and wait:
        raise UsageInvalid("--wait is for runs in Airflow; --inline always goes on to the end")
    code = run_here(session, output, request) if inline else ask_airflow(session, output, request, wait=wait)
    raise typer.Exit(code)


def run_here(session: Session, output: Output, request: RunRequest) -> ExitCode:
    """Run a request in this process, and print how it ended."""
    from sluice.flow.inline import run_inline

    began = time.monotonic()
    with session.services() as services:
        progress = RunProgress(output.err)
        configure_logs(verbose=session.verbose, listener=progress)
        with progress:
            done = run_inline(services, request.model_copy(update={"by": person()}))
        account = account_of(services, done)
    show_outcome(output, account, time.monotonic() - began)
    return exit_code_of(account.run.status)


def show_outcome(output: Output, account: Account, seconds: float) -> None:
    """Print how an inline run ended."""

    def draw(console: Console) -> None:
        draw_account(console, account)
        console.print(f"{seconds:.1f} s")

    output.result({**account.document(), "seconds": round(seconds, 3)}, draw)


def ask_airflow(session: Session, output: Output, request: RunRequest, *, wait: bool) -> ExitCode:
    """Ask Airflow to run a request, and print where it does, or how it ended."""
    from sluice.adapters.airflow_api import AirflowApi
    from sluice.adapters.spec_files import SpecFiles

    SpecFiles(session.settings().include).sync(request.sync)
    dag_id = dag_id_of(request.sync)
    with AirflowApi(session.airflow_connection()) as api:
        triggered = api.trigger(dag_id, form_of(request))
    text = f"{dag_id} runs in Airflow as {triggered.dag_run_id}: {triggered.url}"
    asked = {"dag_id": dag_id, "dag_run_id": triggered.dag_run_id, "url": triggered.url, "is_paused": triggered.is_paused}
    if triggered.is_paused:
        output.note(f"{dag_id} is paused in Airflow: the run begins once somebody unpauses it. Nobody waits for that here.")
    if triggered.is_paused or not wait:
        output.result(asked, lambda console: console.print(printable(text), soft_wrap=True))
        return ExitCode.FAILED if wait else ExitCode.DONE
    output.note(text)
    return _follow(session, output, request.sync, asked)


def _follow(session: Session, output: Output, sync: str, asked: dict[str, Any]) -> ExitCode:
    """Wait until the run ends or waits for a person, or until Airflow says that it failed before it was admitted."""
    told = None
    with session.services() as services:
        while True:
            found = next((r for r in services.runs.recent(sync, [], _RECENT) if _is_of(r, asked)), None)
            if found is not None and (doing := _doing(found)) != told:
                told = doing
                output.note(doing)
            if found is not None and _is_at_rest(found):
                account = account_of(services, found)
                output.result({**asked, **account.document()}, partial(draw_account, account=account))
                return exit_code_of(found.status)
            if found is None and _has_failed(session, asked):
                output.fail(f"{asked['dag_run_id']} failed before it was admitted", f"Its log says why: {asked['url']}")
                output.result(asked, lambda _: None)
                return ExitCode.FAILED
            time.sleep(_SECONDS_BETWEEN_LOOKS)


def _has_failed(session: Session, asked: dict[str, Any]) -> bool:
    from sluice.adapters.airflow_api import AirflowApi

    with AirflowApi(session.airflow_connection()) as api:
        return bool(api.dag_run(asked["dag_id"], asked["dag_run_id"])["state"] == "failed")


def _doing(run: Run) -> str:
    return f"waits for run {run.follows}, which works on the same request …" if run.is_following else f"{run.step} …"


def _is_at_rest(run: Run) -> bool:
    return run.status in FINAL_RUN_STATUSES or (run.status is RunStatus.WAITING and not run.is_following)


def _is_of(run: Run, asked: dict[str, Any]) -> bool:
    return (run.origin.dag_id, run.origin.dag_run_id) == (asked["dag_id"], asked["dag_run_id"])


def asked_shards(written: str | None) -> tuple[ShardKey, ...]:
    """Return the shards that were asked for; none where nothing was written. Raises `UsageInvalid`."""
    if written is None:
        return ()
    keys = tuple(ShardKey(key.strip()) for key in written.split(","))
    if not all(keys):
        raise UsageInvalid(f"--shards {written!r}: shard keys joined by commas, none of them empty")
    return keys
