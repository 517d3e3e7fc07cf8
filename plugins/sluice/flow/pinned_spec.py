"""The spec a run was admitted with: a run in, its spec out, whatever has become of the YAML since."""

import hashlib

from pydantic import ValidationError

from sluice.errors import ArtifactCorrupt, NotFound, SpecInvalid
from sluice.flow.damage import note
from sluice.model.artifact import ArtifactKind, Pointer
from sluice.model.run import Run
from sluice.model.shard import Shard
from sluice.model.spec import SyncSpec
from sluice.ports import Ledger, Services


def pinned_spec(services: Services, run: Run) -> SyncSpec:
    """Return the copy of the spec that admission stored for the run; where that was lost, store it again from its YAML.

    Raises `NotFound` if the YAML is another one by now.
    """
    pointers = services.pointers.of(run.id, ArtifactKind.SPEC)
    if not pointers:
        raise NotFound(f"run {run.id} has no pinned spec: its admission did not come to its end, so admit it again", run=run.id)
    pointer = pointers[-1]
    try:
        return SyncSpec.model_validate_json(_stored(services, run, pointer))
    except ValidationError as exc:
        raise SpecInvalid(
            [
                f"{pointer.key}: {'.'.join(str(part) for part in problem['loc'])}: {problem['msg']} (the pinned spec of run "
                f"{run.id} was written by another release of Sluice)"
                for problem in exc.errors(include_input=False, include_url=False)
            ]
        ) from exc


def spec_of(services: Services, run: Run, shard: Shard) -> SyncSpec:
    """Return what the version means that makes the rows of a shard; raises as `pinned_spec` does."""
    return pinned_spec(services, run).as_version(shard.version_in(run))


def pinned_ledger(services: Services, run: Run) -> Ledger:
    """Return the ledger of the target that the run publishes to; raises as `pinned_spec` does."""
    return services.ledger(pinned_spec(services, run))


def _stored(services: Services, run: Run, pointer: Pointer) -> bytes:
    try:
        return services.artifacts.get(pointer)
    except ArtifactCorrupt as error:
        note(services, pointer, error)
        spec = next(
            (spec for spec in _specs_of_today(services, run) if hashlib.sha256(spec).hexdigest() == pointer.sha256), None
        )
        if spec is None:
            raise NotFound(
                f"{error.message}, and the YAML of {run.sync} is not the one it was made of: put that back, or start a new run",
                run=run.id,
            ) from error
        services.artifacts.put(pointer.ref, spec, pointer.records, pointer.expires_at)
        return spec


def _specs_of_today(services: Services, run: Run) -> list[bytes]:
    """Return the spec as its YAML has it now, as admission would store it: all of it, or what one version of it means."""
    try:
        spec = services.spec(run.sync)
        means = [spec.as_version(run.transformer_version)] if run.transformer_version in spec.versions else []
        return [meant.model_dump_json().encode() for meant in (spec, *means)]
    except SpecInvalid:
        return []
