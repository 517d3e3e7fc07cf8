"""Quality: a comparison and the suite that its sync names come in; what was found of the table as it would be goes out.

Where the suite says so, objects that do not meet an expectation are rejected on the way: they become dead letters as those that
could not be read, the comparison is made again without them, once, and the figures are of what is left.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Final

import structlog

from sluice import log_events
from sluice.checks.expectations import not_checked
from sluice.errors import RedoNeeded, SpecInvalid
from sluice.flow.damage import intact
from sluice.flow.digest import content_digest
from sluice.flow.entering import Entry
from sluice.flow.record_hashes import record_hashes
from sluice.flow.rejects import keep_rejects, note_repeated
from sluice.flow.rows_artifacts import rows_artifacts
from sluice.mapping.columns import places_of
from sluice.mapping.places import Place
from sluice.mapping.reject_lines import written
from sluice.model.artifact import ArtifactKind, Pointer
from sluice.model.base import ShardKey
from sluice.model.ledger import WRITING_OUTCOMES
from sluice.model.quality import ExpectationResult, Met, OnFailure, Quality, Suite, SuiteExpectation
from sluice.model.reject import RawAddress, Reject
from sluice.model.shard import Shard
from sluice.model.spec import SyncSpec
from sluice.ports import DiffCounts, Diffing, Expecting, Refused, Services

log: Final = structlog.get_logger()

_TOGETHER: Final = 20
"""So many expectations share their passes over the rows."""


def checked(
    services: Services,
    diffing: Diffing,
    entry: Entry,
    spec: SyncSpec,
    *,
    arrived: Mapping[ShardKey, Shard],
    counts: DiffCounts,
    again: Callable[[], None],
) -> Quality | None:
    """Return what the spec's suite finds of the table as it would be by the session's comparison; None: it names none.

    `again` makes that comparison again; where the findings tell of rejected objects, that has been done. Raises `RedoNeeded`
    where stored rows or records were lost.
    """
    name = spec.review.expectations
    if name is None:
        return None
    if not any(counts.outcomes.get(outcome) for outcome in WRITING_OUTCOMES):
        return Quality(suite=name, not_run="nothing would change")
    try:
        suite = services.suite(spec)
    except SpecInvalid as error:
        return Quality(suite=name, trouble=error.message)
    return _Inspection(services, diffing, entry, spec, suite).made(name, arrived, again)


class _Inspection:
    """One suite held against one comparison."""

    def __init__(self, services: Services, diffing: Diffing, entry: Entry, spec: SyncSpec, suite: Suite) -> None:
        self._services = services
        self._entry = entry
        self._spec = spec
        self._suite = suite.expectations
        self._rows = rows_artifacts(services, entry.run.id)
        self._began = services.clock.elapsed()
        policy = entry.policy
        self._until = self._began + policy.timeouts.step.total_seconds() / 2
        # Whoever says nothing for too long is taken for dead.
        patience = min(policy.timeouts.step, policy.no_progress_timeout) / 2
        columns = suite.columns_among(field.name for field in spec.fields)
        self._expecting: Expecting = diffing.expecting(columns, patience, entry.pulse.moved)

    def made(self, name: str, arrived: Mapping[ShardKey, Shard], again: Callable[[], None]) -> Quality:
        """Return what is found, having rejected what the suite rejects."""
        for shard, seq in self._expecting.needed():
            with intact(self._services, self._rows[shard, seq], self._entry.run) as rows:
                self._expecting.load_rows(shard, seq, rows)
            self._entry.pulse.moved()
        number = self._expecting.complete()
        self._entry.pulse.moved()
        results = self._results()
        rejected = self._reject(results, arrived)
        if rejected:
            number = self._expecting.reject()
            again()
            self._entry.pulse.moved()
            counted = enumerate(self._results())
            results = [result.model_copy(update={"rejected": rejected.get(place, 0)}) for place, result in counted]
        quality = Quality(
            suite=name,
            engine=self._expecting.engine,
            rows=number,
            results=tuple(results),
            seconds=round(self._services.clock.elapsed() - self._began, 3),
            import_seconds=round(self._expecting.import_seconds, 3),
        )
        self._tell(quality)
        return quality

    def _results(self) -> list[ExpectationResult]:
        """Return what is found of each expectation. What could not be checked with others is checked alone."""
        results: list[ExpectationResult] = []
        for start in range(0, len(self._suite), _TOGETHER):
            group = self._suite[start : start + _TOGETHER]
            together = self._checked(group)
            results += [
                self._checked([expectation])[0] if result.met is Met.NOT_CHECKED and len(group) > 1 else result
                for expectation, result in zip(group, together, strict=True)
            ]
        return results

    def _checked(self, expectations: Sequence[SuiteExpectation]) -> list[ExpectationResult]:
        if self._services.clock.elapsed() > self._until:
            return [not_checked(each, "the suite takes longer than half the time that a step has") for each in expectations]
        results = self._expecting.check(expectations)
        self._entry.pulse.moved()
        return results

    def _reject(self, results: Sequence[ExpectationResult], arrived: Mapping[ShardKey, Shard]) -> dict[int, int]:
        """Keep the objects that come in and are to be rejected as dead letters; return how many, by the place in the suite."""
        counts: dict[int, int] = {}
        for place, (expectation, result) in enumerate(zip(self._suite, results, strict=True)):
            if result.on_failure is OnFailure.REJECT and result.met is Met.FAILED and result.arriving:
                self._expecting.refuse(expectation, place)
                counts[place] = 0
        if not counts:
            return {}
        chunks = self._services.pointers.of(self._entry.run.id, ArtifactKind.RAW)
        raws = {(raw.ref.shard, raw.ref.seq): raw for raw in chunks}
        for (shard, seq), refused in groupby(self._expecting.refused(), key=lambda each: (each.shard, each.seq)):
            some = list(refused)
            self._keep(arrived[shard], raws[shard, seq], some)
            for each in some:
                counts[each.expectation] += 1
            self._entry.pulse.moved()
        note_repeated(self._services, self._entry.run, arrived, self._entry.pulse.moved)
        return counts

    def _keep(self, shard: Shard, raw: Pointer, refused: Sequence[Refused]) -> None:
        """Keep the rejects of one raw chunk, each with the address of its record."""
        services, run, seq = self._services, self._entry.run, raw.ref.seq
        with intact(services, self._rows[shard.key, seq], run) as rows:
            places = places_of(rows, [each.position for each in refused])
        if places is None:
            services.redos.map_again(shard.key, [seq], run)
            raise RedoNeeded(
                f"the rows of shard {shard.key}, chunk {seq}, do not say where their records stand", shard=shard.key
            )
        hashes = record_hashes(services, run, self._spec, raw, places)
        rejects = [self._reject_of(each, raw, place, hashes[place]) for each, place in zip(refused, places, strict=True)]
        variant = f"v{shard.version_in(run)}-suite-{content_digest(written(rejects))}"
        keep_rejects(services, run, shard, raw, rejects, variant=variant)

    def _reject_of(self, refused: Refused, raw: Pointer, place: Place, raw_hash: str) -> Reject:
        expectation = self._suite[refused.expectation]
        value = "null" if refused.value is None else repr(refused.value)
        return Reject(
            key=refused.key,
            address=RawAddress(artifact=raw.key, frame=place[0], index=place[1]),
            error="expectation",
            field=expectation.columns[0],
            message=f"{value} does not meet {expectation.label} of suite {self._spec.review.expectations}",
            raw_hash=raw_hash,
        )

    def _tell(self, quality: Quality) -> None:
        log.info(
            log_events.QUALITY_CHECKED,
            suite=quality.suite,
            rows=quality.rows,
            passed=quality.count(Met.PASSED),
            failed=quality.count(Met.FAILED),
            not_checked=quality.count(Met.NOT_CHECKED),
            rejected=quality.rejected,
            seconds=quality.seconds,
            import_seconds=quality.import_seconds,
        )
