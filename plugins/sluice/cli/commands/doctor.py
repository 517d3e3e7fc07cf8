"""`sluice doctor`: an installation in; what is wrong with it, what to do about it, and what a kill may cost, out."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import typer
from rich.console import Console

from sluice.cli.exits import ExitCode
from sluice.cli.output import printable, table
from sluice.cli.session import AsJson, Session, session_of
from sluice.errors import ConnectionInvalid
from sluice.model.finding import Finding, Standing
from sluice.model.loss_window import LossWindow

_STYLES: Final = {Standing.OK: "green", Standing.WARNING: "yellow", Standing.FAILED: "bold red"}
_MARKS: Final = {Standing.OK: "ok", Standing.WARNING: "warning", Standing.FAILED: "FAILED"}


def doctor(context: typer.Context, as_json: AsJson = False) -> None:
    """Look whether all that Sluice needs is there, and say what to do where it is not.

    Looks at the specs and stages; at state, targets and artifacts: whether they answer, at which revision their schemas are,
    how far their clocks are off, and whether an object can be put, read and removed; at each stage's idempotency_ttl; and,
    where the connection sluice_airflow leads to an Airflow, at the stages' pools. Nothing is changed.

    Last it says, by stage, what a killed worker may take with it of each class of state: its loss window.

    Ends with 1 if anything failed; a warning is no failure.

    Example: sluice doctor --json
    """
    from sluice.upkeep.examination import examine
    from sluice.wiring import examined

    session = session_of(context)
    output = session.begin(as_json=as_json)
    installation = examined(session.settings(), session.connections(), _pools(session))
    findings = list(examine(installation))
    windows = installation.loss_windows()
    failed = [finding for finding in findings if finding.standing is Standing.FAILED]

    def draw(console: Console) -> None:
        _draw_findings(console, findings)
        _draw_windows(console, windows)

    output.result(
        {
            "healthy": not failed,
            "findings": findings,
            "loss_windows": {
                stage: [{**window.model_dump(), "span": window.span} for window in of_stage]
                for stage, of_stage in windows.items()
            },
        },
        draw,
    )
    if failed:
        output.fail(f"{len(failed)} of {len(findings)} checks failed")
        raise typer.Exit(ExitCode.FAILED)


def _pools(session: Session) -> Callable[[], Sequence[str]] | None:
    """Return a way to list Airflow's pools; None if no connection leads to an Airflow."""
    try:
        info = session.airflow_connection()
    except ConnectionInvalid:
        return None

    def pools() -> Sequence[str]:
        from sluice.adapters.airflow_api import AirflowApi

        with AirflowApi(info) as api:
            return api.pools()

    return pools


def _draw_findings(console: Console, findings: Sequence[Finding]) -> None:
    width = max(len(mark) for mark in _MARKS.values())
    for finding in findings:
        mark = f"{_MARKS[finding.standing]:<{width}}  {finding.check} {finding.subject}: "
        console.print(printable(mark + finding.said, _STYLES[finding.standing]), soft_wrap=True)
        if finding.mend:
            console.print(printable(f"{'':<{width}}  -> {finding.mend}"), soft_wrap=True)


def _draw_windows(console: Console, windows: dict[str, list[LossWindow]]) -> None:
    rows: list[list[Any]] = [
        [stage, window.state_class, window.span, window.batch, window.retries, window.timeout, window.shutdown]
        for stage, of_stage in windows.items()
        for window in of_stage
    ]
    columns = ["stage", "state", "loss window", "batch", "retries", "time-out", "shutdown"]
    console.print("\nWhat a killed worker may lose: batch + (retries + 1) x time-out + shutdown")
    console.print(table(columns, rows))
    console.print("control: nothing, it is written before anybody goes on")
    console.print("task:    what the next worker fetches again; never more than chunk_bytes and one page a shard")
    console.print("session: progress that nobody hears of")
