"""The team's function in the steps: admission asks for it, transforming, reviewing and trying call it."""

import threading
from datetime import timedelta
from typing import Any

import pytest

from sluice.errors import NoProgress, SpecInvalid, TransformBroken, TransformUnavailable
from sluice.flow.publisher import publish
from sluice.flow.reviewer import review
from sluice.flow.settlement import settle
from sluice.flow.transformer import transform
from sluice.flow.trial import try_spec
from sluice.model.base import ObjectKey
from sluice.model.ledger import Outcome
from sluice.model.lifecycle import ShardStatus
from sluice.model.run import Mode
from sluice.model.spec import ReviewPolicy
from sluice.model.stage import StagePolicy
from sluice.model.trial import TrialQuestion
from tests.unit.flow.workshop import MAY, NORTH, RUN, SOUTH, Workshop, page, sync_spec
from tests.unit.mapping.functions import Function, OutOfReach

SPEC = sync_spec(
    fields=[{"name": "id", "type": "text"}, {"name": "updated_at", "type": "timestamptz"}, {"name": "name", "type": "text"}],
    transform={"function": "transforms.hotels.enrich"},
)


def naming(frame: Any) -> Any:
    """Give each hotel a name; one has none."""
    if "nameless" in frame["id"].tolist():
        raise KeyError("name")
    return frame.assign(name=frame["id"].str.upper())


def test_transforming_calls_it() -> None:
    """What it fails for becomes a dead letter, and the others rows."""
    workshop = Workshop(spec=SPEC, function=Function(naming))
    workshop.equip()
    workshop.begin(mode=Mode.FULL)
    shard = workshop.bring_in(NORTH, ("a", MAY), ("nameless", MAY))
    assert shard.status is ShardStatus.SUCCEEDED
    (letter,) = workshop.memory.dead_letters
    assert (letter.reject.key, letter.reject.error) == ("nameless", "function")


def test_a_broken_function_fails_its_shard() -> None:
    """For good: to try it again would help nobody."""

    def broken(_: Any) -> Any:
        raise AttributeError("nonsense")

    workshop = Workshop(spec=SPEC, function=Function(broken))
    workshop.equip()
    workshop.begin(mode=Mode.FULL)
    with pytest.raises(TransformBroken, match=r"hotels\.py:3: AttributeError: nonsense"):
        workshop.bring_in(NORTH, *((f"h{number}", MAY) for number in range(40)))
    failure = workshop.shard().failure
    assert workshop.shard().status is ShardStatus.FAILED
    assert failure is not None
    assert failure.error == "TransformBroken"
    assert workshop.memory.dead_letters == []
    workshop.function = Function(naming)
    assert transform(workshop.services, RUN, NORTH).status is ShardStatus.SUCCEEDED


def test_an_outage_behind_a_function_fails_its_shard_until_it_is_tried_again() -> None:
    """Who looks at the run is told what could not be reached; nothing is a dead letter."""

    def asking(_: Any) -> Any:
        raise OutOfReach("no route")

    workshop = Workshop(spec=SPEC, function=Function(asking))
    workshop.equip()
    workshop.begin(mode=Mode.FULL)
    with pytest.raises(TransformUnavailable):
        workshop.bring_in(NORTH, ("a", MAY))
    shard = workshop.shard()
    assert (shard.status, shard.failure and shard.failure.error) == (ShardStatus.FAILED, "TransformUnavailable")
    assert workshop.memory.dead_letters == []
    workshop.function = Function(naming)
    assert transform(workshop.services, RUN, NORTH).status is ShardStatus.SUCCEEDED


