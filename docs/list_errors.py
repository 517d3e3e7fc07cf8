"""`python docs/list_errors.py` writes errors.md and audit.md of docs/reference from the code, so that they cannot drift."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from sluice.airflow_glue.outcomes import OUTCOMES, TaskOutcome
from sluice.cli.exits import exit_code_for
from sluice.errors import Fenced, OutcomeUnknown, Permanent, Retryable, SluiceError, SpecInvalid
from sluice.model.audit import Act

FOLDER: Final = Path(__file__).with_name("reference")

_ERRORS: Final = """\
# Errors

Every error of Sluice is in one tree, whose branch says what its caller does next. In Airflow's log and in `sluice show` an
error stands with its name; the message tells what happened to what. What you see with it, and what to do, is in
[Operations](../operations.md).

A shard's error leaves the other shards alone; a run's ends the run. An error that knows when to go on (`FlightTaken`,
`SupplierResting`, `RateLimited` with a time): the attempt {waits}.
Commands end with {failed}, of what a person has typed or written wrong (`UsageInvalid`, `SpecInvalid`) with {invalid}.

"""

_AUDIT: Final = """\
# Audit trail

The acts that `sluice audit` tells, each with who did it, by which way (`airflow`, `pages`, `cli` or `policy`), when and why. An
entry outlives its run, and the database refuses to change or remove it. What people do by hand is explained in
[Operations](../operations.md#by-hand).

"""

_BRANCHES: Final = (
    (Retryable, "Nothing is wrong with the request: it may work later."),
    (Permanent, "To repeat it would not help: a person has to mend something."),
    (OutcomeUnknown, "It may have happened or not. Who repeats the step looks first."),
    (Fenced, "Somebody else owns this now; whoever gets it stops quietly, and writes nothing."),
)

_ACTS: Final[dict[Act, str]] = {
    Act.RESET_SHARD: "a shard begins again from its first page: `sluice shard reset`, or on the run's page",
    Act.SKIP_SHARD: "a run does without a shard: `sluice shard skip`, or on the run's page",
    Act.STOP_SHARD: "a shard is left where it stands: `sluice shard stop`, or on the run's page",
    Act.CANCEL_RUN: "a run is ended, and nothing of it published: `sluice cancel`, or on the run's page",
    Act.RELEASE_LEASE: "a request is taken from a run that is dead: `sluice lease release`, or on the run's page",
    Act.DECIDE_REVIEW: "a review is approved or rejected, by whatever way, or by policy; or nobody answered in time",
    Act.FORCE_RUN: "a run does all of it again, whatever another one has brought: `force`",
    Act.ROLL_BACK: "a publication is to be taken back: `sluice rollback`, or on the page of publications",
    Act.REDRIVE: "dead letters are taken up again: `sluice dlq redrive`, or on the page of dead letters",
    Act.DISCARD: "dead letters are given up: `sluice dlq discard`, or on the page of dead letters",
    Act.COLLECT_GARBAGE: "what has outlived its time is removed: `sluice gc`",
}


def pages() -> dict[Path, str]:
    """Return the text of each page."""
    failed, invalid = (int(exit_code_for(error)) for error in (Permanent(), SpecInvalid([])))
    head = _ERRORS.format(failed=failed, invalid=invalid, waits=TaskOutcome.WAIT.value)
    acts = [f"| `{act}` | {_ACTS[act]} |" for act in Act]
    return {
        FOLDER / "errors.md": head + "\n".join(_branch(branch, words) for branch, words in _BRANCHES),
        FOLDER / "audit.md": _AUDIT + "\n".join(["| act | what is done |", "| --- | --- |", *acts, ""]),
    }


def _branch(branch: type[SluiceError], words: str) -> str:
    rows = [f"| `{error.__name__}` | the {error.scope} | {_says(error)} |" for error in _leaves(branch)]
    table = ["| error | takes down | what it says |", "| --- | --- | --- |", *rows]
    outcome = next(outcome.value for kind, outcome in OUTCOMES if issubclass(branch, kind))
    return "\n".join([f"## {branch.__name__}\n", f"{words} In Airflow the attempt {outcome}.\n", *table, ""])


def _leaves(branch: type[SluiceError]) -> Iterator[type[SluiceError]]:
    """Yield the errors of a branch that are raised: all but those that only say what to do next."""
    if branch not in (Retryable, Permanent, OutcomeUnknown):
        yield branch
    for below in branch.__subclasses__():
        yield from _leaves(below)


def _says(error: type[SluiceError]) -> str:
    return " ".join((error.__doc__ or "").split())


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
