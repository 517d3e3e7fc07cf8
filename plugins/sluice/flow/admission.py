"""Admission: a request comes in, a run that holds the flight of its request key goes out, its spec pinned."""

import hashlib
import json
from typing import Final

import structlog

from sluice import log_events
from sluice.errors import UsageInvalid
from sluice.model.artifact import ArtifactKind, ArtifactRef
from sluice.model.base import RunId, Token
from sluice.model.lifecycle import RunStatus, Step
from sluice.model.run import Mode, Run, RunRequest
from sluice.model.spec import SyncSpec
from sluice.ports import Services

log: Final = structlog.get_logger()


def admit(services: Services, request: RunRequest, run_id: RunId) -> Run:
    """Validate the request, take the flight and pin the spec. Running it again with the same run id changes nothing.

    Raises `SpecInvalid`, `UsageInvalid`, or `FlightTaken` while another run of the same request is alive.
    """
    spec = services.spec(request.sync)
    policy = services.policy(spec.stage)
    mode = _mode(spec, request)
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
            request_key=request_key(spec, mode, request, spec_hash),
            mode=mode,
            window=request.window,
            shards=tuple(sorted(set(request.shards))),
            review=request.review,
            force=request.force,
            spec_hash=spec_hash,
            transformer_version=spec.version,
            origin=request.origin,
            status=RunStatus.PENDING,
            step=Step.ADMIT,
            token=Token(0),
            created_at=now,
        ),
        policy.lease_ttl,
    )
    if not services.pointers.of(run.id, ArtifactKind.SPEC):
        if run.spec_hash != spec_hash:
            raise UsageInvalid(f"the spec of {run.sync} was edited while run {run.id} was being admitted: start a new run")
        services.pointers.add(pointer, run.token)
    log.info(log_events.RUN_ADMITTED, **run.log_context, mode=run.mode, request_key=run.request_key)
    return run


def request_key(spec: SyncSpec, mode: Mode, request: RunRequest, spec_hash: str) -> str:
    """Return what makes two requests the same: stage, tenant, sync, version, and a hash of all that shapes the work."""
    work = {
        "mode": mode,
        "window": request.window.model_dump(mode="json") if request.window else None,
        "shards": sorted(set(request.shards)),
        "review": request.review,
        "spec": spec_hash,
    }
    digest = hashlib.sha256(json.dumps(work, sort_keys=True).encode()).hexdigest()
    return f"{spec.stage}:{spec.tenant}:{spec.sync}:{spec.version}:{digest[:32]}"


def _mode(spec: SyncSpec, request: RunRequest) -> Mode:
    if request.mode is Mode.INCREMENTAL and not spec.can_increment:
        raise UsageInvalid(f"{spec.sync} declares no source.watermark, so it can only run in mode full")
    if request.window is not None and not spec.uses_window:
        raise UsageInvalid(f"no template of {spec.sync} uses `window`, so a window would be ignored: run it without one")
    return request.mode or (Mode.INCREMENTAL if spec.can_increment else Mode.FULL)
