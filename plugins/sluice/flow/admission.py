"""Admission: a request comes in; a run that has its flight, follows another or is over already goes out, its spec pinned."""

import hashlib
import json
from collections.abc import Sequence
from typing import Final

import structlog

from sluice import log_events
from sluice.errors import NotFound, NotUndoable, UsageInvalid
from sluice.flow.before_images import undone_publication
from sluice.flow.digest import content_digest
from sluice.flow.measuring import measured, tell_admitted
from sluice.flow.pinned_spec import pinned_spec
from sluice.flow.raw_data import replayed
from sluice.guard.log_level import logged_from
from sluice.model.artifact import ArtifactKind, ArtifactRef, Pointer
from sluice.model.base import RunId, ShardKey, Token
from sluice.model.lifecycle import RunStatus, Step
from sluice.model.run import Mode, Run, RunRequest
from sluice.model.shard import some_of
from sluice.model.spec import SyncSpec
from sluice.model.stage import StagePolicy
from sluice.ports import Services

log: Final = structlog.get_logger()


def admit(services: Services, request: RunRequest, run_id: RunId) -> Run:
    """Validate the request, ask for its flight and pin the spec. A run that was admitted before looks how things stand now.

    One that takes a publication back gets the spec that publication was made with. See `guard.flight` for what becomes of a
    run. Raises `SpecInvalid`, `UsageInvalid`, `NotUndoable`, or `NotFound` and `RawDataGone` for what is to be replayed.
    """
    present = _admitted(services, run_id)
    if present is not None:
        return services.runs.open(present, services.policy(present.stage))
    spec = _spec(services, request)
    with measured(services, spec.stage, Step.ADMIT):
        return _admit(services, request, run_id, spec)


def _admit(services: Services, request: RunRequest, run_id: RunId, spec: SyncSpec) -> Run:
    policy = services.policy(spec.stage)
    mode = mode_of(spec, request)
    donors = replayed(services, request) if mode is Mode.REPLAY else []
    if request.replays is not None:
        request = request.model_copy(update={"replays": donors[-1]})
    letters = _state_of_letters(services, request)
    spec_json = spec.model_dump_json().encode()
    spec_hash = hashlib.sha256(spec_json).hexdigest()
    now = services.clock.now()
    ref = ArtifactRef(sync=spec.sync, run=run_id, kind=ArtifactKind.SPEC, variant=spec_hash[:16])
    pointer = services.artifacts.put(ref, spec_json, records=1, expires_at=now + policy.artifact_ttl)
    run = services.runs.open(
        Run(
            id=run_id,
            sync=spec.sync,
            stage=spec.stage,
            tenant=spec.tenant,
            request_key=request_key(
                spec, mode, request, spec_hash, donors, letters=letters, code=_code(services, request, spec)
            ),
            mode=mode,
            window=request.window,
            shards=tuple(sorted(set(request.shards))),
            review=request.review,
            force=request.force,
            undoes=request.undoes,
            replays=request.replays,
            redrives=request.redrives,
            spec_hash=spec_hash,
            transformer_version=spec.version,
            origin=request.origin,
            status=RunStatus.PENDING,
            step=Step.ADMIT,
            token=Token(0),
            created_at=now,
        ),
        policy,
        request.by,
    )
    if run.spec_hash != spec_hash:
        raise UsageInvalid(f"the spec of {run.sync} was edited while run {run.id} was being admitted: start a new run")
    # Only who has the flight has a token to show. The spec's pointer comes last: it says that admission came to its end.
    token = run.token if run.follows is None else None
    services.pointers.add(_copy(services, run, policy), token)
    services.pointers.add(pointer, token)
    with logged_from(policy.log_level):
        log.info(
            log_events.RUN_ADMITTED,
            **run.log_context,
            mode=run.mode,
            request_key=run.request_key,
            status=run.status,
            follows=run.follows,
        )
    tell_admitted(services, run)
    return run


def look_again(services: Services, run: Run) -> Run:
    """Return a run that follows as it is now; one that somebody has ended meanwhile stays ended."""
    present = services.runs.get(run.id)
    return services.runs.open(present, services.policy(present.stage)) if present.is_following else present


