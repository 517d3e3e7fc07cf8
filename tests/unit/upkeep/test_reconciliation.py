"""Comparing a table with its ledger while others publish, and telling how far it has come."""

from collections.abc import Callable, Sequence
from datetime import timedelta

import pytest

from sluice.model.base import ObjectKey, PublicationId, ReviewId, RunId
from sluice.model.ledger import LedgerObject, ObjectState, Outcome, Publication
from sluice.model.reconciliation import Difference, Reconciliation
from sluice.upkeep import reconciliation
from sluice.upkeep.reconciliation import reconcile
from tests.unit.fakes.target import MemoryTarget
from tests.unit.flow.workshop import RUN, Workshop

FIRST, SECOND = PublicationId(1), PublicationId(2)


@pytest.fixture
def workshop(monkeypatch: pytest.MonkeyPatch) -> Workshop:
    """A run whose publication brought three objects, and a comparison in small batches."""
    monkeypatch.setattr(reconciliation, "_AT_A_TIME", 2)
    workshop = Workshop()
    target = workshop.equip()
    workshop.admit()
    target.ledger.published.append(publication(workshop, FIRST))
    for key in ("a", "b", "c"):
        hold(target, key, FIRST)
    return workshop


def publication(workshop: Workshop, number: PublicationId) -> Publication:
    """Return a publication of the run."""
    now = workshop.memory.clock.now() + timedelta(minutes=number)
    counts = {Outcome.CREATED: 3}
    return Publication(id=number, sync="hotels", review=ReviewId(f"r{number}"), run=RUN, counts=counts, applied_at=now)


def hold(target: MemoryTarget, key: str, brought_by: PublicationId) -> None:
    """Let table and ledger hold an object."""
    target.rows[ObjectKey(key)] = {"id": key, "updated_at": None}
    remember(target, key, brought_by)


def remember(
    target: MemoryTarget, key: str, brought_by: PublicationId, state: ObjectState = ObjectState.LIVE, run: RunId = RUN
) -> None:
    """Let the ledger hold an object."""
    target.ledger.objects["hotels", ObjectKey(key)] = LedgerObject(
        sync="hotels",
        key=ObjectKey(key),
        shard="north",
        raw_hash=b"r" * 16,
        row_hash=b"h" * 16,
        transformer_version=1,
        source_version=None,
        state=state,
        first_seen=target.clock.now(),
        last_changed_run=run,
        publication=brought_by,
    )


def compared(workshop: Workshop, tell: Callable[[int], None] = lambda _: None) -> Reconciliation:
    """Compare."""
    return reconcile(workshop.services, workshop.spec, 20, tell)


def kinds(found: Reconciliation) -> Sequence[tuple[str, Difference]]:
    """Return what differs, and how."""
    return [(one.key, one.difference) for one in found.alterations]


def test_it_tells_how_far_it_has_come(workshop: Workshop) -> None:
    """After each batch; a table that is in step has no differences."""
    told: list[int] = []
    found = compared(workshop, told.append)
    assert (told, found.rows, found.counts, found.is_in_step) == ([2, 3], 3, {}, True)


def test_what_is_published_meanwhile_is_no_edit(workshop: Workshop) -> None:
    """A row that a later publication changes, deletes or brings while rows are read is left out; an edit is still found."""
    target = workshop.target
    assert target is not None
    target.altered.update({ObjectKey("b"), ObjectKey("c")})
    hold(target, "e", FIRST)
    del target.rows[ObjectKey("e")]

    def publish_meanwhile(_: int) -> None:
        remember(target, "c", SECOND)
        remember(target, "d", SECOND)

    found = compared(workshop, publish_meanwhile)
    assert kinds(found) == [("e", Difference.MISSING), ("b", Difference.CHANGED)]
    assert (found.published_meanwhile, found.unclear) == (1, 0)


def test_a_row_whose_key_no_object_can_have_is_unknown(workshop: Workshop) -> None:
    """It is named by what stands in its key columns, as is a row nobody has published."""
    target = workshop.target
    assert target is not None
    target.rows[ObjectKey("x")] = {"id": "x", "updated_at": None}
    assert kinds(compared(workshop)) == [("x", Difference.UNKNOWN)]


def test_rows_of_a_spec_that_is_gone_are_unclear(workshop: Workshop) -> None:
    """Nobody can say how they were hashed; that is no step with the ledger, nor an edit."""
    target = workshop.target
    assert target is not None
    remember(target, "b", FIRST, run=RunId("forgotten"))
    target.altered.add(ObjectKey("b"))
    found = compared(workshop)
    assert (found.counts, found.unclear, found.is_in_step) == ({}, 1, False)
