"""A run goes by the spec it was admitted with."""

from dataclasses import replace

import pytest

from sluice.errors import NotFound, SpecInvalid
from sluice.flow.pinned_spec import pinned_spec
from sluice.model.artifact import ArtifactKind
from sluice.model.spec import SyncSpec
from tests.unit.flow.workshop import RUN, Workshop, sync_spec


def test_the_copy_counts_and_not_the_file() -> None:
    """What admission stored is read back, whole, though the YAML has changed since."""
    workshop = Workshop()
    run = workshop.admit()
    admitted, workshop.spec = workshop.spec, sync_spec(description="edited")
    assert pinned_spec(workshop.services, run) == admitted


def test_a_run_without_its_spec() -> None:
    """A run whose admission was cut off says what to do."""
    workshop = Workshop()
    run = workshop.admit()
    workshop.memory.pointers.clear()
    with pytest.raises(NotFound, match=r"run run-1 has no pinned spec.*admit it again"):
        pinned_spec(workshop.services, run)


def test_a_spec_of_another_release() -> None:
    """A pinned spec with a field this release does not know is refused by name."""
    workshop = Workshop()
    run = workshop.admit()
    (pointer,) = workshop.services.pointers.of(RUN, ArtifactKind.SPEC)
    data = workshop.artifacts.get(pointer).replace(b'"sync":', b'"novelty":1,"sync":')
    newer = workshop.artifacts.put(pointer.ref, data, records=1, expires_at=None)
    workshop.services.pointers.add(newer)
    with pytest.raises(SpecInvalid, match=r"novelty: Extra inputs.*run-1 was written by another release"):
        pinned_spec(workshop.services, run)


def test_a_damaged_spec_is_stored_again() -> None:
    """While its YAML is what it was, nothing is lost: the spec is read from there, and stored as it was."""
    workshop = Workshop()
    run = workshop.admit()
    (pointer,) = workshop.services.pointers.of(RUN, ArtifactKind.SPEC)
    workshop.artifacts.objects[pointer.key] += b" "
    assert pinned_spec(workshop.services, run) == workshop.spec
    assert workshop.metrics.of("artifact_corrupt", kind="spec") == 1
    assert workshop.artifacts.get(pointer) == workshop.spec.model_dump_json().encode()


@pytest.mark.parametrize("is_readable", [True, False])
def test_a_damaged_spec_whose_yaml_has_changed(is_readable: bool) -> None:
    """It is never taken for the one the run was admitted with; the error says what to do."""
    workshop = Workshop()
    run = workshop.admit()
    (pointer,) = workshop.services.pointers.of(RUN, ArtifactKind.SPEC)
    del workshop.artifacts.objects[pointer.key]

    def spec_of_today(_: str) -> SyncSpec:
        if is_readable:
            return sync_spec(description="edited")
        raise SpecInvalid(["hotels.yaml:1: no sync"])

    with pytest.raises(NotFound, match=r"is missing, and the YAML of hotels is not the one .*: put that back, or start"):
        pinned_spec(replace(workshop.services, spec=spec_of_today), run)
