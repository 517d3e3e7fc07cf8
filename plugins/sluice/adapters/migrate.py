"""Numbered migrations: in goes a connection and the name of a schema, out come the revisions that had to be applied."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, Final

import psycopg
import sqlalchemy
import structlog
from alembic import op
from alembic.config import Config
from alembic.runtime.environment import EnvironmentContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from psycopg import sql
from sqlalchemy.pool import NullPool

from sluice import log_events
from sluice.adapters.postgres import conninfo, translated
from sluice.adapters.schemas import UNAVAILABLE, VERSION_TABLE, Schema
from sluice.errors import StateTooNew
from sluice.ports import ConnectionInfo

_FOLDERS: Final[dict[Schema, str]] = {
    "sluice_state": "sluice.adapters.state.migrations",
    "sluice_ledger": "sluice.adapters.ledger.migrations",
}
ADVISORY_LOCK: Final = 7_883_956_301_122_417
"""One number for both schemas, since they may share a database."""

_IN_PROCESS: Final = threading.Lock()
"""Alembic keeps the migration under way in a global."""

_log: Final = structlog.get_logger()


def upgrade(info: ConnectionInfo, schema: Schema) -> list[str]:
    """Bring the schema to this release's revision, in one transaction; return the revisions applied, oldest first.

    Nothing happens where nothing is missing, and of several that start at once one works while the others wait. Raises
    `StateTooNew` where a newer Sluice has been here.
    """
    target = conninfo(info)
    engine = sqlalchemy.create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(target), poolclass=NullPool)
    with _IN_PROCESS, translated(info, UNAVAILABLE[schema]), _as_psycopg_raised_it(), engine.begin() as connection:
        _plain(connection).execute("select pg_advisory_xact_lock(%s)", (ADVISORY_LOCK,))
        _ensure_schema(_plain(connection), schema)
        applied = _apply(connection, schema)
    if applied:
        _log.info(log_events.SCHEMA_UPGRADED, schema=schema, revisions=applied)
    return applied


def newest_revision(schema: Schema) -> str:
    """Return the revision that this release brings the schema to."""
    with _script(schema) as (_, script):
        head = script.get_current_head()
    if head is None:
        raise LookupError(f"{schema} has no migrations")
    return head


def execute_beside(revision_file: str) -> None:
    """Execute the `.sql` file beside a revision file, as it stands: no parameters, no percent signs, many statements."""
    _plain(op.get_bind()).execute(Path(revision_file).with_suffix(".sql").read_bytes())


def _plain(connection: sqlalchemy.Connection) -> psycopg.Connection[Any]:
    driver = connection.connection.driver_connection
    if not isinstance(driver, psycopg.Connection):
        raise TypeError(f"migrations run on psycopg, not on {type(driver).__name__}")
    return driver


@contextmanager
def _as_psycopg_raised_it() -> Iterator[None]:
    try:
        yield
    except sqlalchemy.exc.DBAPIError as exc:
        raise (exc.orig or exc) from exc


def _ensure_schema(connection: psycopg.Connection[Any], schema: Schema) -> None:
    # Only where it is missing: CREATE SCHEMA asks for a right on the database even if there is nothing to create.
    if connection.execute("select to_regnamespace(%s)", (schema,)).fetchone() == (None,):
        connection.execute(sql.SQL("create schema {}").format(sql.Identifier(schema)))


@contextmanager
def _script(schema: Schema) -> Iterator[tuple[Config, ScriptDirectory]]:
    """Yield the migrations of the schema, as alembic wants them."""
    with as_file(files(_FOLDERS[schema])) as folder:
        config = Config()
        config.set_main_option("script_location", str(folder).replace("%", "%%"))
        config.set_main_option("version_locations", str(folder).replace("%", "%%"))
        config.set_main_option("path_separator", "newline")
        yield config, ScriptDirectory.from_config(config)


def _apply(connection: sqlalchemy.Connection, schema: Schema) -> list[str]:
    applied: list[str] = []

    def note(ctx: Any, step: Any, heads: Any, run_args: Any) -> None:  # noqa: ARG001 (alembic passes them by name)
        applied.append(step.up_revision_id)

    with _script(schema) as (config, script):

        def missing(current: Any, _: Any) -> Any:
            return script._upgrade_revs("head", current)  # noqa: SLF001 (alembic's own recipe for a programmatic upgrade)

        with EnvironmentContext(config, script, fn=missing) as environment:
            environment.configure(
                connection=connection, version_table=VERSION_TABLE, version_table_schema=schema, on_version_apply=note
            )
            try:
                environment.run_migrations()
            except CommandError as exc:
                raise StateTooNew(f"{schema} was made by a newer Sluice ({exc}): upgrade this one") from exc
    return applied
