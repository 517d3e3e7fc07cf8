"""Publications, edits by hand and rollbacks in any order, held against a model that keeps all of it in a few dictionaries."""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sluice.model.ledger import ObjectState, Publication
from sluice.ports import ConnectionInfo
from tests.support.ledgered import Table
from tests.unit.mapping.workbench import sync_spec

KEYS, NAMES = "abc", ("x", "y", "z")
_DELIVERED = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(NAMES))
_ACTS = st.lists(
    st.one_of(
        st.tuples(st.just("bring"), _DELIVERED, st.booleans()),
        st.tuples(st.just("edit"), st.sampled_from(KEYS), st.sampled_from(NAMES)),
        st.tuples(st.just("roll back"), st.integers(0, 9)),
    ),
    min_size=3,
    max_size=9,
)
_NUMBERS = count(1)


@dataclass(frozen=True)
class Thing:
    """One object: its row, if it has one, whether that is marked as deleted, and what the ledger knows."""

    name: str | None = None
    marked: bool = False
    known: str | None = None
    """The name that the last publication has left there; None: the ledger does not know the object."""
    live: bool = False
    publication: int = 0

    def is_as_left_by(self, publication: int) -> bool:
        """Whether nobody has changed it since that publication."""
        if self.publication != publication:
            return False
        if self.live:
            return self.name == self.known and not self.marked
        return self.name is None or (self.marked and self.name == self.known)


@dataclass
class Model:
    """What table and ledger have to be."""

    soft: bool
    things: dict[str, Thing] = field(default_factory=lambda: dict.fromkeys(KEYS, Thing()))
    before: dict[int, dict[str, Thing]] = field(default_factory=dict)
    undone: set[int] = field(default_factory=set)

    def bring(self, delivered: Mapping[str, str], publication: int, *, complete: bool) -> None:
        """Publish what differs from the ledger."""
        changed = {}
        for key, thing in self.things.items():
            if key in delivered and (thing.known is None or not thing.live or thing.known != delivered[key]):
                changed[key] = Thing(delivered[key], known=delivered[key], live=True, publication=publication)
            elif complete and thing.live and key not in delivered:
                left = thing.name if self.soft else None
                marked = self.soft and thing.name is not None
                known = left or thing.known
                changed[key] = Thing(left, marked=marked, known=known, live=False, publication=publication)
        self._change(publication, changed)

    def roll_back(self, undone: int, publication: int) -> int:
        """Restore what nobody has changed since; return how many objects."""
        changed = {}
        for key, former in self.before[undone].items():
            thing = self.things[key]
            if thing.is_as_left_by(undone) and undone not in self.undone:
                if former.known is not None:
                    kept = replace(former, known=former.name or former.known)
                else:
                    kept = replace(thing, name=former.name, marked=former.marked, live=False)
                changed[key] = replace(kept, publication=publication)
        if changed:
            self.undone.add(undone)
            self._change(publication, changed)
        return len(changed)

    def edit(self, key: str, name: str) -> None:
        """Change a row that is there."""
        if self.things[key].name is not None:
            self.things[key] = replace(self.things[key], name=name)

    def _change(self, publication: int, changed: dict[str, Thing]) -> None:
        self.before[publication] = {key: self.things[key] for key in changed}
        self.things.update(changed)


def check(table: Table, model: Model) -> None:
    """Hold table and ledger against the model."""
    mark = "_sluice_deleted_at is not null" if model.soft else "false"
    rows = {row["id"]: (row["name"], row["marked"]) for row in table.rows(f"id, name, {mark} as marked")}
    assert rows == {key: (thing.name, thing.marked) for key, thing in model.things.items() if thing.name is not None}
    known = table.ledger.known(table.spec.sync, [*model.things])  # type: ignore[list-item]
    assert {str(key): (held.state is ObjectState.LIVE, held.publication) for key, held in known.items()} == {
        key: (thing.live, thing.publication) for key, thing in model.things.items() if thing.known is not None
    }


def play(table: Table, model: Model, acts: list[Any]) -> None:
    """Do one thing after the other."""
    made: list[Publication] = []
    for act in acts:
        match act:
            case ("bring", delivered, complete):
                made.append(table.bring(*({"id": key, "name": name} for key, name in delivered.items()), complete=complete))
                model.bring(delivered, made[-1].id, complete=complete)
            case ("edit", key, name):
                table.hand.execute(f"update {table.spec.target.table} set name = %s where id = %s".encode(), (name, key))
                model.edit(key, name)
            case ("roll back", number):
                undone = made[number % len(made)]
                undo = table.undo_of(undone)
                if undo.restored:
                    made.append(table.roll_back(undone, undo))
                assert model.roll_back(undone.id, made[-1].id) == undo.restored
        check(table, model)


@pytest.mark.parametrize("deletes", ["soft", "hard"])
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(acts=_ACTS)
def test_table_and_ledger_are_those_of_the_model(database: ConnectionInfo, deletes: str, acts: list[Any]) -> None:
    """Whatever happened before: what is restored, what is left alone, and what comes in afterwards."""
    name = f"things_{next(_NUMBERS)}"
    spec = sync_spec({"id": "text", "name": "text"}, sync=name, target={"table": f"shop.{name}", "deletes": deletes})
    with closing(Table(database, spec)) as table:
        play(table, Model(soft=deletes == "soft"), [("bring", {"a": "x"}, False), *acts])
