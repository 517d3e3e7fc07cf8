"""The spec a run was admitted with: a run in, its spec out, whatever has become of the YAML since."""

from pydantic import ValidationError

from sluice.errors import NotFound, SpecInvalid
from sluice.model.artifact import ArtifactKind
from sluice.model.run import Run
from sluice.model.spec import SyncSpec
from sluice.ports import Services


def pinned_spec(services: Services, run: Run) -> SyncSpec:
    """Return the copy of the spec that admission stored for the run."""
    pointers = services.pointers.of(run.id, ArtifactKind.SPEC)
    if not pointers:
        raise NotFound(f"run {run.id} has no pinned spec: its admission did not come to its end, so admit it again", run=run.id)
    pointer = pointers[-1]
    try:
        return SyncSpec.model_validate_json(services.artifacts.get(pointer))
    except ValidationError as exc:
        raise SpecInvalid(
            [
                f"{pointer.key}: {'.'.join(str(part) for part in problem['loc'])}: {problem['msg']} (the pinned spec of run "
                f"{run.id} was written by another release of Sluice)"
                for problem in exc.errors(include_input=False, include_url=False)
            ]
        ) from exc
