"""The policy of one stage, as YAML has it, in; the rules between its keys that are broken out."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError

from sluice.adapters.yaml_positions import Path
from sluice.model.scalars import spell_duration
from sluice.model.stage import StagePolicy

_SIGNS_A_LEASE: Final = 3
"""A lease survives two heartbeats that got lost."""


@dataclass(frozen=True)
class StageRule:
    """What has to hold between some keys of one policy, the most likely culprit first."""

    keys: tuple[Path, ...]
    broken: Callable[[StagePolicy], str | None]
    """Says in words how a policy breaks the rule; None: it does not."""


def broken_rules(raw: Any) -> Iterator[tuple[tuple[Path, ...], str]]:
    """Yield each broken rule as its keys and what is wrong; a rule with a key that is wrong in itself is left alone."""
    policy, unusable = _readable(raw)
    for rule in RULES:
        if not unusable.intersection(key[0] for key in rule.keys) and (message := rule.broken(policy)):
            yield rule.keys, message


def _readable(raw: Any) -> tuple[StagePolicy, frozenset[Any]]:
    """Return the policy without the keys that cannot be used, and those."""
    if not isinstance(raw, dict):
        return StagePolicy(), frozenset(StagePolicy.model_fields)
    try:
        return StagePolicy.model_validate(raw), frozenset()
    except ValidationError as error:
        wrong = frozenset(problem["loc"][0] for problem in error.errors())
    return StagePolicy.model_validate({key: value for key, value in raw.items() if key not in wrong}), wrong


def _retry_base(policy: StagePolicy) -> str | None:
    base, cap = policy.retry.base, policy.retry.cap
    return f"base is {spell_duration(base)}, longer than cap, which is {spell_duration(cap)}" if base > cap else None


def _heartbeat(policy: StagePolicy) -> str | None:
    if policy.heartbeat * _SIGNS_A_LEASE < policy.lease_ttl:
        return None
    return (
        f"heartbeat is {spell_duration(policy.heartbeat)}: it has to be below a third of lease_ttl, which is "
        f"{spell_duration(policy.lease_ttl)}, so that a lease outlives two heartbeats that got lost"
    )


def _no_progress(policy: StagePolicy) -> str | None:
    silence = policy.timeouts.read + policy.chunk_age
    if policy.no_progress_timeout > silence:
        return None
    return (
        f"no_progress_timeout is {spell_duration(policy.no_progress_timeout)}: it has to be longer than timeouts.read and "
        f"chunk_age together, {spell_duration(silence)}, since one slow answer is no standstill"
    )


def _wait(policy: StagePolicy) -> str | None:
    if policy.wait_timeout > policy.lease_ttl:
        return None
    return (
        f"wait_timeout is {spell_duration(policy.wait_timeout)}: it has to be longer than lease_ttl, "
        f"{spell_duration(policy.lease_ttl)}, since who waits has to outlive the lease of a run that died"
    )


def _idempotency(policy: StagePolicy) -> str | None:
    if policy.idempotency_ttl >= policy.longest_run + policy.retry_window:
        return None
    ttl, run, window = (spell_duration(t) for t in (policy.idempotency_ttl, policy.longest_run, policy.retry_window))
    return (
        f"idempotency_ttl is {ttl}: it has to last for the longest run, {run} ((task_retries + 1) x timeouts.step), and its "
        f"retry window, {window} "
        "(task_retries x task_retry_delay), so that no call is repeated as if it were new"
    )


def _state(policy: StagePolicy) -> str | None:
    if policy.state_ttl >= policy.artifact_ttl:
        return None
    state, artifacts = spell_duration(policy.state_ttl), spell_duration(policy.artifact_ttl)
    return (
        f"state_ttl is {state}, shorter than artifact_ttl, which is {artifacts}: what points to artifacts has to outlive them"
    )


def _alerts(policy: StagePolicy) -> str | None:
    warn, page = policy.alerts.warn, policy.alerts.page
    return f"warn is {warn}, later than page, which is {page}" if warn > page else None


RULES: Final = (
    StageRule((("retry", "base"), ("retry", "cap")), _retry_base),
    StageRule((("heartbeat",), ("lease_ttl",)), _heartbeat),
    StageRule((("no_progress_timeout",), ("timeouts", "read"), ("chunk_age",)), _no_progress),
    StageRule((("wait_timeout",), ("lease_ttl",)), _wait),
    StageRule((("idempotency_ttl",), ("timeouts", "step"), ("task_retries",), ("task_retry_delay",)), _idempotency),
    StageRule((("state_ttl",), ("artifact_ttl",)), _state),
    StageRule((("alerts", "warn"), ("alerts", "page")), _alerts),
)
