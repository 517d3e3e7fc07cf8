"""A command in; the same command out, whose errors are one red line, what to do next, and an exit code."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Final

import typer

from sluice.cli.exits import ExitCode, exit_code_for
from sluice.cli.session import Session, session_of
from sluice.errors import (
    AirflowUnavailable,
    ArtifactsUnavailable,
    CommitUnconfirmed,
    FlightTaken,
    LedgerMoved,
    SluiceError,
    SpecInvalid,
    StateTooNew,
    StateUnavailable,
    StateUnreadable,
    TargetUnavailable,
)

_MENDS: Final[dict[type[SluiceError], str]] = {
    StateUnavailable: "Is it running? `sluice up` starts a local stack; else look at the connection sluice_state.",
    TargetUnavailable: "Is it running? `sluice up` starts a local stack; else look at the connection of the target.",
    ArtifactsUnavailable: "Is it running? `sluice up` starts a local stack; else look at the connection sluice_artifacts.",
    AirflowUnavailable: "Is it running? `sluice up` starts a local stack; else look at the connection sluice_airflow.",
    CommitUnconfirmed: "Run it again: it looks first whether the publication is there.",
    LedgerMoved: "Run it again: it is reviewed afresh against what the target holds now.",
    StateTooNew: "Use the Sluice that wrote it, or a newer one.",
    StateUnreadable: "The next step of its run makes it again: clear the task that met it, or ask for the same again.",
    FlightTaken: "`sluice runs` shows it. Wait for its end, or for its lease to expire if its process died.",
}


def bounded(command: Callable[..., None]) -> Callable[..., None]:
    """Let no error of a command through, unless --debug asks for it. The command takes its `context` by that name."""

    @wraps(command)
    def run(*, context: typer.Context, **arguments: Any) -> None:
        session = session_of(context)
        try:
            command(context=context, **arguments)
        except (typer.Exit, typer.Abort):
            raise
        except (Exception, KeyboardInterrupt) as error:
            if session.debug:
                raise
            raise typer.Exit(_show(session, error)) from error

    return run


def _show(session: Session, error: BaseException) -> ExitCode:
    """Tell a person, and a program if it asked for JSON, what went wrong."""
    if isinstance(error, KeyboardInterrupt):
        session.output.fail("stopped", "Run the same command again: it goes on from the last checkpoint.")
        return ExitCode.INTERRUPTED
    if not isinstance(error, SluiceError):
        message = f"unexpected {type(error).__name__}: {error}"
        _tell(session, "Unexpected", message, "Run it again as `sluice --debug …` to see where it comes from.")
        return ExitCode.FAILED
    mend = next((text for kind, text in _MENDS.items() if isinstance(error, kind)), None)
    problems = error.problems if isinstance(error, SpecInvalid) else []
    _tell(session, type(error).__name__, error.message, mend, problems)
    return exit_code_for(error)


def _tell(session: Session, kind: str, message: str, mend: str | None, problems: list[str] | None = None) -> None:
    document = {"error": kind, "message": message, **({"problems": problems} if problems else {})}
    session.output.fail(message, mend)
    if session.output.as_json:
        session.output.result(document, lambda _: None)
