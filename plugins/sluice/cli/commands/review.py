"""`sluice review`: a review or its run in; what it would change, and what a person decides about it, out."""

import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from sluice.cli.account import account_of, review_drawn
from sluice.cli.boundary import bounded
from sluice.cli.commands.run import show_outcome
from sluice.cli.evidence import evidence_drawn
from sluice.cli.exits import ExitCode, exit_code_of
from sluice.cli.logs import configure_logs
from sluice.cli.output import printable, table
from sluice.cli.person import os_user
from sluice.cli.progress import RunProgress
from sluice.cli.session import AsJson, Session, session_of
from sluice.errors import (
    ArtifactCorrupt,
    IllegalTransition,
    NotFound,
    SpecInvalid,
    StateTooNew,
    StateUnreadable,
    UsageInvalid,
)
from sluice.model.base import ReviewId, RunId
from sluice.model.ledger import Outcome
from sluice.model.lifecycle import WAITING_VERDICTS
from sluice.model.review import MOST_DELETES, Choice, Decision, Review, no_longer_waits
from sluice.model.run import Run
from sluice.packet.words import lasting
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
        now = services.clock.now()
        waiting = [(review, _expires_at(services, review)) for review in services.reviews.waiting(sync)]

    def draw(console: Console) -> None:
        columns = ["review", "sync", "run", "verdict", "age", "expires", "writes", "deletions", "because"]
        drawn = [
            [
                *(r.id, r.sync, r.run, r.verdict, lasting(now - r.created_at), _until(expires, now)),
                *(r.figures.writes, r.figures.count(Outcome.DELETED), "; ".join(r.reasons)),
            ]
            for r, expires in waiting
        ]
        console.print(table(columns, drawn) if drawn else "no review waits")

    listed = [
        {
            **review.model_dump(),
            "age": timedelta(seconds=int((now - review.created_at).total_seconds())),
            "expires_at": expires,
            "writes": review.figures.writes,
            "deletions": review.figures.count(Outcome.DELETED),
        }
        for review, expires in waiting
    ]
    output.result({"reviews": listed}, draw)


@review.command()
@bounded
def show(context: typer.Context, name: Named, as_json: AsJson = False) -> None:
    """Show what a review would change, why it waits, and what was decided: figures, reasons, changed fields, some objects.

    Example: sluice review show inline-3f2a9c81d04e
    """
    from sluice.flow.packet import evidence_of

    session = session_of(context)
    output = session.begin(as_json=as_json)
    with session.services() as services:
        found = find_review(services, name)
        evidence = evidence_of(services, found)
        samples = _samples(services, found) if evidence is None else {}
        newest = services.reviews.latest(found.run)
    newer = newest if newest is not None and newest.id != found.id else None

    def draw(console: Console) -> None:
        console.print(review_drawn(found))
        if newer is not None:
            console.print(printable(f"its run was reviewed again: review {newer.id} is {newer.verdict}", "yellow"))
        console.print(evidence_drawn(found, evidence))

    output.result({"review": found, "newer": newer, "evidence": evidence, "samples": samples}, draw)


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
    *,
    without_deletes: Annotated[bool, typer.Option("--without-deletes", help="Publish all but the deletions.")] = False,
    deletes_at_most: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, max=MOST_DELETES, help="Let no more than N deletions through, this once."),
    ] = None,
    comment: Comment = "",
    as_json: AsJson = False,
) -> None:
    """Approve a review. A run in Airflow goes on there; an inline run is published here and now.

    Without a number, the approval is of as many deletions as the review has; one that is blocked for them wants a number.

    Example: sluice review approve inline-3f2a9c81d04e --deletes-at-most 39 --comment "they have closed"
    """
    session = session_of(context)
    session.begin(as_json=as_json)
    if without_deletes and deletes_at_most is not None:
        raise UsageInvalid("--deletes-at-most and --without-deletes do not go together: the latter lets no deletion through")
    choice = Choice.APPROVE_WITHOUT_DELETES if without_deletes else Choice.APPROVE
    _answer(session, name, Answer(choice, comment, deletes_at_most))


