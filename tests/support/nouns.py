"""Nouns for tests: what does not matter to one has a value already."""

import hashlib
from datetime import UTC, datetime, timedelta
from typing import Any

from sluice.model.artifact import ArtifactKind, ArtifactRef, Pointer
from sluice.model.audit import Actor
from sluice.model.base import ObjectKey, ReviewId, RunId, ShardKey, Token
from sluice.model.ledger import Outcome
from sluice.model.lifecycle import RunStatus, Step, Verdict
from sluice.model.reject import RawAddress, Reject
from sluice.model.review import Choice, Decision, Figures, Review
from sluice.model.run import Mode, Origin, ReviewMode, Run
from sluice.model.shard import ShardPlan
from sluice.model.stage import StagePolicy

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
POLICY = StagePolicy()
"""As it is where nobody has written anything down: leases of a minute, no replay."""
OVER = timedelta(0)
"""A lease that has run out as soon as it is taken."""


def a_run(name: str = "run-1", **changes: Any) -> Run:
    """Return a run as admission would open it."""
    facts: dict[str, Any] = {
        "id": RunId(name),
        "sync": "hotels",
        "stage": "hotel-content",
        "tenant": "default",
        "request_key": "hotel-content:default:hotels:1:abc",
        "mode": Mode.FULL,
        "window": None,
        "shards": (),
        "review": ReviewMode.POLICY,
        "spec_hash": "5" * 64,
        "transformer_version": 1,
        "origin": Origin(),
        "status": RunStatus.PENDING,
        "step": Step.ADMIT,
        "token": Token(0),
        "created_at": NOW,
    }
    return Run(**{**facts, **changes})


def plans(*keys: str) -> list[ShardPlan]:
    """Return plans of shards with these keys."""
    return [ShardPlan(key=ShardKey(key), params={"city": key}) for key in keys]


def a_pointer(run: str = "run-1", shard: str | None = None, content: str = "bytes", **ref: Any) -> Pointer:
    """Return a pointer to some bytes."""
    facts: dict[str, Any] = {"sync": "hotels", "run": RunId(run), "kind": ArtifactKind.RAW, "shard": shard}
    identity = ArtifactRef(**{**facts, **ref})
    return Pointer(
        ref=identity,
        key=f"hotels/{run}/{identity.kind}/{shard}/{identity.seq}{identity.variant}",
        bytes=len(content),
        sha256=hashlib.sha256(content.encode()).hexdigest(),
        records=3,
        expires_at=NOW + timedelta(days=90),
    )


def a_review(name: str, run: str = "run-1", **changes: Any) -> Review:
    """Return a review that wants a person."""
    facts: dict[str, Any] = {
        "id": ReviewId(name),
        "run": RunId(run),
        "sync": "hotels",
        "digest": hashlib.sha256(name.encode()).hexdigest(),
        "figures": Figures(seen=10, unchanged=7, live_before=9, outcomes={Outcome.CREATED: 1, Outcome.CHANGED: 2}),
        "reasons": ("first load",),
        "verdict": Verdict.NEEDS_HUMAN,
        "diff": a_pointer(run, kind=ArtifactKind.DIFF, variant=name),
        "created_at": NOW,
    }
    return Review(**{**facts, **changes})


def a_decision(choice: Choice = Choice.APPROVE, by: str = "ada", **changes: Any) -> Decision:
    """Return a person's answer."""
    facts: dict[str, Any] = {"via": "cli", "comment": "looks right", "at": NOW}
    return Decision(choice=choice, by=by, **{**facts, **changes})


def an_actor(reason: str = "it hangs", name: str = "ada") -> Actor:
    """Return a person at the command line."""
    return Actor(name=name, via="cli", reason=reason)


def a_reject(key: str | None, frame: int = 0, artifact: str = "raw-0", message: str = "stars: 7 is above 5") -> Reject:
    """Return an object that breaks a rule."""
    return Reject(
        key=ObjectKey(key) if key is not None else None,
        address=RawAddress(artifact=artifact, frame=frame, index=2),
        error="out-of-range",
        field="stars",
        message=message,
    )
