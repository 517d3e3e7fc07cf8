"""`sluice rollback`: a publication in; what taking it back would restore, a person's answer, and a restored table out."""

import sys
from collections.abc import Callable
from functools import partial
from typing import Annotated, Final

import typer

from sluice.cli.commands.publications import find_publication
from sluice.cli.exits import ExitCode, exit_code_of
from sluice.cli.logs import configure_logs
from sluice.cli.output import printable
from sluice.cli.person import os_user, person
from sluice.cli.progress import RunProgress
from sluice.cli.session import AsJson, Session, session_of
from sluice.cli.undo import UndoAccount, draw_end, draw_preview, undo_account_of
from sluice.errors import FlightTaken, IllegalTransition, NotFound, NotUndoable
from sluice.guard.takeover import is_taken_over
from sluice.model.ledger import Publication
from sluice.model.lifecycle import RunStatus, Verdict
from sluice.model.review import Choice, Decision
from sluice.model.run import Mode, Origin, Run, RunRequest
from sluice.model.spec import SyncSpec
from sluice.ports import Services

_MOST_WAYS_GIVEN: Final = 3
"""Whoever finds somebody else at the same more often than that is told so."""


def rollback(
    *,
    context: typer.Context,
    publication: Annotated[
        int, typer.Argument(metavar="PUBLICATION", min=1, help="Its number; `sluice publications` lists them.")
    ],
    sync: Annotated[str | None, typer.Option(help="Its sync, if several databases have a publication of that number.")] = None,
    comment: Annotated[str, typer.Option(help="Kept with the decision.")] = "",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Take a publication back: restore the rows it changed that nobody has changed since.

    Shows first what would change, and which objects are left alone since somebody has changed them; then asks. Where nobody
    can be asked (no terminal, or --json) it needs --yes; else it ends with 3, its review waits, and `sluice review` answers it.
    A rollback is a publication itself, and can be taken back. Run it again if it was killed.

    Example: sluice rollback 17 --comment "prices in the wrong currency"
    """
    session = session_of(context)
    output = session.begin(as_json=as_json)
    with session.services() as services:
        spec, undone = find_publication(session, services, publication, sync)
        successor = _successor(services, spec, undone)
        if successor is not None and _has_ended(services, successor):
            text = f"publication {undone.id} is taken back already, by publication {successor.id}"
            output.result({"takes_back": undone, "publication": successor}, lambda console: console.print(printable(text)))
            return
        account = _take_back(session, services, spec, undone, _Answer(session, comment, is_given=yes))
    output.result(account.document(), lambda console: draw_end(console, account))
    is_declined = account.review is not None and account.review.verdict is Verdict.REJECTED
    raise typer.Exit(ExitCode.DONE if is_declined else exit_code_of(account.run.status))


class _Answer:
    """What the person who asks for a rollback says to what it would restore."""

    def __init__(self, session: Session, comment: str, *, is_given: bool) -> None:
        self._session = session
        self._comment = comment
        self._is_given = is_given

    def to(self, services: Services, account: UndoAccount) -> Decision | None:
        """Return the decision, after showing what it is about; None if there is nobody to ask."""
        choice = Choice.APPROVE if self._is_given else self._ask(account)
        if choice is None:
            return None
        return Decision(choice=choice, by=os_user(), via="cli", comment=self._comment, at=services.clock.now())

    def _ask(self, account: UndoAccount) -> Choice | None:
        output = self._session.output
        if output.as_json:
            return None
        output.result({}, lambda console: draw_preview(console, account))
        if not sys.stdin.isatty():
            return None
        return Choice.APPROVE if typer.confirm("Restore them?", err=True) else Choice.REJECT


def _take_back(session: Session, services: Services, spec: SyncSpec, undone: Publication, answer: _Answer) -> UndoAccount:
    """Go through the run, and through its gate as often as what it would restore turns out to be another.

    Where somebody else asked for the same meanwhile, and his run is the one that counts, that one is gone on with.
    """
    from sluice.flow.gate import decide
    from sluice.flow.inline import resume_inline, run_inline

    request = RunRequest(sync=undone.sync, mode=Mode.ROLLBACK, undoes=undone.id, origin=Origin(), by=person())
    run, given_way = _watched(session, partial(run_inline, services, request)), 0
    while True:
        account = undo_account_of(services, spec, undone, run)
        if run.status is not RunStatus.WAITING or account.review is None:
            return account
        decision = answer.to(services, account)
        if decision is None:
            return account
        try:
            decide(services, account.review.id, decision)
            run = _watched(session, partial(resume_inline, services, run.id))
        except (IllegalTransition, FlightTaken) as error:
            if given_way == _MOST_WAYS_GIVEN:
                raise
            given_way += 1
            session.output.note(error.message)
            run = _watched(session, partial(run_inline, services, request))


def _watched(session: Session, work: Callable[[], Run]) -> Run:
    """Show how a run comes along; the terminal is free again when it waits."""
    progress = RunProgress(session.output.err)
    configure_logs(verbose=session.verbose, listener=progress)
    with progress:
        return work()


def _successor(services: Services, spec: SyncSpec, undone: Publication) -> Publication | None:
    """Return the publication that took this one back; raise `NotUndoable` if that was taken back itself."""
    if undone.rolled_back_by is None:
        return None
    ledger = services.ledger(spec)
    successor = ledger.publication(undone.rolled_back_by)
    if successor is not None and successor.rolled_back_by is not None:
        raise NotUndoable(
            f"publication {undone.id} was taken back by {successor.id}, which was taken back by {successor.rolled_back_by}: "
            "take that one back"
        )
    return successor


def _has_ended(services: Services, successor: Publication) -> bool:
    """Whether there is nothing left to do behind a rollback's publication; if its process died, that is done by a new run."""
    try:
        run = services.runs.get(successor.run)
    except NotFound:
        return True
    return run.status is RunStatus.SUCCEEDED or is_taken_over(run)
