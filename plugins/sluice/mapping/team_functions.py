"""Records whose objects have to be mapped come in; what the fields and the team's function make of each goes out.

A function is given frames of its own, whatever became of an earlier one. It may not touch what makes an object that object, and
that version of it: key, version, deletion and watermark are as the record says, which is read only if they are not known yet.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from msgspec import Raw

from sluice.mapping.exact import ExactType, exact_type, told_apart
from sluice.mapping.frames import TypedFrames
from sluice.mapping.identity import Identified, Identity
from sluice.mapping.narrowing import Narrowing, Places, Problems, readable
from sluice.mapping.reader import Reader
from sluice.mapping.reading import Outcome, outcomes
from sluice.mapping.record_frames import decoded, frame_of, records_of, too_deep
from sluice.mapping.rules import RowRules
from sluice.mapping.violation import IDENTITY, Problem, shown
from sluice.model.spec import SyncSpec
from sluice.ports import TeamFunction

_NUL: Final = rb"\u0000"
"""A text that may hold a NUL has to be read with care."""

Making = Callable[[Sequence[Identified]], Sequence[Outcome]]
"""Makes the rows of objects, in their order."""


def making(spec: SyncSpec, function: TeamFunction, identity: Identity, moved: Callable[[], object]) -> Making:
    """Return what makes the rows of a sync that has a function, and calls `moved` after each call of it."""
    kind = _Before if spec.transform is not None and spec.transform.when == "before" else _After
    return kind(spec, Narrowing(function, moved), identity)


class _Before:
    """Lets the function have the records, and reads the fields of what it returns."""

    def __init__(self, spec: SyncSpec, narrowing: Narrowing, identity: Identity) -> None:
        self._reader = Reader(spec.fields, required=spec.object.key)
        self._narrowing = narrowing
        self._check = _IdentityCheck(spec, identity)

    def __call__(self, records: Sequence[Identified]) -> list[Outcome]:
        written: list[Raw | Problems] = [too_deep(record.raw) for record in records]
        sound = [place for place, problems in enumerate(written) if not problems]
        labels = _labels([records[place] for place in sound])

        def attempt(places: Places) -> list[Raw | Problems]:
            # Anew for each call: a function may change the lists and dictionaries themselves.
            given = [decoded(records[sound[place]].raw) for place in places]
            named = [labels[place] for place in places]
            returned = self._narrowing.call(frame_of(given, named))
            with readable():
                made = records_of(returned, given, named)
            return [
                raw if isinstance(raw, tuple) else self._check.of_record(records[sound[place]], raw) or raw
                for place, raw in zip(places, made, strict=True)
            ]

        for place, made in zip(sound, self._narrowing.outcomes(len(sound), attempt), strict=True):
            written[place] = made
        read = outcomes(self._reader, [(raw, _NUL in bytes(raw)) for raw in written if not isinstance(raw, tuple)])
        return [raw if isinstance(raw, tuple) else next(read) for raw in written]


class _After:
    """Reads the fields, and lets the function have their values."""

    def __init__(self, spec: SyncSpec, narrowing: Narrowing, identity: Identity) -> None:
        fields = [field.unruled.model_copy(update={"required": False}) for field in spec.fields]
        self._reader = Reader(fields, required=spec.object.key)
        self._rules = RowRules(spec.fields, spec.object.key)
        self._frames = TypedFrames(spec.fields)
        self._narrowing = narrowing
        self._check = _IdentityCheck(spec, identity)

    def __call__(self, records: Sequence[Identified]) -> list[Outcome]:
        found = list(outcomes(self._reader, [(record.raw, record.is_dubious) for record in records]))
        sound = [place for place, outcome in enumerate(found) if not isinstance(outcome, tuple)]
        rows = [outcome for outcome in found if not isinstance(outcome, tuple)]
        labels = _labels([records[place] for place in sound])

        def attempt(places: Places) -> list[Outcome]:
            given, named = [rows[place] for place in places], [labels[place] for place in places]
            returned = self._narrowing.call(self._frames.frame(given, named))
            with readable():
                made = self._frames.rows(returned, given, named)
            return [
                row if isinstance(row, tuple) else self._check.of_row(records[sound[place]], row) or row
                for place, row in zip(places, made, strict=True)
            ]

        for place, row in zip(sound, self._narrowing.outcomes(len(rows), attempt), strict=True):
            found[place] = row if isinstance(row, tuple) else tuple(self._rules.problems(row)) or row
        return found


class _IdentityCheck:
    """Finds what a function has changed and may not."""

    def __init__(self, spec: SyncSpec, identity: Identity) -> None:
        names = [field.name for field in spec.fields]
        self._identity = identity
        self._places = [(name, names.index(name), exact_type(spec.field(name).type)) for name in identity.names]

    def of_row(self, record: Identified, row: Sequence[Any]) -> tuple[Problem, ...]:
        """Return what differs between the identity of a record and that of its row."""
        return self._differing(record.values, [row[place] for _, place, _ in self._places])

    def of_record(self, record: Identified, raw: Raw) -> tuple[Problem, ...]:
        """Return what differs between the identity of a record and that of another in its place."""
        return self._differing(record.values, self._identity.read(raw))

    def _differing(self, before: Sequence[Any], after: Sequence[Any]) -> tuple[Problem, ...]:
        return tuple(
            Problem(name, IDENTITY, f"the function may not change it: {_spelled(kind, old)} became {_spelled(kind, new)}")
            for (name, _, kind), old, new in zip(self._places, before, after, strict=True)
            if told_apart(old) != told_apart(new)
        )


def _spelled(kind: ExactType, value: Any) -> str:
    return "null" if value is None else shown(kind.to_text(told_apart(value)))


def _labels(records: Sequence[Identified]) -> list[str]:
    """Return what names each record within its chunk: its page, and its place there. An object may come twice."""
    return [f"{record.head.frame}/{record.head.index}" for record in records]
