"""`sluice validate`: names of syncs in; every mistake in their files out."""

import typer
from rich.console import Console

from sluice.adapters.spec_files import SpecFiles
from sluice.cli.exits import ExitCode
from sluice.cli.output import printable
from sluice.cli.session import AsJson, session_of


def validate(
    context: typer.Context,
    syncs: list[str] = typer.Argument(None, metavar="[SYNC]…", help="Names of syncs; none: all of them, and stages.yaml."),  # noqa: B008
    as_json: AsJson = False,
) -> None:
    """Tell every mistake in the specs, with its line and mend.

    Checks include/syncs/*.yaml and include/stages.yaml.
    Needs no database and no Airflow. Ends with 2 if anything is wrong.

    Example: sluice validate hotels
    """
    session = session_of(context)
    output = session.begin(as_json=as_json)
    files = SpecFiles(session.settings().include)
    names = list(dict.fromkeys(syncs or files.names()))
    found = [problem for name in names for problem in files.check(name)] if syncs else files.check()
    problems = list(dict.fromkeys(found))

    def draw(console: Console) -> None:
        for problem in problems:
            console.print(printable(problem), soft_wrap=True)
        if not problems:
            console.print(printable(f"{', '.join(names) or 'no syncs yet'}: all right", "green"))

    output.result({"syncs": names, "problems": problems}, draw)
    if problems:
        output.fail(f"{len(problems)} problem{'s' if len(problems) > 1 else ''}", "Mend these lines and validate again.")
        raise typer.Exit(ExitCode.INVALID)
