"""`sluice db`: connections in; schemas of this release out."""

from typing import Any

import typer
from rich.console import Console

from sluice.adapters.spec_files import SpecFiles
from sluice.cli.boundary import bounded
from sluice.cli.output import printable
from sluice.cli.session import AsJson, session_of
from sluice.errors import SpecInvalid
from sluice.model.connections import STATE, TARGET

db = typer.Typer(no_args_is_help=True, help="The tables Sluice keeps for itself.")


@db.command()
@bounded
def upgrade(context: typer.Context, as_json: AsJson = False) -> None:
    """Bring Sluice's own tables to this release.

    These are sluice_state, and sluice_ledger beside every target.

    Safe to run again, and from several places at once. No published table is touched.

    Example: sluice db upgrade
    """
    from sluice.adapters.migrate import upgrade as migrate

    session = session_of(context)
    output = session.begin(as_json=as_json)
    connections = session.connections()
    upgraded: list[dict[str, Any]] = []
    revisions = migrate(connections.get(STATE), "sluice_state")
    upgraded.append({"connection": STATE, "schema": "sluice_state", "applied": revisions})
    for conn_id in _targets(SpecFiles(session.settings().include)):
        revisions = migrate(connections.get(conn_id), "sluice_ledger")
        upgraded.append({"connection": conn_id, "schema": "sluice_ledger", "applied": revisions})

    def draw(console: Console) -> None:
        for entry in upgraded:
            what = f"applied {', '.join(entry['applied'])}" if entry["applied"] else "is up to date"
            console.print(printable(f"{entry['schema']} ({entry['connection']}): {what}", "green"))

    output.result({"upgraded": upgraded}, draw)


def _targets(files: SpecFiles) -> list[str]:
    """Return the connections of all targets; a sync whose file is broken has none yet."""
    found = {TARGET}
    for name in files.names():
        try:
            found.add(files.sync(name).target.connection)
        except SpecInvalid:
            continue
    return sorted(found)
