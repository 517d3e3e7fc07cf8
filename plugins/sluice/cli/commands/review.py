"""`sluice review`: a review or its run in; what it would change, and what a person decides about it, out."""

import os
import pwd
import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from sluice.cli.account import account_of, review_drawn
from sluice.cli.boundary import bounded
from sluice.cli.commands.run import show_outcome
from sluice.cli.exits import ExitCode, exit_code_of
from sluice.cli.logs import configure_logs
from sluice.cli.output import Output, printable, table
from sluice.cli.progress import RunProgress
from sluice.cli.session import AsJson, Session, session_of
from sluice.errors import IllegalTransition, NotFound, UsageInvalid
from sluice.model.base import ReviewId, RunId
from sluice.model.lifecycle import WAITING_VERDICTS
from sluice.model.review import Choice, Decision, Review
from sluice.model.run import Run
from sluice.ports import Services

review = typer.Typer(no_args_is_help=True, help="What a run would publish, and the decision about it.")

Named = Annotated[str, typer.Argument(metavar="REVIEW", help="The review's id, or its run's.")]
Comment = Annotated[str, typer.Option(help="Kept with the decision.")]


@review.command("list")
@bounded
def list_(
    context: typer.Context,
    sync: Annotated[str | None, typer.Option(help="Only reviews of this sync.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the reviews that wait for a person, the oldest first.

    Example: sluice review list --sync hotels
    """
    session = session_of(context)
    output = session.begin(as_json=as_json)
    with session.services() as services:
        waiting = services.reviews.waiting(sync)

    def draw(console: Console) -> None:
        drawn = [[r.id, r.sync, r.run, r.verdict, r.created_at, r.figures.writes, "; ".join(r.reasons)] for r in waiting]
        columns = ["review", "sync", "run", "verdict", "of", "writes", "because"]
        console.print(table(columns, drawn) if drawn else "no review waits")

    output.result({"reviews": waiting}, draw)


@review.command()
@bounded
def show(context: typer.Context, name: Named, as_json: AsJson = False) -> None:
    """Show what a review would change: figures, reasons, and some of the objects.

    Example: sluice review show inline-3f2a9c81d04e
    """
    from sluice.web.samples import samples_of

    session = session_of(context)
    output = session.begin(as_json=as_json)
    with session.services() as services:
        found = find_review(services, name)
        samples = samples_of(services, found)

    def draw(console: Console) -> None:
        console.print(review_drawn(found))
        for outcome, some in samples.items():
            more = found.figures.count(outcome) - len(some)
            keys = ", ".join(sample.key for sample in some)
            console.print(printable(f"{outcome}: {keys}" + (f", and {more:,} more" if more > 0 else "")))

    output.result({"review": found, "samples": {outcome: list(map(asdict, some)) for outcome, some in samples.items()}}, draw)


@review.command()
@bounded
def packet(
    context: typer.Context,
    name: Named,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Where to; else a file named after the review.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write the packet of a review, all that a person decides by, as one HTML file to be read or printed anywhere.

    Example: sluice review packet inline-3f2a9c81d04e -o packet.html
    """
    from sluice.flow.packet import packet_name, packet_of

    session = session_of(context)
    shown = session.begin(as_json=as_json)
    with session.services() as services:
        found = find_review(services, name)
        data = packet_of(services, found)
    if data is None:
        raise NotFound(
            f"the packet of review {found.id} was lost, or never made: `sluice review show {found.id}` tells the rest"
        )
    path = output or Path(packet_name(found))
    try:
        path.write_bytes(data)
    except OSError as error:
        raise UsageInvalid(f"cannot write {path}: {error.strerror}") from error
    document = {"review": found.id, "file": str(path), "bytes": len(data)}
    shown.result(document, lambda console: console.print(printable(f"wrote {path}"), soft_wrap=True))


@review.command()
@bounded
def approve(
    context: typer.Context,
    name: Named,
    without_deletes: Annotated[bool, typer.Option("--without-deletes", help="Publish all but the deletions.")] = False,
    comment: Comment = "",
    as_json: AsJson = False,
) -> None:
    """Approve a review. A run in Airflow goes on there; an inline run is published here and now.

    Example: sluice review approve inline-3f2a9c81d04e --without-deletes --comment "the supplier lost a region"
    """
    choice = Choice.APPROVE_WITHOUT_DELETES if without_deletes else Choice.APPROVE
    _answer(session_of(context), name, choice, comment, as_json=as_json)


@review.command()
@bounded
def reject(context: typer.Context, name: Named, comment: Comment = "", as_json: AsJson = False) -> None:
    """Reject a review: nothing of it is published, and its run ends cancelled.

    Example: sluice review reject inline-3f2a9c81d04e --comment "half of the hotels have no name"
    """
    _answer(session_of(context), name, Choice.REJECT, comment, as_json=as_json)


def find_review(services: Services, name: str) -> Review:
    """Return the review of that id, or the newest of the run of that id; raise `NotFound` if there is neither."""
    try:
        return services.reviews.get(ReviewId(name))
    except NotFound:
        found = services.reviews.latest(RunId(name))
    if found is None:
        raise NotFound(
            f"there is no review {name!r}, and no run of that id with one: `sluice review list` shows those that wait"
        )
    return found


def _answer(session: Session, name: str, choice: Choice, comment: str, *, as_json: bool) -> None:
    output = session.begin(as_json=as_json)
    with session.services() as services:
        found = find_review(services, name)
        run = services.runs.get(found.run)
        if run.origin.is_airflow:
            _refuse_another(found, choice)
            code = _answer_in_airflow(session, output, run, choice, comment)
        else:
            decision = Decision(choice=choice, by=os_user(), via="cli", comment=comment, at=services.clock.now())
            code = _answer_here(session, services, found, decision)
    raise typer.Exit(code)


def _refuse_another(found: Review, choice: Choice) -> None:
    """Let only a review that waits be answered, or one that has this answer already."""
    if found.verdict not in WAITING_VERDICTS and (found.decision is None or found.decision.choice is not choice):
        by = f", by {found.decision.by}" if found.decision else ""
        raise IllegalTransition(f"review {found.id} does not wait any more: it is {found.verdict}{by}")


def _answer_in_airflow(session: Session, output: Output, run: Run, choice: Choice, comment: str) -> ExitCode:
    from sluice.adapters.airflow_api import AirflowApi
    from sluice.model.airflow_names import ANSWERS

    dag_id, dag_run_id = str(run.origin.dag_id), str(run.origin.dag_run_id)
    with AirflowApi(session.airflow_connection()) as api:
        api.answer_gate(dag_id, dag_run_id, choice, comment)
        url = api.url(dag_id, dag_run_id)
    document: dict[str, Any] = {"run": run.id, "answer": choice.value, "via": "airflow", "url": url}
    text = f"answered {ANSWERS[choice]!r} in Airflow, where the run goes on: {url}"
    output.result(document, lambda console: console.print(printable(text, "green"), soft_wrap=True))
    return ExitCode.DONE


def _answer_here(session: Session, services: Services, found: Review, decision: Decision) -> ExitCode:
    """Record the decision, and go on with the inline run that waited for it; the same decision again goes on where it stood."""
    from sluice.flow.gate import decide
    from sluice.flow.inline import resume_inline

    began = time.monotonic()
    progress = RunProgress(session.output.err)
    configure_logs(verbose=session.verbose, listener=progress)
    with progress:
        decide(services, found.id, decision)
        done = resume_inline(services, found.run)
    account = account_of(services, done)
    show_outcome(session.output, account, time.monotonic() - began)
    return ExitCode.DONE if decision.choice is Choice.REJECT else exit_code_of(done.status)


def os_user() -> str:
    """Return the name of the account this process runs as, whatever the environment claims."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return f"uid {os.geteuid()}"
