"""Every error Sluice raises, sorted by what its caller should do next.

    SluiceError
    ├── Retryable           try again later; nothing is wrong with the request
    │   ├── SupplierUnavailable     time-out, reset, 5xx
    │   │   ├── RateLimited         429, or 503 with Retry-After; or too long a queue for a slot
    │   │   ├── AnswerFailed        an answer under status 200 that says itself that it failed
    │   │   ├── CodeFailed          code of the team's own that raised what nobody knows the meaning of
    │   │   └── SupplierResting     the breaker is open: the supplier failed too often just now
    │   ├── StateUnavailable        the database of `sluice_state` cannot be reached
    │   ├── TargetUnavailable       the target's database cannot be reached
    │   ├── ArtifactsUnavailable    the object store cannot be reached
    │   ├── AirflowUnavailable      Airflow's REST API cannot be reached
    │   ├── ReceiverUnavailable     who is called by a webhook cannot be reached
    │   ├── DiskFull                no room for a temporary file on this worker
    │   ├── OutOfMemory             no more memory, or no further thread, on this worker
    │   ├── FlightTaken             another run of the same request is alive
    │   ├── TransformUnavailable    what the team's function asks cannot be reached
    │   ├── NoProgress              the step came no further for too long
    │   ├── StateTooNew             a row written by a newer Sluice, whose workers will take it
    │   ├── RedoNeeded              what a step needs was damaged, and is marked to be made again
    │   ├── LedgerMoved             the ledger changed between review and publication
    │   └── ApprovalVoid            the approval is of something else than what is staged
    ├── Permanent           do not repeat; a person has to mend something
    │   ├── SpecInvalid             the YAML of a sync or of the stages
    │   ├── UsageInvalid            a parameter given by a person
    │   ├── ConnectionInvalid       an Airflow connection is missing or incomplete
    │   ├── NotFound                no such run, review, object
    │   ├── IllegalTransition       a status that may not follow another
    │   ├── StateUnreadable         a row that no release can read, and that could not be rebuilt
    │   ├── SchemaOutdated          the migrations have not been run
    │   ├── SupplierRefused         401, 403, 404 and other 4xx
    │   │   ├── CursorExpired       a cursor that is not good any more: its shard begins again
    │   │   └── PaginationLimit     an offset or a page number beyond what the supplier serves
    │   ├── AnswerUnusable          a response that is not what the spec declares
    │   │   ├── AnswerNotJson       HTML, truncated or otherwise undecodable
    │   │   ├── AnswerTooLarge      beyond the bound on a body
    │   │   ├── RecordsMissing      no list of records where the spec says
    │   │   ├── CursorStuck         a cursor that does not advance, or runs in a circle
    │   │   ├── StrayAddress        a next link or a redirect to a host that is not allowed
    │   │   ├── FileUnreadable      a file that is not of its declared format, or cut short
    │   │   └── ShardsUnusable      a list of shards that cannot be used: empty, too long, or a value that is none
    │   ├── TransformBroken         the team's function brings no object through
    │   ├── ArtifactCorrupt         bytes that do not match their pointer
    │   ├── NothingToReview         no shard of the run has come through
    │   ├── ReviewNotApproved       publish was asked for without an approval
    │   │   └── ReviewWaiting       a person has yet to decide
    │   ├── DecisionRefused         an answer that may not be given about this review, or not by this person
    │   ├── NotUndoable             a publication that cannot be taken back, or not any more
    │   ├── RawDataGone             a run whose raw data is not kept any more, or cannot be mapped again
    │   ├── TargetMismatch          the table differs from what the spec declares
    │   ├── WaitedInVain            another run of the request, or a supplier's pause, did not end in time
    │   ├── RunIncomplete           a run that ended failed, or with shards missing
    │   ├── ShardsFailed            shards that could not be brought in
    │   ├── StoppedByHand           a shard that a person has stopped
    │   ├── StackFailed             a service of the local stack did not come up, or went down
    │   └── StackRunning            the local stack of this folder runs already
    ├── OutcomeUnknown      look before repeating
    │   ├── CommitUnconfirmed       the answer to a commit was lost
    │   └── CallUnconfirmed         the answer to a call with side effects was lost
    └── Fenced              somebody else owns this now; stop quietly
        └── CalledOff               a person has cancelled the run

The docstring of a leaf is its default message. `scope` says how far the error reaches: one object, one shard or the
whole run.
"""

