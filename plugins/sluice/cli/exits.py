"""What became of a run, or an error, in; the exit code of the command out."""

from enum import IntEnum

from sluice.errors import SluiceError, SpecInvalid, UsageInvalid
from sluice.model.lifecycle import RunStatus


class ExitCode(IntEnum):
    """How a command ends, for scripts."""

    DONE = 0
    FAILED = 1
    INVALID = 2
    """The command line or a spec cannot be used as it is."""
    WAITING = 3
    """A review waits for a person."""
    PARTIAL = 4
    """Some shards failed, and the others are published; or the table is not all as it was published; or records tried are
    rejected."""
    INTERRUPTED = 130


def exit_code_of(status: RunStatus) -> ExitCode:
    """Return how a command ends that was to bring a run to its end."""
    if status is RunStatus.SUCCEEDED:
        return ExitCode.DONE
    if status is RunStatus.WAITING:
        return ExitCode.WAITING
    return ExitCode.PARTIAL if status is RunStatus.PARTIAL else ExitCode.FAILED


def exit_code_for(error: SluiceError) -> ExitCode:
    """Return how a command ends that raised `error`."""
    return ExitCode.INVALID if isinstance(error, SpecInvalid | UsageInvalid) else ExitCode.FAILED
