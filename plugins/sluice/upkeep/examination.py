"""Examining an installation: specs, policies, and ways to look at what they need, in; findings, each with its mend, out.

A check that cannot be made is a finding, and stops no other.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Final
from uuid import uuid4

from sluice.errors import SluiceError, SpecInvalid
from sluice.guard.credentials import lacks
from sluice.model.airflow_names import pool_of
from sluice.model.artifact import ArtifactKind, ArtifactRef
from sluice.model.base import RunId
from sluice.model.connections import ARTIFACTS, STATE, TARGET
from sluice.model.finding import Finding, Standing
from sluice.model.loss_window import LossWindow, Writing, loss_windows
from sluice.model.scalars import spell_duration
from sluice.model.source import FilesSource, RestSource, SourceSpec
from sluice.model.spec import SyncSpec
from sluice.model.stage import StagePolicy
from sluice.model.state_class import StateClass
from sluice.ports import ArtifactStore, Clock, ColdStore, Connections, DatabaseProbe, SpecReader

_TOLERABLE_SKEW: Final = timedelta(seconds=10)
_COLD_PROBE: Final = RunId("doctor")
_PROBE: Final = b"Sluice looks whether it can read what it has written here."


@dataclass(frozen=True)
class Examined:
    """An installation, as far as it can be looked at. Nothing is connected to before its check."""

    clock: Clock
    specs: SpecReader
    connections: Connections
    state: Callable[[], DatabaseProbe]
    target: Callable[[str], DatabaseProbe]
    artifacts: Callable[[], ArtifactStore]
    cold: Callable[[], ColdStore | None]
    warehouse: Callable[[str], datetime]
    """Asks the database behind a connection, a source of rows, for its time; raises what the source would."""
    pools: Callable[[], Sequence[str]] | None
    """Lists Airflow's pools; None: no Airflow is known."""
    unable: Callable[[StagePolicy], Sequence[str]]
    """Says of those whom a stage tells of alerts and reviews which could not be told from here, and why."""
    writing: Mapping[StateClass, Writing]

    def loss_windows(self) -> dict[str, list[LossWindow]]:
        """Return the loss windows of each stage that can be read."""
        return {stage: loss_windows(policy, self.writing) for stage, policy in _policies(self.specs).items()}


def examine(examined: Examined) -> Iterator[Finding]:
    """Make every check, and yield what it has found."""
    yield from _specs(examined)
    syncs = _readable(examined.specs)
    yield from _database(examined, STATE, "sluice_state", examined.state)
    for conn_id in sorted({TARGET, *(spec.target.connection for spec in syncs)}):
        yield from _database(examined, conn_id, "sluice_ledger", partial(examined.target, conn_id))
    yield from _attempted("artifacts", ARTIFACTS, partial(_artifacts, examined), _reach(ARTIFACTS))
    for conn_id in sorted({conn_id for spec in syncs for conn_id in _others(spec)}):
        yield from _attempted("supplier", conn_id, partial(_supplier, examined, conn_id, syncs), _reach(conn_id))
    policies = _policies(examined.specs)
    for stage, policy in policies.items():
        yield _idempotency(stage, policy)
        yield from _notifiers(stage, examined.unable(policy))
    yield from _pools(examined, sorted({spec.stage for spec in syncs} & set(policies)))


def _attempted(check: str, subject: str, make: Callable[[], Finding], mend: str) -> Iterator[Finding]:
    try:
        yield make()
    except SluiceError as error:
        yield Finding(check=check, subject=subject, standing=Standing.FAILED, said=error.message, mend=mend)


def _reach(conn_id: str) -> str:
    return f"start what it leads to (`sluice up` starts a local stack), or correct the connection {conn_id}"


def _specs(examined: Examined) -> Iterator[Finding]:
    problems = examined.specs.check()
    for problem in problems:
        yield Finding(
            check="specs",
            subject=problem.partition(":")[0],
            standing=Standing.FAILED,
            said=problem,
            mend="correct that line; `sluice validate` checks the files alone",
        )
    if not problems:
        names = ", ".join(examined.specs.names()) or "no syncs yet"
        yield Finding(check="specs", subject="include", standing=Standing.OK, said=f"every spec and stage is valid: {names}")


def _readable(specs: SpecReader) -> list[SyncSpec]:
    found = []
    for name in specs.names():
        try:
            found.append(specs.sync(name))
        except SpecInvalid:
            continue
    return found


def _policies(specs: SpecReader) -> dict[str, StagePolicy]:
    found = {}
    for stage in specs.stages():
        try:
            found[stage] = specs.policy(stage)
        except SpecInvalid:
            continue
    return found


def _notifiers(stage: str, unable: Sequence[str]) -> Iterator[Finding]:
    """Nobody would hear of an alert: that shows when it is too late."""
    for said in unable:
        yield Finding(
            check="notifiers",
            subject=stage,
            standing=Standing.FAILED,
            said=said,
            mend=f"correct alerts.notify of {stage}, or install the notifier's provider wherever tasks run",
        )