def test_a_function_that_hangs_fails_its_shard_once_it_is_heard_of_again() -> None:
    """By then another worker may have the request: nothing more is made here, and the shard tells why."""
    policy = StagePolicy(heartbeat=timedelta(milliseconds=5))

    def hanging(frame: Any) -> Any:
        workshop.memory.clock.move(policy.no_progress_timeout + timedelta(minutes=1))
        (pulse,) = (thread for thread in threading.enumerate() if thread.name == "sluice-heartbeat")
        pulse.join()
        return naming(frame)

    workshop = Workshop(spec=SPEC, policy=policy, function=Function(hanging))
    workshop.equip()
    workshop.begin(mode=Mode.FULL)
    with pytest.raises(NoProgress):
        workshop.bring_in(NORTH, ("a", MAY))
    shard = workshop.shard()
    assert (shard.status, shard.failure and shard.failure.error) == (ShardStatus.FAILED, "NoProgress")


def test_edited_code_is_another_request() -> None:
    """So that nobody is given the result of the old one."""
    keys = set()
    for digest in (1, 2, 1):
        keys.add(Workshop(spec=SPEC, function=Function(naming, digest=digest)).admit(mode=Mode.FULL).request_key)
    assert len(keys) == 2
    assert Workshop(spec=sync_spec()).admit(mode=Mode.FULL).request_key not in keys


def test_a_function_that_cannot_be_loaded_stops_admission() -> None:
    """Nothing is fetched for it."""

    class Lacking(Workshop):
        @property
        def services(self) -> Any:
            """Fail to load it."""
            from dataclasses import replace

            def absent(*_: Any) -> Any:
                raise SpecInvalid(["transform.function: transforms.hotels has no enrich"])

            return replace(super().services, transform=absent)

    workshop = Lacking(spec=SPEC)
    with pytest.raises(SpecInvalid, match="has no enrich"):
        workshop.admit(mode=Mode.FULL)
    assert not workshop.memory.runs


def test_trying_a_spec_calls_it() -> None:
    """A person is shown what a run would publish, and no hint about fields that it makes."""
    workshop = Workshop(spec=SPEC, function=Function(naming))
    workshop.equip()
    workshop.supply(page(1, ("a", MAY), ("nameless", MAY), is_last=True))
    trial = try_spec(workshop.services, SPEC, TrialQuestion(mode=Mode.FULL, limit=5))
    assert [row.values["name"] for row in trial.rows] == ["A"]
    assert [(reject.key, reject.error) for reject in trial.rejects] == [("nameless", "function")]
    assert trial.hints == ()


def test_what_a_function_rejects_only_at_review_is_not_taken_for_gone() -> None:
    """The ledger has another row than the transformer relied on, and by now the function fails for the object."""
    policy = {"first_load": "auto-approve", "auto_approve": {"created": "100%", "rejected": "100%"}}
    workshop = Workshop(spec=SPEC.model_copy(update={"review": ReviewPolicy.model_validate(policy)}), function=Function(naming))
    workshop.equip()
    target = workshop.target
    assert target is not None

    def bring_all() -> None:
        workshop.begin(mode=Mode.FULL)
        workshop.bring_in(NORTH, *((key, MAY) for key in ("a", "b", "c", "nameless")))
        workshop.bring_in(SOUTH)

    bring_all()
    review(workshop.services, RUN)
    publish(workshop.services, RUN)
    settle(workshop.services, RUN)
    for table in ("runs", "shards", "pointers", "reviews", "dead_letters"):
        getattr(workshop.memory, table).clear()
    workshop.memory.clock.move(timedelta(days=1))
    bring_all()
    known = target.ledger.objects["hotels", ObjectKey("a")]
    target.ledger.objects["hotels", ObjectKey("a")] = known.model_copy(update={"row_hash": b"another" * 2})

    def edited(frame: Any) -> Any:
        if "a" in frame["id"].tolist():
            raise ValueError("a")
        return naming(frame)

    workshop.function = Function(edited)
    made = [review(workshop.services, RUN) for _ in range(2)]
    assert [each.figures.outcomes for each in made] == [{Outcome.REJECTED: 2}] * 2
    assert sorted(letter.reject.key or "" for letter in workshop.memory.dead_letters) == ["a", "nameless"]
