"""What several tables have in common: values of the model go in, columns come out, and the other way round."""

from collections.abc import Mapping
from typing import Any

from sluice.model.run import Failure


def storable(text: str) -> str:
    """Return the text as Postgres can hold it: a NUL or half a surrogate pair, as suppliers send them, is written out."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8").replace("\x00", "\\x00")


def failure_columns(failure: Failure | None) -> dict[str, str | None]:
    """Return the columns of a failure."""
    if failure is None:
        return {"failure_error": None, "failure_message": None}
    return {"failure_error": storable(failure.error), "failure_message": storable(failure.message)}


def failure_facts(failure: Failure | None) -> dict[str, str]:
    """Return the facts an event tells of a failure."""
    return {} if failure is None else {"error": storable(failure.error), "message": storable(failure.message)}


def failure_from_row(row: Mapping[str, Any]) -> Failure | None:
    """Return the failure a row holds."""
    if row["failure_error"] is None:
        return None
    return Failure(error=row["failure_error"], message=row["failure_message"])