def _database(examined: Examined, conn_id: str, schema: str, probe: Callable[[], DatabaseProbe]) -> Iterator[Finding]:
    """Look at one database: whether it answers, what its schema is at, and how far its clock is from ours."""
    try:
        opened = probe()
        began, mark = examined.clock.now(), examined.clock.elapsed()
        theirs = opened.now()
        took = timedelta(seconds=examined.clock.elapsed() - mark)
    except SluiceError as error:
        yield Finding(check="database", subject=conn_id, standing=Standing.FAILED, said=error.message, mend=_reach(conn_id))
        return
    yield Finding(check="database", subject=conn_id, standing=Standing.OK, said="reachable")
    yield from _attempted("schema", conn_id, partial(_schema, conn_id, schema, opened), "run `sluice db upgrade`")
    # Half of the way there and back is the best guess at when they looked, and the other half what it may be wrong by.
    skew = theirs - (began + took / 2)
    is_off = abs(skew) - took / 2 > _TOLERABLE_SKEW
    way = "ahead of" if skew > timedelta(0) else "behind"
    yield Finding(
        check="clock",
        subject=conn_id,
        standing=Standing.WARNING if is_off else Standing.OK,
        said=f"its clock is {abs(skew).total_seconds():.1f} s {way} this machine's",
        mend="let both take their time from NTP: what is kept until when is reckoned by both" if is_off else None,
    )


def _schema(conn_id: str, schema: str, probe: DatabaseProbe) -> Finding:
    present, ours = probe.revision()
    if present == ours:
        return Finding(check="schema", subject=conn_id, standing=Standing.OK, said=f"{schema} is at revision {ours}")
    said = f"{schema} is at revision {present}" if present else f"there is no {schema} yet"
    newer = present is not None and present > ours
    return Finding(
        check="schema",
        subject=conn_id,
        standing=Standing.FAILED,
        said=f"{said}; this Sluice needs {ours}",
        mend="upgrade this Sluice: a newer one has been here" if newer else "run `sluice db upgrade`",
    )


def _artifacts(examined: Examined) -> Finding:
    """Put an object, read it back, list what there is, write where cold copies are wanted, and remove it."""
    store, cold = examined.artifacts(), examined.cold()
    ref = ArtifactRef(sync="doctor", run=RunId(f"doctor-{uuid4().hex}"), kind=ArtifactKind.REPORT)
    pointer = store.put(ref, _PROBE, records=0, expires_at=None)
    try:
        store.get(pointer)
        store.listed("")
        if cold is not None:
            cold.write(ref.sync, _COLD_PROBE, "probe", ())
    finally:
        store.remove(pointer)
    said = "an object was put, read back and removed" + ("" if cold is None else "; cold copies can be written")
    return Finding(check="artifacts", subject=ARTIFACTS, standing=Standing.OK, said=said)


def _sources(spec: SyncSpec) -> list[SourceSpec]:
    """Return what the sync asks: for its records, and for its shards."""
    return [spec.source, *([spec.shards.source] if spec.shards is not None and spec.shards.kind == "listed" else [])]


def _others(spec: SyncSpec) -> set[str]:
    """Return the connections to those whom the sync asks or tells."""
    asked = (source.connection for source in _sources(spec) if source.connection)
    return {*asked, *(hook.connection for hook in spec.webhooks)}


def _supplier(examined: Examined, conn_id: str, syncs: Sequence[SyncSpec]) -> Finding:
    """Look at a connection, and at whether it holds what its syncs prove by who asks; a database is asked for its time."""
    info = examined.connections.get(conn_id)
    for spec, source in ((sync, source) for sync in syncs for source in _sources(sync)):
        auth = source.auth if isinstance(source, RestSource | FilesSource) else None
        missing = lacks(auth, info) if source.connection == conn_id else None
        if missing is not None:
            return Finding(
                check="supplier",
                subject=conn_id,
                standing=Standing.FAILED,
                said=f"lacks {missing} of the sync {spec.sync}",
                mend=f"put it into the connection {conn_id}, or correct source.auth of {spec.sync}",
            )
    if any(source.kind == "sql" and source.connection == conn_id for spec in syncs for source in _sources(spec)):
        examined.warehouse(conn_id)
        return Finding(check="supplier", subject=conn_id, standing=Standing.OK, said=f"reachable at {info.host}")
    where = info.host or info.extra.get("endpoint_url") or ("AWS" if info.conn_type == "aws" else None)
    return Finding(check="supplier", subject=conn_id, standing=Standing.OK, said=f"is defined, and leads to {where}")


def _idempotency(stage: str, policy: StagePolicy) -> Finding:
    """Hold how long results of calls are kept against how long a call may be repeated."""
    ttl, needed = policy.idempotency_ttl, policy.longest_run + policy.retry_window
    said = (
        f"idempotency_ttl {spell_duration(ttl)}, longest run {spell_duration(policy.longest_run)} + retry window "
        f"{spell_duration(policy.retry_window)} = {spell_duration(needed)}"
    )
    if ttl >= needed:
        return Finding(check="idempotency", subject=stage, standing=Standing.OK, said=said)
    mend = f"raise idempotency_ttl of {stage} to {spell_duration(needed)}, or a call may be repeated as if it were new"
    return Finding(check="idempotency", subject=stage, standing=Standing.FAILED, said=said, mend=mend)


def _pools(examined: Examined, stages: Sequence[str]) -> Iterator[Finding]:
    if examined.pools is None:
        return
    try:
        there = set(examined.pools())
    except SluiceError as error:
        yield Finding(
            check="pool",
            subject="Airflow",
            standing=Standing.WARNING,
            said=error.message,
            mend="look again when it is up",
        )
        return
    for stage in stages:
        pool = pool_of(stage)
        is_there = pool in there
        yield Finding(
            check="pool",
            subject=pool,
            standing=Standing.OK if is_there else Standing.FAILED,
            said="is there" if is_there else f"Airflow has no such pool, so no task of {stage} ever starts",
            mend=None if is_there else f"create it under Admin > Pools, with max_parallel_shards of {stage} as its slots",
        )
