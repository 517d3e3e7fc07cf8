"""A run that takes a publication back in; what it would restore, or has restored, out, for people and for programs."""

from dataclasses import dataclass
from typing import Any, Final

from rich.console import Console

from sluice.cli.account import how_to_answer
from sluice.cli.output import pairs, printable, table
from sluice.errors import NotFound, StateUnreadable
from sluice.model.evidence import Evidence
from sluice.model.ledger import Outcome, Publication
from sluice.model.lifecycle import RunStatus, Verdict
from sluice.model.review import Review
from sluice.model.run import Mode, Run
from sluice.model.spec import SyncSpec
from sluice.model.undo import Conflict
from sluice.ports import Services

_SHOWN: Final = 20
"""So many objects, fields and conflicts are shown to people."""


@dataclass(frozen=True)
class UndoAccount:
    """A rollback as far as it has come: its run, what was reviewed, and the publication it has made."""

    undone: Publication
    run: Run
    review: Review | None
    evidence: Evidence | None
    conflicts: list[Conflict]
    publication: Publication | None
    is_of_redrive: bool = False
    """Whether it takes back what a redrive has published."""

    def document(self) -> dict[str, Any]:
        """Return the account for programs."""
        return {
            "takes_back": self.undone,
            "run": self.run,
            "review": self.review,
            "changes": self.evidence.changes if self.evidence else (),
            "samples": self.evidence.samples if self.evidence else (),
            "conflicts": [{**conflict.model_dump(), "why": conflict.why} for conflict in self.conflicts],
            "publication": self.publication,
        }


def undo_account_of(services: Services, spec: SyncSpec, undone: Publication, run: Run) -> UndoAccount:
    """Gather what is known of a rollback; one that followed another has that one's review and publication."""
    from sluice.flow.packet import evidence_of
    from sluice.flow.rollback import conflicts_of

    ledger = services.ledger(spec)
    review = services.reviews.latest(run.worked_by)
    return UndoAccount(
        undone=ledger.publication(undone.id) or undone,
        run=run,
        review=review,
        evidence=evidence_of(services, review) if review else None,
        conflicts=conflicts_of(services, review) if review else [],
        publication=ledger.publication_of(review.id) if review else None,
        is_of_redrive=_is_of_redrive(services, undone),
    )


def _is_of_redrive(services: Services, undone: Publication) -> bool:
    try:
        return services.runs.get(undone.run).mode is Mode.REDRIVE
    except (NotFound, StateUnreadable):
        return False


def draw_preview(console: Console, account: UndoAccount) -> None:
    """Draw what would be restored, and what would be left alone; values of the supplier's are made harmless."""
    undone, figures = account.undone, account.review.figures if account.review else None
    console.print(
        pairs(
            [
                ("takes back", f"publication {undone.id} of {undone.sync}, {undone.applied_at:%Y-%m-%d %H:%M:%SZ}"),
                ("objects", figures.seen if figures else None),
                ("to be restored", figures.count(Outcome.ROLLED_BACK) if figures else None),
                ("left alone", figures.conflicts if figures else None),
            ]
        )
    )
    if account.is_of_redrive:
        console.print(
            "A redrive has published it: the dead letters that it closed stay closed. docs/dead-letters.md says more."
        )
    if account.evidence is not None and account.evidence.changes:
        rows = [[change.field, change.objects] for change in account.evidence.changes[:_SHOWN]]
        console.print(table(["field", "objects"], rows, title="fields that change"))
    if account.evidence is not None and account.evidence.samples:
        rows = [
            [sample.key if place == 0 else "", value.field, value.old, value.new]
            for sample in account.evidence.samples[:_SHOWN]
            for place, value in enumerate(sample.values)
        ]
        console.print(table(["object", "field", "now", "restored"], rows, title="some of the objects"))
    if account.conflicts:
        left = [[conflict.key, conflict.why] for conflict in account.conflicts[:_SHOWN]]
        console.print(table(["object", "why"], left, title="left alone"))
        if (more := len(account.conflicts) - _SHOWN) > 0:
            console.print(f"and {more:,} more: --json names them all")


def draw_end(console: Console, account: UndoAccount) -> None:
    """Draw what became of a rollback."""
    console.print(printable(_end(account), "green" if account.run.status is RunStatus.SUCCEEDED else "yellow"))
    if account.run.status is RunStatus.WAITING and account.review is not None:
        console.print(printable(how_to_answer(account.review), "bold"))


def _end(account: UndoAccount) -> str:
    undone, review = account.undone, account.review
    if account.publication is not None:
        restored = account.publication.counts.get(Outcome.ROLLED_BACK, 0)
        return f"publication {account.publication.id} takes {undone.id} back: {restored:,} objects restored"
    if undone.rolled_back_by is not None:
        return f"publication {undone.id} is taken back already, by publication {undone.rolled_back_by}"
    if review is not None and review.verdict is Verdict.REJECTED:
        return "nothing was restored"
    if review is not None and not review.figures.seen:
        return f"publication {undone.id} changed no row: there is nothing to restore"
    if account.run.status is RunStatus.SUCCEEDED:
        return f"nothing is left to restore of publication {undone.id}: somebody has changed each of its objects since"
    failure = f": {account.run.failure.message}" if account.run.failure else ""
    return f"nothing was restored yet: run {account.run.id} is {account.run.status}{failure}"
