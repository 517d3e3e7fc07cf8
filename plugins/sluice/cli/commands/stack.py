"""`sluice up` and `sluice demo`: the project folder in; a local stack that runs out."""

import typer

from sluice.cli.project import project_folder
from sluice.cli.session import AsJson, session_of


def up(context: typer.Context, as_json: AsJson = False) -> None:
    """Start a local stack: Postgres, S3, supplier, Airflow.

    It runs until Ctrl-C.

    Everything is kept under .sluice/ and bound to 127.0.0.1. Connections you define yourself are used instead.

    Example: sluice up
    """
    from sluice.cli.local.stack import up as start

    session_of(context).begin(as_json=as_json)
    raise typer.Exit(start(project_folder()))


def demo(context: typer.Context, as_json: AsJson = False) -> None:
    """Start the local stack and watch a sync run in Airflow.

    Example: sluice demo
    """
    from sluice.cli.local.stack import demo as show

    session_of(context).begin(as_json=as_json)
    raise typer.Exit(show(project_folder()))