from enum import StrEnum
from typing import Any, ClassVar


class Scope(StrEnum):
    """How much of a run an error takes down."""

    OBJECT = "object"
    SHARD = "shard"
    RUN = "run"


class SluiceError(Exception):
    """Something went wrong in Sluice."""

    scope: ClassVar[Scope] = Scope.RUN

    def __init__(self, message: str | None = None, **facts: Any) -> None:
        """Keep `facts` as attributes-by-name, beside the message."""
        self.message = message or " ".join((self.__doc__ or type(self).__name__).split())
        self.facts = facts
        super().__init__(self.message)


class Retryable(SluiceError):
    """It may work later."""


class Permanent(SluiceError):
    """Repeating it will not help."""


class OutcomeUnknown(SluiceError):
    """It may have happened or not: look before repeating it."""


class Fenced(SluiceError):
    """Another worker has taken over what this one was doing."""


class CalledOff(Fenced):
    """A person has cancelled the run."""


class SupplierUnavailable(Retryable):
    """The supplier cannot be reached or answers with a server error."""

    scope = Scope.SHARD


class RateLimited(SupplierUnavailable):
    """The supplier asks for a pause. `retry_after` is in seconds, where it said so."""

    def __init__(self, message: str | None = None, *, retry_after: float | None = None, **facts: Any) -> None:
        super().__init__(message, **facts)
        self.retry_after = retry_after


class AnswerFailed(SupplierUnavailable):
    """The supplier's answer says, under a status of success, that it failed."""


class CodeFailed(SupplierUnavailable):
    """The team's own code for a supplier raised an error that is none of Sluice's, or cannot be used as it is."""


class SupplierResting(SupplierUnavailable):
    """The supplier failed too often just now, so it is left alone for a while; `until` says when one try is let through."""


class StateUnavailable(Retryable):
    """The state database (connection sluice_state) cannot be reached."""


class TargetUnavailable(Retryable):
    """The target database cannot be reached."""


class ArtifactsUnavailable(Retryable):
    """The object store (connection sluice_artifacts) cannot be reached."""


class AirflowUnavailable(Retryable):
    """Airflow's REST API (connection sluice_airflow) cannot be reached."""


class ReceiverUnavailable(Retryable):
    """The receiver of a webhook cannot be reached, or answers with a server error."""


class DiskFull(Retryable):
    """This worker's disk takes no temporary file: make room in its folder for them, or let TMPDIR name one that has more."""


class OutOfMemory(Retryable):
    """This worker got no more memory, or no further thread: give it more, or let fewer tasks work on it at a time."""


class FlightTaken(Retryable):
    """Another run of the same request is alive."""


class TransformUnavailable(Retryable):
    """What the team's function asks cannot be reached, or memory is lacking, which is no object's fault."""

    scope = Scope.SHARD


class NoProgress(Retryable):
    """The step came no further for too long, so it gave its request up for another worker to take over."""

    scope = Scope.SHARD


class StateTooNew(Retryable):
    """State was written by a newer Sluice; a worker of that release will take it."""


class RedoNeeded(Retryable):
    """What this step needs was lost or damaged; it is marked, and made again by the next try."""


class LedgerMoved(Retryable):
    """The ledger changed between the review and its publication: the run has to be reviewed again."""


class ApprovalVoid(Retryable):
    """What was approved is not what would be published now: it has to be reviewed again."""