def _admitted(services: Services, run_id: RunId) -> Run | None:
    """Return the run if it was admitted, and its spec pinned, before."""
    try:
        run = services.runs.get(run_id)
    except NotFound:
        return None
    return run if services.pointers.of(run_id, ArtifactKind.SPEC) else None


def _copy(services: Services, run: Run, policy: StagePolicy) -> Pointer:
    """Store what the run's row says, so that it can be written again should it ever be unreadable."""
    data = run.model_dump_json().encode()
    ref = ArtifactRef(sync=run.sync, run=run.id, kind=ArtifactKind.RUN, variant=content_digest(data))
    return services.artifacts.put(ref, data, records=1, expires_at=services.clock.now() + policy.artifact_ttl)


def request_key(
    spec: SyncSpec,
    mode: Mode,
    request: RunRequest,
    spec_hash: str,
    donors: Sequence[RunId] = (),
    *,
    letters: str | None = None,
    code: Sequence[int] = (),
) -> str:
    """Return what makes two requests the same: stage, tenant, sync, version, and a hash of all that shapes the work.

    To replay a window that has got further runs since is another request; and so it is to take up dead letters once others are
    open. Code of the team's that was edited makes other rows.
    """
    work = {
        "mode": mode,
        "window": request.window.model_dump(mode="json") if request.window else None,
        "shards": sorted(set(request.shards)),
        "review": request.review,
        "spec": spec_hash,
        **({} if request.undoes is None else {"undoes": request.undoes}),
        **({} if request.replays is None else {"replays": request.replays}),
        **({} if request.replays is not None or not donors else {"donors": list(donors)}),
        **({"code": list(code)} if code else {}),
        **({} if request.redrives is None else {"redrives": request.redrives.model_dump(mode="json"), "letters": letters}),
    }
    digest = hashlib.sha256(json.dumps(work, sort_keys=True).encode()).hexdigest()
    return f"{spec.stage}:{spec.tenant}:{spec.sync}:{spec.version}:{digest[:32]}"


def _code(services: Services, request: RunRequest, spec: SyncSpec) -> list[int]:
    """Return the digests of the team's functions that the run may call, which are loaded for that; raise `SpecInvalid`."""
    if request.undoes is not None:
        return []
    meant = [spec.as_version(version) for version in spec.versions]
    return [function.digest for one in meant if (function := services.transform(one, ShardKey(""))) is not None]


def _state_of_letters(services: Services, request: RunRequest) -> str | None:
    """Return what tells which letters a redrive finds open; raise `NotFound` if there are none."""
    if request.redrives is None:
        return None
    if not services.redrives.shards(request.sync, request.redrives):
        cause = f" of cause {request.redrives.cause}" if request.redrives.cause is not None else ""
        numbered = f" {some_of([str(letter) for letter in request.redrives.letters])}" if request.redrives.letters else ""
        raise NotFound(f"{request.sync} has no open dead letter{numbered}{cause}: `sluice dlq list {request.sync}` tells which")
    return services.redrives.state(request.sync, request.redrives)


def _spec(services: Services, request: RunRequest) -> SyncSpec:
    """Return the spec of the sync, or what one version of it means, where that is asked for.

    To take a publication back, it is the one that was made with: names, types and table are its.
    """
    spec = services.spec(request.sync)
    if request.undoes is None:
        return spec if request.version is None else spec.as_version(request.version)
    undone = undone_publication(services, spec, request.undoes)
    try:
        return pinned_spec(services, services.runs.get(undone.run))
    except NotFound as error:
        raise NotUndoable(f"of publication {undone.id} nothing is kept any more but its record: {error.message}") from error


def mode_of(spec: SyncSpec, request: RunRequest) -> Mode:
    """Return the mode a run of this request has; raise `UsageInvalid` if the sync cannot run as it asks for."""
    request.require_sense()
    if request.mode is Mode.INCREMENTAL and not spec.can_increment:
        raise UsageInvalid(f"{spec.sync} declares no source.watermark, so it can only run in mode full")
    if request.window is not None and request.mode is not Mode.REPLAY and not spec.uses_window:
        raise UsageInvalid(f"nothing that {spec.sync} asks its supplier depends on a window: run it without one")
    return request.mode or (Mode.INCREMENTAL if spec.can_increment else Mode.FULL)
