"""What the commands share: the options of the command line in; settings, connections and services, opened on demand, out."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from sluice.cli.aside import aside
from sluice.cli.connections import CliConnections
from sluice.cli.output import Output
from sluice.cli.project import find_project, load_environment, project_settings
from sluice.model.connections import AIRFLOW
from sluice.ports import ConnectionInfo, Connections, Services
from sluice.settings import Settings

AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON document, and nothing else, to stdout.")]


@dataclass
class Session:
    """One call of the command."""

    airflow: Callable[[], Connections]
    """Opens Airflow's own lookup of connections."""
    verbose: bool = False
    debug: bool = False
    output: Output = field(default_factory=Output)

    def begin(self, *, as_json: bool) -> Output:
        """Begin a command: from here on, results are printed in the form asked for."""
        self.output = Output(as_json=as_json)
        return self.output

    def settings(self) -> Settings:
        """Return the settings of the project around the working directory, those of its local stack included."""
        _take_from_stack()
        return project_settings()

    def connections(self) -> CliConnections:
        """Return the connections, those of a local stack of this project included."""
        _take_from_stack()
        return CliConnections(os.environ, self.airflow, self.output.note)

    def airflow_connection(self) -> ConnectionInfo:
        """Return the connection to Airflow's REST API."""
        return self.connections().get(AIRFLOW)

    @contextmanager
    def services(self) -> Iterator[Services]:
        """Open the services for the time of the context."""
        from sluice.wiring import open_services

        with open_services(self.settings(), self.connections()) as services:
            yield replace(services, transform=lambda spec, shard: aside(services.transform(spec, shard)))


def _take_from_stack() -> None:
    """Take what the local stack of this project, if one runs, has left in its environment file."""
    project = find_project(Path.cwd())
    if project is not None:
        load_environment(project)


def session_of(context: typer.Context) -> Session:
    """Return the session of a command."""
    session = context.obj
    if not isinstance(session, Session):
        raise TypeError("a command was called without a session")
    return session
