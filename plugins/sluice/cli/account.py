"""A run in; all that is known of it out, for people and for programs."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

from rich.console import Console, Group, RenderableType
from rich.text import Text

from sluice.cli.output import pairs, printable, table
from sluice.cli.trail import trail_drawn
from sluice.errors import TargetUnavailable
from sluice.model.audit import AuditEntry
from sluice.model.call import Call
from sluice.model.ledger import Outcome, Publication
from sluice.model.lifecycle import WAITING_VERDICTS
from sluice.model.progress import shown
from sluice.model.review import Decision, Review
from sluice.model.run import Mode, Run
from sluice.model.shard import Shard
from sluice.model.shard_tally import tallies, worth_showing
from sluice.packet.words import counts_of
from sluice.ports import Services

_ACTS: Final = 100
"""So many acts are told of, the newest."""


@dataclass(frozen=True)
class Account:
    """A run, its shards with what they have so far, its newest review, the publication of that, and the calls it made.

    Review and publication of a run that followed another, or has its result, are that one's.
    """

    run: Run
    shards: list[Shard]
    review: Review | None
    publication: Publication | None
    calls: list[Call] = field(default_factory=list)
    acts: list[AuditEntry] = field(default_factory=list)
    """What people and policy have done to the run, oldest first."""
    unknown: str | None = None
    """Why it cannot be told whether the review was published."""

    def document(self) -> dict[str, Any]:
        """Return the account for programs."""
        return {
            "run": self.run,
            "shards": self.shards,
            "review": self.review,
            "publication": self.publication,
            "calls": [{**call.model_dump(), "standing": call.standing} for call in self.calls],
            "acts": self.acts,
            **({"publication_unknown": self.unknown} if self.unknown else {}),
        }


def account_of(services: Services, run: Run) -> Account:
    """Gather what is known of a run; a target that cannot be reached hides the publication, and nothing else."""
    from sluice.flow.pinned_spec import pinned_spec

    shards = shown(services.shards.of(run.id), services.progress.of(run.id))
    review = services.reviews.latest(run.worked_by)
    publication, unknown = None, None
    if review is not None and review.verdict not in WAITING_VERDICTS:
        try:
            publication = services.ledger(pinned_spec(services, run)).publication_of(review.id)
        except TargetUnavailable as error:
            unknown = error.message
    return Account(
        run=run,
        shards=shards,
        review=review,
        publication=publication,
        calls=services.calls.of(run.id),
        acts=services.audit.of(None, run.id, _ACTS)[::-1],
        unknown=unknown,
    )


def draw_account(console: Console, account: Account) -> None:
    """Draw all that is known of a run."""
    run = account.run
    console.print(
        pairs(
            [
                ("run", run.id),
                ("sync", run.sync),
                ("status", f"{run.status} (at {run.step})" if run.finished_at is None else run.status),
                ("follows" if run.is_following else "result of", run.follows),
                ("mode", run.mode),
                ("takes back", f"publication {run.undoes}" if run.undoes is not None else None),
                ("maps again", _replayed(run)),
                ("window", f"{run.window.start.isoformat()} to {run.window.end.isoformat()}" if run.window else None),
                ("transformer", _versions(account)),
                ("began", run.created_at),
                ("ended", run.finished_at),
                ("in Airflow", f"{run.origin.dag_id} {run.origin.dag_run_id}" if run.origin.is_airflow else None),
                ("failure", f"{run.failure.error}: {run.failure.message}" if run.failure else None),
            ]
        )
    )
    if account.shards:
        console.print(_shards_drawn(account.shards, " so far" if run.finished_at is None else ""))
    if account.review is not None:
        console.print(review_drawn(account.review))
    console.print(_publication_drawn(account))
    if account.calls:
        rows = [[call.name, call.standing, call.begun, _said(call), call.key] for call in account.calls]
        console.print(table(["webhook", "standing", "begun", "answer", "key"], rows))
    if account.acts:
        console.print(trail_drawn(account.acts, title="what was done to it"))


def _replayed(run: Run) -> str | None:
    """Say whose raw data a replay maps again."""
    if run.mode is not Mode.REPLAY:
        return None
    return (
        f"what run {run.replays} has fetched"
        if run.replays is not None
        else "what all runs have fetched that were begun within"
    )


def _versions(account: Account) -> str:
    """Say by which version of the transformation the shards are made, and how many of them by which, where there are two."""
    counts = Counter(shard.version_in(account.run) for shard in account.shards)
    if len(counts) <= 1:
        return f"version {next(iter(counts), account.run.transformer_version)}"
    return ", ".join(f"version {version}: {number:,} shards" for version, number in sorted(counts.items()))


def _shards_drawn(shards: list[Shard], so_far: str) -> RenderableType:
    """Return the shards; of many what they come to, and those that are not done."""
    shown = worth_showing(shards)
    parts: list[RenderableType] = []
    if found := tallies(shards):
        rows = [[tally.status, tally.shards, tally.pages, tally.records] for tally in found]
        parts.append(table(["status", "shards", f"pages{so_far}", f"records{so_far}"], rows))
        parts.append(Text(f"{len(shown)} of {len(shards):,} shards, those first that are not done; --json has all of them"))
    rows_of_each = [[s.key, s.status, s.pages, s.records, s.attempt, s.failure.message if s.failure else None] for s in shown]
    columns = ["shard", "status", f"pages{so_far}", f"records{so_far}", "attempt", "failure"]
    return Group(*parts, table(columns, rows_of_each))


def review_drawn(review: Review) -> RenderableType:
    """Return the figures of a review, its verdict and, while it waits, how to answer it."""
    parts: list[RenderableType] = [
        pairs(
            [
                ("review", review.id),
                ("verdict", review.verdict),
                ("of", review.created_at),
                ("superseded by", review.superseded_by),
            ]
        ),
        table(["objects", "number", "meaning"], counts_of(review.figures)),
    ]
    parts += [printable(f"because {reason}", "yellow") for reason in review.reasons]
    if review.decision is not None:
        parts.append(printable(_decision_told(review.decision)))
    if review.verdict in WAITING_VERDICTS:
        parts.append(Text(how_to_answer(review), style="bold"))
    return Group(*parts)


def how_to_answer(review: Review) -> str:
    """Return the commands that show and answer a review that waits."""
    deleted = review.figures.count(Outcome.DELETED)
    number, instead = (f" --deletes-at-most {deleted}", "or --without-deletes, or reject") if deleted else ("", "or reject")
    return (
        f"The review waits for a person.\n"
        f"  look:    sluice review show {review.id}\n"
        f"  decide:  sluice review approve {review.id}{number}   ({instead})"
    )


def _decision_told(decision: Decision) -> str:
    """Say who decided what, by which way, when, how many deletions that lets through, and why."""
    number = f", at most {decision.deletes_at_most:,} deletions" if decision.deletes_at_most is not None else ""
    said = f": {decision.comment}" if decision.comment else ""
    return f"{decision.choice} by {decision.by} ({decision.via}), {decision.at:%Y-%m-%d %H:%M:%SZ}{number}{said}"


def _said(call: Call) -> str | None:
    """Return what is known of a call's end: the answer, or why there is none."""
    return call.result.answer if call.result is not None else call.trouble


def _publication_drawn(account: Account) -> RenderableType:
    if account.unknown:
        return printable(f"whether it was published is unknown: {account.unknown}", "yellow")
    publication = account.publication
    if publication is None:
        return printable("nothing published")
    counts = ", ".join(f"{count:,} {outcome}" for outcome, count in publication.counts.items() if count)
    counts = counts or "newer versions of what the table holds already"
    return printable(f"publication {publication.id}, {publication.applied_at:%Y-%m-%d %H:%M:%SZ}: {counts}", "green")
