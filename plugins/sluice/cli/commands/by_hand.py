"""`sluice shard`, `cancel` and `lease`: what is to be done to a run, a shard or a lease in; how it stands then out."""

from functools import partial
from typing import Annotated

import typer
from rich.console import Console

from sluice.cli.boundary import bounded
from sluice.cli.output import printable, table
from sluice.cli.person import Who, Why, person
from sluice.cli.session import AsJson, session_of
from sluice.model.base import RunId, ShardKey
from sluice.model.shard import Shard
from sluice.upkeep import what_next

shard = typer.Typer(no_args_is_help=True, help="One shard of a run: begin it again, do without it, or stop it.")
lease = typer.Typer(no_args_is_help=True, help="Which run works on which request, and how to take that from one that is dead.")

Of = Annotated[str, typer.Argument(metavar="RUN", help="The run's id.")]
Key = Annotated[str, typer.Argument(metavar="SHARD", help="The shard's key.")]


@shard.command()
@bounded
def reset(*, context: typer.Context, run: Of, key: Key, reason: Why, by: Who = None, as_json: AsJson = False) -> None:
    """Begin a shard again from its first page, skipped or stopped or not; what was fetched of it counts no more.

    Example: sluice shard reset inline-3f2a9c81d04e tokyo --reason "the supplier has mended its pages"
    """
    from sluice.upkeep.by_hand import reset_shard

    session = session_of(context)
    session.begin(as_json=as_json)
    with session.services() as services:
        done = reset_shard(services, RunId(run), ShardKey(key), person(by, reason))
        after = services.runs.get(done.run)
    _show(context, done, what_next.after_reset(after, done.key))


@shard.command()
@bounded
def skip(*, context: typer.Context, run: Of, key: Key, reason: Why, by: Who = None, as_json: AsJson = False) -> None:
    """Let a run be published without a shard that has not come in; nothing is deleted for its absence.

    Example: sluice shard skip inline-3f2a9c81d04e tokyo --reason "they have no rooms this month"
    """
    from sluice.upkeep.by_hand import skip_shard

    session = session_of(context)
    session.begin(as_json=as_json)
    with session.services() as services:
        done = skip_shard(services, RunId(run), ShardKey(key), person(by, reason))
        after = services.runs.get(done.run)
    _show(context, done, what_next.after_skip(after))


@shard.command()
@bounded
def stop(*, context: typer.Context, run: Of, key: Key, reason: Why, by: Who = None, as_json: AsJson = False) -> None:
    """Stop a shard where it stands: whoever works on it is fenced, and no retry goes on with it. What has come of it stays.

    Example: sluice shard stop inline-3f2a9c81d04e tokyo --reason "it floods their API"
    """
    from sluice.upkeep.by_hand import stop_shard

    session = session_of(context)
    session.begin(as_json=as_json)
    with session.services() as services:
        done = stop_shard(services, RunId(run), ShardKey(key), person(by, reason))
        after = services.runs.get(done.run)
    _show(context, done, what_next.after_stop(after, done.key))


def cancel(*, context: typer.Context, run: Of, reason: Why, by: Who = None, as_json: AsJson = False) -> None:
    """End a run that is not over, whatever it is at: nothing of it is published, and a review of it that waits is rejected.

    Its DagRun ends, too: at once where the connection sluice_airflow is defined, else as soon as its tasks notice.

    Example: sluice cancel inline-3f2a9c81d04e --reason "wrong window"
    """
    from sluice.flow.pinned_spec import pinned_ledger
    from sluice.upkeep.by_hand import cancel_run

    session = session_of(context)
    output = session.begin(as_json=as_json)
    with session.services() as services:
        cancelled = cancel_run(services, RunId(run), person(by, reason), partial(pinned_ledger, services))
    done = cancelled.run
    advice = what_next.after_cancel(done, cancelled.publication, cancelled.unknown)
    text = f"run {done.id} is {done.status}" + (f": {done.failure.message}" if done.failure else "")

    def draw(console: Console) -> None:
        console.print(printable(text, "green"), soft_wrap=True)
        console.print(printable(advice), soft_wrap=True)

    output.result({"run": done, "publication": cancelled.publication, "next": advice}, draw)


@lease.command("list")
@bounded
def list_(context: typer.Context, as_json: AsJson = False) -> None:
    """List which run has the flight of which request.

    Example: sluice lease list
    """
    session = session_of(context)
    output = session.begin(as_json=as_json)
    with session.services() as services:
        found = services.by_hand.leases()

    def draw(console: Console) -> None:
        rows = [
            [each.key, each.owner, each.status, each.seen_at, each.expires_at, "expired" if each.is_expired else None]
            for each in found
        ]
        columns = ["lease", "run", "status", "last sign of life", "expires", ""]
        console.print(table(columns, rows) if rows else "nobody works on anything")

    output.result({"leases": found}, draw)


@lease.command()
@bounded
def release(
    *,
    context: typer.Context,
    key: Annotated[str, typer.Argument(metavar="LEASE", help="The lease, as `sluice lease list` names it.")],
    reason: Why,
    by: Who = None,
    as_json: AsJson = False,
) -> None:
    """Take a lease from a run whose worker is dead, without waiting for it to expire. One that shows life is left alone.

    Whoever works in that run all the same is fenced. The next run of the request, or a retry of this one, goes on from the
    checkpoints.

    Example: sluice lease release hotel-content:default:hotels:1:8f3a90b1c2d3 --reason "its machine is gone"
    """
    from sluice.upkeep.by_hand import release_lease

    session = session_of(context)
    output = session.begin(as_json=as_json)
    with session.services() as services:
        released = release_lease(services, key, person(by, reason))
    text = (
        "nobody has it" if released is None else f"run {released.owner} has it no more: who asks for the same goes on with it"
    )
    output.result({"released": released}, lambda console: console.print(printable(text), soft_wrap=True))


def _show(context: typer.Context, done: Shard, advice: str) -> None:
    def draw(console: Console) -> None:
        told = f"shard {done.key} of run {done.run} is {done.status}" + (f": {done.failure.message}" if done.failure else "")
        console.print(printable(told, "green"), soft_wrap=True)
        console.print(printable(advice), soft_wrap=True)

    session_of(context).output.result({"shard": done, "next": advice}, draw)