class SpecInvalid(Permanent):
    """A spec cannot be used. `problems` are lines of `file:line: key: what is wrong and what is allowed`."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems), problems=problems)
        self.problems = problems


class UsageInvalid(Permanent):
    """A parameter cannot be used."""


class ConnectionInvalid(Permanent):
    """An Airflow connection is missing or incomplete."""


class NotFound(Permanent):
    """There is no such thing."""


class IllegalTransition(Permanent):
    """A status may not follow another."""


class StateUnreadable(Permanent):
    """A row of state cannot be read; what it stands for has to be rebuilt from artifacts."""


class SchemaOutdated(Permanent):
    """Sluice's tables are missing or older than this release: run `sluice db upgrade`."""


class SupplierRefused(Permanent):
    """The supplier refuses the request."""

    scope = Scope.SHARD


class CursorExpired(SupplierRefused):
    """The supplier does not know the shard's cursor any more, so the shard has to begin again."""


class PaginationLimit(SupplierRefused):
    """The supplier serves no page so far behind the first: cut the sync into smaller shards, or page by a cursor or keyset."""


class AnswerUnusable(Permanent):
    """The supplier's answer is not what the spec declares."""

    scope = Scope.SHARD


class AnswerNotJson(AnswerUnusable):
    """The supplier's answer is not JSON, or is cut short."""


class AnswerTooLarge(AnswerUnusable):
    """The supplier's answer is larger than the bound on a body."""


class RecordsMissing(AnswerUnusable):
    """The supplier's answer holds no list of records where the spec says."""


class CursorStuck(AnswerUnusable):
    """The supplier's cursor does not advance, or runs in a circle."""


class StrayAddress(AnswerUnusable):
    """The supplier leads to another host, which the spec does not allow."""


class FileUnreadable(AnswerUnusable):
    """The supplier's file is not what the spec declares."""


class ShardsUnusable(AnswerUnusable):
    """The supplier's list of shards cannot be used."""

    scope = Scope.RUN


class TransformBroken(Permanent):
    """The team's function brings no object through."""

    scope = Scope.SHARD


class ArtifactCorrupt(Permanent):
    """The bytes of an artifact do not match their pointer."""

    scope = Scope.SHARD


class NothingToReview(Permanent):
    """No shard of this run has come through, so there is nothing to review."""


class ReviewNotApproved(Permanent):
    """The review of this run has not been approved."""


class ReviewWaiting(ReviewNotApproved):
    """A person has yet to decide about the review of this run, which waits for that. `review` is its id."""

    def __init__(self, message: str | None = None, *, review: str | None = None, **facts: Any) -> None:
        super().__init__(message, review=review, **facts)
        self.review = review


class DecisionRefused(Permanent):
    """This answer may not be given; nothing was recorded, and the review keeps waiting."""


class NotUndoable(Permanent):
    """The publication cannot be taken back."""


class RawDataGone(Permanent):
    """What a run has fetched is not kept any more, so it cannot be mapped again."""

    scope = Scope.SHARD


class TargetMismatch(Permanent):
    """The target table differs from what the spec declares."""


class WaitedInVain(Permanent):
    """What was waited for, another run or a supplier, did not come in time."""


class RunIncomplete(Permanent):
    """The run did not bring in everything."""


class ShardsFailed(Permanent):
    """Shards could not be brought in."""

    scope = Scope.SHARD


class StoppedByHand(Permanent):
    """A person has stopped the shard."""

    scope = Scope.SHARD


class StackFailed(Permanent):
    """A service of the local stack did not come up."""


class StackRunning(Permanent):
    """The local stack of this folder runs already."""


class CommitUnconfirmed(OutcomeUnknown):
    """The connection was lost while a commit was under way."""


class CallUnconfirmed(OutcomeUnknown):
    """The answer to a call with side effects was lost; it is repeated under the same key."""
