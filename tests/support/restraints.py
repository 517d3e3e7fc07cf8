"""Restraints whose breaker and slots are in memory: a host and a policy in, what stands before its requests out."""

from pathlib import Path

from sluice.adapters.sources.rest.source import RestSource
from sluice.adapters.sources.transport.proof import Proofs
from sluice.guard.breaker import SharedBreaker
from sluice.guard.pacing import Pacing
from sluice.guard.restraint import Restraint
from sluice.model import source as declared
from sluice.model.stage import StagePolicy
from sluice.ports import BreakerStore, Clock, ConnectionInfo, Metrics, RateStore
from tests.unit.fakes.access_token_store import MemoryAccessTokenStore
from tests.unit.fakes.breaker_store import MemoryBreakerStore
from tests.unit.fakes.clock import FakeClock
from tests.unit.fakes.metrics import MemoryMetrics
from tests.unit.fakes.rate_store import MemoryRateStore


def restraint(
    breakers: BreakerStore,
    rates: RateStore,
    clock: Clock,
    *,
    policy: StagePolicy,
    host: str,
    stage: str = "hotel-content",
    metrics: Metrics | None = None,
) -> Restraint:
    """Return what one worker of the stage has before the host."""
    return Restraint(
        SharedBreaker(breakers, clock, metrics or MemoryMetrics(), host=host, stage=stage, policy=policy),
        Pacing(rates, clock, host=host, stage=stage, policy=policy),
    )


def lone_restraint(policy: StagePolicy, host: str = "127.0.0.1") -> Restraint:
    """Return that of a worker whom nobody else knows of."""
    clock = FakeClock()
    return restraint(MemoryBreakerStore(clock), MemoryRateStore(clock), clock, policy=policy, host=host)


def lone_source(
    source: declared.RestSource, info: ConnectionInfo, policy: StagePolicy, proofs: Proofs | None = None
) -> RestSource:
    """Return a JSON API that one such worker asks."""
    proofs = proofs or lone_proofs()
    return RestSource(
        source,
        info,
        policy,
        lambda host: lone_restraint(policy, host),
        lambda endpoint: proofs.open(source.auth, info, endpoint, policy),
    )


def lone_proofs(include: Path = Path()) -> Proofs:
    """Return what such a worker proves by who asks."""
    clock = FakeClock()
    return Proofs(MemoryAccessTokenStore(clock), clock, include)
