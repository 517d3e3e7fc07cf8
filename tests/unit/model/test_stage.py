"""Each key of a stage's policy reaches the code that acts: where that is shown."""

import ast
from collections.abc import Iterator
from typing import Any, Final

import pytest

from sluice.model.base import Frozen
from sluice.model.stage import StagePolicy
from tests.support.servers import PROJECT

SHOWN: Final = {
    "lease_ttl": "contract/test_flights.py::test_a_stage_says_how_long_a_silent_run_keeps_its_request",
    "heartbeat": "unit/guard/test_heartbeat.py::test_stages_differ_in_how_often_their_workers_give_a_sign",
    "no_progress_timeout": "unit/guard/test_heartbeat.py::test_stages_differ_in_how_long_work_may_stand_still",
    "wait_timeout": "contract/test_flights.py::test_a_follower_waits_as_long_as_its_policy_says",
    "result_ttl": "contract/test_flights.py::test_a_result_is_not_replayed_beyond_its_time",
    "takeover": "contract/test_flights.py::test_a_stage_says_how_old_the_checkpoints_may_be_to_go_on_from",
    "groups": "dags/test_dag_factory.py::test_stages_differ_in_how_many_tasks_share_the_shards",
    "max_parallel_shards": "dags/test_dag_factory.py::test_stages_differ_in_their_tasks",
    "requests_per_second": "unit/guard/test_pacing.py::test_two_stages_go_at_the_pace_of_each",
    "task_retries": "dags/test_dag_factory.py::test_stages_differ_in_their_tasks",
    "task_retry_delay": "dags/test_dag_factory.py::test_stages_differ_in_their_tasks",
    "retry.attempts": "unit/guard/test_retries.py::test_two_stages_try_as_often_as_each_declares",
    "retry.base": "unit/guard/test_retries.py::test_two_stages_wait_as_long_as_each_declares",
    "retry.cap": "unit/guard/test_retries.py::test_two_stages_wait_no_longer_than_each_declares",
    "breaker.window": "unit/guard/test_breaker.py::test_two_stages_remember_as_long_as_each_declares",
    "breaker.failure_rate": "unit/guard/test_breaker.py::test_two_stages_bear_as_much_as_each_declares",
    "breaker.open_for": "unit/guard/test_breaker.py::test_two_stages_rest_as_long_as_each_declares",
    "timeouts.connect": "integration/test_stages_at_the_supplier.py::test_time_to_connect",
    "timeouts.read": "integration/test_stages_at_the_supplier.py::test_time_between_two_bytes",
    "timeouts.step": "dags/test_dag_factory.py::test_stages_differ_in_their_tasks",
    "chunk_bytes": "unit/flow/test_fetcher_limits.py::test_two_stages_close_chunks_at_the_size_of_each",
    "chunk_age": "unit/flow/test_fetcher_limits.py::test_two_stages_close_chunks_at_the_age_of_each",
    "max_body": "integration/test_stages_at_the_supplier.py::test_largest_answer",
    "compression": "unit/flow/test_fetcher_limits.py::test_two_stages_compress_as_hard_as_each_declares",
    "local_cache.size": "integration/test_artifact_cache.py::test_each_stage_keeps_as_its_policy_says",
    "local_cache.age": "integration/test_artifact_cache.py::test_each_stage_forgets_as_its_policy_says",
    "artifact_ttl": "unit/flow/test_redo.py::test_artifacts_are_kept_as_the_stage_says",
    "state_ttl": "integration/test_collection.py::test_stages_differ_in_how_long_they_keep_runs",
    "session_ttl": "integration/test_collection.py::test_stages_differ_in_how_long_they_keep_what_was_told",
    "idempotency_ttl": "unit/guard/test_calls.py::test_stages_differ_in_how_long_a_result_is_known",
    "log_level": "unit/guard/test_log_level.py::test_stages_log_differently",
    "alerts.warn": "unit/flow/test_settlement.py::test_stages_differ_in_when_somebody_is_told",
    "alerts.page": "unit/flow/test_settlement.py::test_stages_differ_in_when_somebody_is_told",
    "alerts.notify.warn": "unit/flow/test_alerting.py::test_stages_differ_in_whom_they_tell",
    "alerts.notify.page": "unit/flow/test_alerting.py::test_stages_differ_in_whom_they_tell",
    "alerts.notify.review": "unit/flow/test_alerting.py::test_stages_differ_in_whom_they_tell_of_reviews",
}
"""By key, the test in which two stages behave differently because of it."""


def keys(model: type[Frozen], path: str = "") -> Iterator[str]:
    """Yield the keys of a policy, those of its parts joined by dots."""
    for name, declared in model.model_fields.items():
        kind: Any = declared.annotation
        if isinstance(kind, type) and issubclass(kind, Frozen):
            yield from keys(kind, f"{path}{name}.")
        else:
            yield path + name


def test_every_key_is_shown_to_make_a_difference() -> None:
    """A key without a test might as well not be read."""
    assert set(SHOWN) == set(keys(StagePolicy))


@pytest.mark.parametrize("place", sorted(set(SHOWN.values())))
def test_what_shows_it_is_there(place: str) -> None:
    """A test that was renamed or removed takes its key along."""
    file, _, name = place.partition("::")
    tree = ast.parse((PROJECT / "tests" / file).read_text(encoding="utf-8"))
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
