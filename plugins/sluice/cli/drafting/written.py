"""What was written of a new sync, and concluded from its supplier, in; what to do next, for people and for programs, out."""

from collections.abc import Sequence
from typing import Any, Final

from rich.console import Console

from sluice.cli.drafting.look import Seen
from sluice.cli.output import printable

_CONNECTIONS: Final = {
    "rest": '{"conn_type": "http", "host": "https://api.example.com", "login": …, "password": …}',
    "files": '{"conn_type": "http", "host": "https://files.example.com", "login": …, "password": …}',
    "bucket": '{"conn_type": "aws", "login": "<access key>", "password": "<secret key>"}',
    "sql": '{"conn_type": "postgres", "host": "db.example.com", "schema": "<database>", "login": …, "password": …}',
    "code": '{"conn_type": "http", "host": …, "login": …, "password": …}',
}


def document_of(seen: Seen, written: Sequence[str]) -> dict[str, Any]:
    """Return it for programs."""
    return {
        "sync": seen.draft.name,
        "written": list(written),
        "connection": seen.draft.connection,
        "records_seen": seen.records,
        "not_looked": seen.trouble,
    }


def draw_written(console: Console, seen: Seen, written: Sequence[str]) -> None:
    """Say what was written, what it was concluded from, and what to do next."""
    draft = seen.draft
    console.print(printable(f"wrote {', '.join(written)}", "green"), soft_wrap=True)
    if seen.records:
        console.print(printable(f"{len(draft.columns)} fields proposed from {seen.records} records: check their types"))
    elif seen.trouble:
        console.print(printable(f"no fields proposed: {seen.trouble}", "yellow"), soft_wrap=True)
    example = _CONNECTIONS["bucket" if draft.bucket else draft.kind]
    steps = [
        *([] if seen.is_connected else [f"export AIRFLOW_CONN_{draft.connection.upper()}='{example}'"]),
        f"edit {written[0]}: name the fields you want",
        f"sluice try {draft.name}        shows what it would do, and writes nothing",
        f"sluice validate {draft.name}   says what is wrong with the file",
        f"sluice run {draft.name} --inline",
    ]
    console.print("next:")
    for step in steps:
        console.print(printable(f"  {step}"), soft_wrap=True)
