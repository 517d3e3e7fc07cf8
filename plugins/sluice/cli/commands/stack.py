"""`sluice up` and `sluice demo`: the project folder in; a local stack that runs out."""

import sys
from collections.abc import Callable
from contextlib import nullcontext, redirect_stdout
from pathlib import Path

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

    _begin(context, start, as_json=as_json)


def demo(context: typer.Context, as_json: AsJson = False) -> None:
    """Start the local stack and watch a sync run in Airflow.

    Example: sluice demo
    """
    from sluice.cli.local.stack import demo as show

    _begin(context, show, as_json=as_json)


def _begin(context: typer.Context, start: Callable[[Path], int], *, as_json: bool) -> None:
    """Start the stack; with --json, what it tells on its way is no result."""
    output = session_of(context).begin(as_json=as_json)
    project = project_folder()
    with redirect_stdout(sys.stderr) if as_json else nullcontext():
        code = start(project)
    output.result({"project": str(project), "exit_code": code}, lambda _: None)
    raise typer.Exit(code)
