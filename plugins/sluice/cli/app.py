"""The command line: arguments in; what the commands print, and their exit code, out."""

from collections.abc import Callable, Sequence
from typing import Annotated

import typer

from sluice import __version__
from sluice.cli.boundary import bounded
from sluice.cli.commands.audit import audit
from sluice.cli.commands.backfill import backfill
from sluice.cli.commands.by_hand import cancel, lease, shard
from sluice.cli.commands.compare import compare
from sluice.cli.commands.database import db
from sluice.cli.commands.dlq import dlq
from sluice.cli.commands.doctor import doctor
from sluice.cli.commands.garbage import gc
from sluice.cli.commands.new import new
from sluice.cli.commands.publications import publications
from sluice.cli.commands.reconcile import reconcile
from sluice.cli.commands.review import review
from sluice.cli.commands.rollback import rollback
from sluice.cli.commands.run import run as run_command
from sluice.cli.commands.runs import ledger, runs, show
from sluice.cli.commands.stack import demo, up
from sluice.cli.commands.try_spec import try_spec
from sluice.cli.commands.validate import validate
from sluice.cli.commands.why import why
from sluice.cli.logs import configure_logs
from sluice.cli.session import Session
from sluice.ports import Connections

_DECLARE, _WORK, _LOOK, _SETUP = "Declare a sync", "Run and decide", "Look", "Set up"

_EPILOG = "Exit codes: 0 done, 1 failed, 2 usage or invalid spec, 3 waits for a review, 4 partial."


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"sluice {__version__}")
        raise typer.Exit


def build_app(airflow: Callable[[], Connections]) -> typer.Typer:
    """Return the command line; `airflow` opens Airflow's own lookup of connections."""
    app = typer.Typer(
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
        epilog=_EPILOG,
        help="Keep Postgres tables in step with slow, unreliable suppliers, and let nothing reach them unreviewed.\n\n"
        "Begin with `sluice demo`. Declare a supplier of your own with `sluice new`, and see with `sluice try` what it has.\n\n"
        "Every command has --json and an example in its --help.",
    )

    @app.callback()
    def options(
        context: typer.Context,
        verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show every log event on stderr.")] = False,
        debug: Annotated[bool, typer.Option("--debug", help="Let errors through with their traceback.")] = False,
        _: Annotated[
            bool, typer.Option("--version", help="Print the version and end.", is_eager=True, callback=_print_version)
        ] = False,
    ) -> None:
        configure_logs(verbose=verbose)
        context.obj = Session(airflow=airflow, verbose=verbose, debug=debug)

    app.command(rich_help_panel=_DECLARE)(bounded(new))
    app.command("try", rich_help_panel=_DECLARE)(bounded(try_spec))
    app.command(rich_help_panel=_DECLARE)(bounded(validate))
    app.command("run", rich_help_panel=_WORK)(bounded(run_command))
    app.command(rich_help_panel=_WORK)(bounded(backfill))
    app.add_typer(review, name="review", rich_help_panel=_WORK)
    app.add_typer(dlq, name="dlq", rich_help_panel=_WORK)
    app.command(rich_help_panel=_WORK)(bounded(rollback))
    app.add_typer(shard, name="shard", rich_help_panel=_WORK)
    app.command(rich_help_panel=_WORK)(bounded(cancel))
    app.add_typer(lease, name="lease", rich_help_panel=_WORK)
    app.command(rich_help_panel=_LOOK)(bounded(runs))
    app.command(rich_help_panel=_LOOK)(bounded(show))
    app.command(rich_help_panel=_LOOK)(bounded(publications))
    app.command(rich_help_panel=_LOOK)(bounded(ledger))
    app.command(rich_help_panel=_LOOK)(bounded(why))
    app.command(rich_help_panel=_LOOK)(bounded(reconcile))
    app.command(rich_help_panel=_LOOK)(bounded(compare))
    app.command(rich_help_panel=_LOOK)(bounded(audit))
    app.add_typer(db, name="db", rich_help_panel=_SETUP)
    app.command(rich_help_panel=_SETUP)(bounded(doctor))
    app.command(rich_help_panel=_SETUP)(bounded(gc))
    app.command(rich_help_panel=_SETUP)(bounded(up))
    app.command(rich_help_panel=_SETUP)(bounded(demo))
    return app


def run(arguments: Sequence[str], airflow: Callable[[], Connections]) -> int:
    """Run one command and return its exit code."""
    try:
        build_app(airflow)(list(arguments), prog_name="sluice")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    return 0