@review.command()
@bounded
def reject(context: typer.Context, name: Named, comment: Comment = "", as_json: AsJson = False) -> None:
    """Reject a review: nothing of it is published, and its run ends cancelled.

    Example: sluice review reject inline-3f2a9c81d04e --comment "half of the hotels have no name"
    """
    session = session_of(context)
    session.begin(as_json=as_json)
    _answer(session, name, Answer(Choice.REJECT, comment))


@dataclass(frozen=True)
class Answer:
    """What a person says on the command line."""

    choice: Choice
    comment: str
    deletes_at_most: int | None = None

    def decision(self, services: Services, by: str, via: str) -> Decision:
        """Return the decision it makes."""
        return Decision(
            choice=self.choice,
            by=by,
            via=via,
            comment=self.comment,
            deletes_at_most=self.deletes_at_most,
            at=services.clock.now(),
        )


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


def _answer(session: Session, name: str, answer: Answer) -> None:
    with session.services() as services:
        found = find_review(services, name)
        run = services.runs.get(found.run)
        if run.origin.is_airflow:
            code = _answer_in_airflow(session, run, found, answer, is_new=_is_new(services, found, answer))
        else:
            code = _answer_here(session, services, found, answer.decision(services, by=os_user(), via="cli"))
    raise typer.Exit(code)


def _is_new(services: Services, found: Review, answer: Answer) -> bool:
    """Whether Airflow has yet to be given the answer. One that was given is not given again: another review may be asked about.

    Raises `IllegalTransition` if it would change nothing, and `DecisionRefused` if the gate would refuse it; who may answer is
    for Airflow to say.
    """
    from sluice.flow.gate import require_allowed

    if found.verdict in WAITING_VERDICTS:
        require_allowed(services, found, answer.decision(services, by="", via="airflow"))
        return True
    newest = services.reviews.latest(found.run)
    if newest is not None and newest.id != found.id and newest.verdict in WAITING_VERDICTS:
        raise IllegalTransition(
            f"review {found.id} was {found.verdict}, which counts no more: its run asks about review {newest.id} by now, "
            "so decide about that one"
        )
    if found.decision is not None and found.decision.choice is answer.choice:
        return False
    successor = None
    if found.superseded_by is not None:
        with suppress(NotFound, StateTooNew, StateUnreadable):
            successor = services.reviews.get(found.superseded_by)
    raise IllegalTransition(no_longer_waits(found, successor))


def _answer_in_airflow(session: Session, run: Run, found: Review, answer: Answer, *, is_new: bool) -> ExitCode:
    from sluice.adapters.airflow_api import AirflowApi
    from sluice.model.airflow_names import ANSWERS, dag_run_url

    with AirflowApi(session.airflow_connection()) as api:
        if is_new:
            api.answer_gate(run.origin, found.id, answer.choice, answer.comment, answer.deletes_at_most)
        url = dag_run_url(api.base, run.origin)
    document: dict[str, Any] = {"run": run.id, "answer": answer.choice.value, "via": "airflow", "url": url}
    text = f"answered {ANSWERS[answer.choice]!r} in Airflow, where the run goes on: {url}"
    if not is_new:
        text = f"review {found.id} is {found.verdict} already{_decided_by(found)}: {url}"
    session.output.result(document, lambda console: console.print(printable(text, "green"), soft_wrap=True))
    return ExitCode.DONE


def _decided_by(review: Review) -> str:
    return f", by {review.decision.by}" if review.decision else ""


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


def _expires_at(services: Services, review: Review) -> datetime | None:
    """Return when policy decides in a person's place; None if the run's own spec cannot be read any more."""
    from sluice.flow.gate import expires_at

    with suppress(NotFound, ArtifactCorrupt, SpecInvalid, StateUnreadable, StateTooNew):
        return expires_at(services, review)
    return None


def _samples(services: Services, review: Review) -> dict[Outcome, list[dict[str, Any]]]:
    """Return some objects of each outcome as the diff names them, where there is no evidence; none if it was lost, too."""
    from sluice.web.samples import samples_of

    with suppress(ArtifactCorrupt):
        return {outcome: list(map(asdict, some)) for outcome, some in samples_of(services, review).items()}
    return {}


def _until(moment: datetime | None, now: datetime) -> str:
    if moment is None:
        return ""
    return f"in {lasting(moment - now)}" if moment > now else "overdue"
