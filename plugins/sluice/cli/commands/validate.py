"""`sluice validate`: names of syncs in; every mistake in their files, and in the functions they name, out."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path as FilePath

import typer
from rich.console import Console

from sluice.adapters.notifiers import is_absent, wrong_notifiers
from sluice.adapters.spec_files import SpecFiles
from sluice.adapters.transforms import loaded
from sluice.adapters.triage import triage_of
from sluice.adapters.yaml_positions import Path
from sluice.cli.exits import ExitCode
from sluice.cli.output import printable
from sluice.cli.session import AsJson, session_of
from sluice.errors import SpecInvalid
from sluice.model.spec import SyncSpec


def validate(
    context: typer.Context,
    syncs: list[str] = typer.Argument(None, metavar="SYNC", help="Names of syncs; none: all of them, and stages.yaml."),  # noqa: B008
    as_json: AsJson = False,
) -> None:
    """Tell every mistake in the specs, with its line and mend.

    Checks include/syncs/*.yaml and include/stages.yaml, and imports the transforms and notifiers that they name.
    Needs no database and no Airflow. Ends with 2 if anything is wrong.

    Example: sluice validate hotels
    """
    session = session_of(context)
    output = session.begin(as_json=as_json)
    include = session.settings().include
    files = SpecFiles(include)
    names = list(dict.fromkeys(syncs or files.names()))
    found = [problem for name in names for problem in files.check(name)] if syncs else files.check()
    found += [problem for name in names for problem in _in_functions(files, include, name)]
    stages = sorted({*_stages_of(files, syncs)} if syncs else files.stages())
    problems = list(dict.fromkeys([*found, *(problem for stage in stages for problem in _in_notifiers(files, include, stage))]))

    def draw(console: Console) -> None:
        for problem in problems:
            console.print(printable(problem), soft_wrap=True)
        if not problems:
            console.print(printable(f"{', '.join(names) or 'no syncs yet'}: all right", "green"))

    output.result({"syncs": names, "problems": problems}, draw)
    if problems:
        output.fail(f"{len(problems)} problem{'s' if len(problems) > 1 else ''}", "Mend these lines and validate again.")
        raise typer.Exit(ExitCode.INVALID)


def _stages_of(files: SpecFiles, syncs: list[str]) -> Iterator[str]:
    for name in syncs:
        with suppress(SpecInvalid):
            yield files.sync(name).stage


def _in_notifiers(files: SpecFiles, include: FilePath, stage: str) -> list[str]:
    """Return what is wrong with those whom a stage tells; what is not installed here may be where tasks run."""
    try:
        policy = files.policy(stage)
    except SpecInvalid:
        return []
    wrong = [(path, error) for path, error in wrong_notifiers(policy, include) if not is_absent(error)]
    return files.placed_in_stages(stage, [(path, error.message.removeprefix("alerts.notify: ")) for path, error in wrong])


def _in_functions(files: SpecFiles, include: FilePath, name: str) -> list[str]:
    """Return what is wrong with the team's functions of a sync, if its file is sound."""
    try:
        spec = files.sync(name)
    except SpecInvalid:
        return []
    return files.placed(files.sync_path(name), _unusable(spec, include))


def _unusable(spec: SyncSpec, include: FilePath) -> Iterator[tuple[Path, str]]:
    canary = spec.canary.transform if spec.canary else None
    for place, declared in ((("transform",), spec.transform), (("canary", "transform"), canary)):
        if declared is not None:
            try:
                loaded(declared, include)
            except SpecInvalid as error:
                yield (*place, "function"), error.message.removeprefix("transform.function: ")
    try:
        triage_of(spec, include)
    except SpecInvalid as error:
        yield ("triage",), error.message.removeprefix("triage: ")
