"""The packet of a review, kept and read again."""

from dataclasses import replace

import pytest

from sluice.errors import ArtifactsUnavailable
from sluice.flow.packet import evidence_of, packet_of, with_packet
from sluice.flow.reviewer import review
from sluice.model.artifact import ArtifactKind, ArtifactRef, Pointer
from sluice.model.review import Review
from sluice.model.run import Origin, Run
from tests.support.evidence import some_evidence
from tests.support.nouns import MINUTE, NOW, a_review
from tests.unit.fakes.artifact_store import MemoryArtifactStore
from tests.unit.flow.workshop import NORTH, RUN, SOUTH, Workshop


def reviewed() -> tuple[Workshop, Run, Review]:
    """A run of which one shard came in, and its review, whose packet is not made yet."""
    workshop = Workshop()
    workshop.equip()
    workshop.begin()
    workshop.bring_in(NORTH, ("a", "2024-05-01T00:00:00Z"))
    workshop.lose(SOUTH)
    diff = a_review("r").diff.model_copy(update={"expires_at": NOW + MINUTE})
    return workshop, workshop.memory.runs[RUN], a_review("r", diff=diff)


def pack(workshop: Workshop, run: Run, review: Review, airflow_url: str | None = None) -> Review:
    """Have the packet made."""
    shards = workshop.services.shards.of(RUN)
    services = replace(workshop.services, airflow_url=airflow_url)
    return with_packet(services, workshop.spec, run, review, evidence=some_evidence(), shards=shards)


def test_the_packet_is_an_artifact_of_its_run() -> None:
    """It is kept as long as the diff it tells of, names the shards that are left out, and can be read again."""
    workshop, run, review = reviewed()
    packed = pack(workshop, run, review)
    assert packed.report is not None
    assert packed.report.ref.kind is ArtifactKind.REPORT
    assert packed.report.expires_at == review.diff.expires_at
    assert workshop.services.pointers.of(RUN, ArtifactKind.REPORT) == [packed.report]
    page = packet_of(workshop.services, packed)
    assert page is not None
    assert b"403 Forbidden" in page
    assert b"south" in page
    assert packed.model_copy(update={"report": None}) == review


def test_a_review_comes_with_its_packet() -> None:
    """It tells of the very evidence and digest that the review has, and a repeated review has the same one."""
    workshop, _, _ = reviewed()
    made = review(workshop.services, RUN)
    page = packet_of(workshop.services, made)
    assert page is not None
    assert made.evidence is not None
    assert made.digest.encode() in page
    assert made.evidence.sha256.encode() in page
    assert review(workshop.services, RUN) == made
    assert workshop.services.pointers.of(RUN, ArtifactKind.REPORT) == [made.report]


def test_the_same_review_has_the_same_packet() -> None:
    """A step that is repeated stores nothing else."""
    workshop, run, review = reviewed()
    assert pack(workshop, run, review) == pack(workshop, run, review)
    assert len(workshop.services.pointers.of(RUN, ArtifactKind.REPORT)) == 1


def test_it_leads_to_the_dag_run_where_airflow_has_an_address() -> None:
    """On paper, it is named."""
    workshop, run, review = reviewed()
    in_airflow = run.model_copy(update={"origin": Origin(dag_id="sluice_hotels", dag_run_id="manual__1+00:00")})
    named = packet_of(workshop.services, pack(workshop, in_airflow, review)) or b""
    assert b"href" not in named
    assert b"manual__1+00:00" in named
    linked = packet_of(workshop.services, pack(workshop, in_airflow, review, "https://airflow.example/af")) or b""
    assert b'href="https://airflow.example/af/dags/sluice_hotels/runs/manual__1%2B00%3A00"' in linked
    inline = packet_of(workshop.services, pack(workshop, run, review, "https://airflow.example/af")) or b""
    assert b"href" not in inline


def test_what_was_lost_or_never_made_is_not_there() -> None:
    """No error, since all that counts is elsewhere; but it is counted."""
    workshop, run, review = reviewed()
    assert packet_of(workshop.services, review) is None
    packed = pack(workshop, run, review)
    workshop.artifacts.objects.clear()
    assert packet_of(workshop.services, packed) is None
    assert workshop.metrics.of("artifact_corrupt", kind="report") == 1


def test_evidence_can_be_read_again() -> None:
    """Unless it was lost, never made, or is of another release."""
    workshop, _, review = reviewed()
    assert evidence_of(workshop.services, review) is None
    stored = review.model_copy(update={"evidence": put(workshop, some_evidence().model_dump_json().encode())})
    assert evidence_of(workshop.services, stored) == some_evidence()
    strange = review.model_copy(update={"evidence": put(workshop, b'{"a": 1}')})
    assert evidence_of(workshop.services, strange) is None
    workshop.artifacts.objects.clear()
    assert evidence_of(workshop.services, stored) is None


def put(workshop: Workshop, data: bytes) -> Pointer:
    """Store bytes as evidence."""
    ref = ArtifactRef(sync="hotels", run=RUN, kind=ArtifactKind.EVIDENCE, variant=str(len(data)))
    return workshop.artifacts.put(ref, data, records=1, expires_at=None)


def test_a_store_that_cannot_be_reached_is_no_store_without_a_packet() -> None:
    """Missing and unreachable are different answers."""

    class Unreachable(MemoryArtifactStore):
        def get(self, pointer: Pointer) -> bytes:
            raise ArtifactsUnavailable(f"the store that has {pointer.key} is down")

    workshop, run, review = reviewed()
    packed = pack(workshop, run, review)
    workshop.artifacts = Unreachable()
    with pytest.raises(ArtifactsUnavailable):
        packet_of(workshop.services, packed)
