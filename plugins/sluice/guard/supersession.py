"""Supersession: two reviewed runs of one sync go in; whether the newer run's review takes the place of the older's comes out.

A person is asked about the newest state of things alone, so a review that waits gives way to one of a later run that looked at
no less. Whatever the older review would have published, the newer one has looked at it again.

- A full run looks at all there is, or at all there is of the shards it was asked for: so it covers every run within those.
- An incremental run looks at what changed since its watermarks. It covers an incremental run of the same shards as long as
  those have not moved: then it has seen the same changes, and later ones.
- A run over a window covers nothing: what lies outside was not asked for. Nor does one that has lost a shard.
- A run that took nothing in where the older took something in covers nothing: that is an outage, or a mistake in the
  spec of a replay, and no newer state of things.
- A replay looks at no supplier. It covers the run whose data it maps again, unless that would delete something, and earlier
  replays of it.
- A redrive looks at dead letters alone. It covers an earlier redrive of the same ones, and only such a one covers it: what a
  person mends is not undone by the next delivery of the same bytes.
- What takes a publication back is no state of the supplier's: it covers, and is covered by, what takes the same one back.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from sluice.model.base import ShardKey
from sluice.model.ledger import Outcome
from sluice.model.review import Figures
from sluice.model.run import Mode, Run


@dataclass(frozen=True)
class Reviewed:
    """A run, what its review counted, and from where on each of its shards was asked for; None: from the beginning."""

    run: Run
    figures: Figures
    watermarks: Mapping[ShardKey, str | None]

    @property
    def took_something_in(self) -> bool:
        """Whether any object came that could be used."""
        return self.figures.seen > self.figures.count(Outcome.REJECTED)


def covers(newer: Reviewed, older: Reviewed) -> bool:
    """Whether the review of `newer`, a run that was admitted after `older`, takes the place of the older's."""
    if Mode.ROLLBACK in (newer.run.mode, older.run.mode):
        return newer.run.undoes == older.run.undoes
    if newer.run.window is not None or newer.figures.shards_failed or newer.run.redrives != older.run.redrives:
        return False
    if older.took_something_in and not newer.took_something_in:
        return False
    if newer.run.mode is Mode.REPLAY:
        return not newer.run.shards and _is_of_the_same_data(newer.run, older)
    if newer.run.mode in (Mode.FULL, Mode.REDRIVE):
        return not newer.run.shards or _is_within(older.run, newer.run)
    return older.run.mode is Mode.INCREMENTAL and older.run.window is None and _has_stood_still(newer, older)


def _is_of_the_same_data(newer: Run, older: Reviewed) -> bool:
    """Whether what the newer run maps again is what the older was made of; a replay does not say what is gone."""
    if older.run.replays is not None:
        return older.run.replays == newer.replays
    return older.run.id == newer.replays and not older.figures.count(Outcome.DELETED)


def _is_within(older: Run, newer: Run) -> bool:
    return bool(older.shards) and set(older.shards) <= set(newer.shards)


def _has_stood_still(newer: Reviewed, older: Reviewed) -> bool:
    """Whether each shard of the older run was asked for again, from the same watermark or from the beginning."""
    marks = newer.watermarks
    return all(key in marks and marks[key] in (None, mark) for key, mark in older.watermarks.items())
