"""Entries of the audit trail in; a table of who did what, when and why, out."""

from collections.abc import Iterable, Mapping

from pydantic import JsonValue
from rich.table import Table

from sluice.cli.output import table
from sluice.model.audit import AuditEntry


def trail_drawn(entries: Iterable[AuditEntry], title: str | None = None) -> Table:
    """Return the entries as a table, in their order."""
    rows = [
        [
            entry.at,
            entry.by.name,
            entry.by.via,
            entry.act,
            entry.sync,
            entry.run,
            entry.subject,
            entry.by.reason,
            _told(entry.facts),
        ]
        for entry in entries
    ]
    return table(["at", "who", "via", "did", "sync", "run", "to", "because", "facts"], rows, title=title)


def _told(facts: Mapping[str, JsonValue]) -> str:
    """Return the facts that say anything, as people read them."""
    return ", ".join(f"{name} {fact}" for name, fact in facts.items() if fact not in (None, [], ""))
