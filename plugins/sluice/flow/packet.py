"""A review in; its packet stored, and what was stored of it read again, out. A packet that was lost stops nothing."""

import re
from collections.abc import Sequence

from pydantic import ValidationError

from sluice.errors import ArtifactCorrupt
from sluice.flow.damage import note
from sluice.flow.review_artifacts import keep
from sluice.model.airflow_names import dag_run_url
from sluice.model.artifact import ArtifactKind, Pointer
from sluice.model.evidence import Evidence
from sluice.model.lifecycle import ShardStatus
from sluice.model.review import Review
from sluice.model.run import Run
from sluice.model.shard import Shard
from sluice.model.spec import SyncSpec
from sluice.packet.page import packet
from sluice.ports import Services


def with_packet(
    services: Services, spec: SyncSpec, run: Run, review: Review, *, evidence: Evidence, shards: Sequence[Shard]
) -> Review:
    """Return the review with the pointer to its packet, which is stored as long as its diff is."""
    failed = [shard for shard in shards if shard.status is not ShardStatus.SUCCEEDED]
    data = packet(spec, run, review, evidence, failed=failed, dag_run_url=dag_run_url(services.airflow_url, run.origin))
    until = review.diff.expires_at
    report = keep(services, run, ArtifactKind.REPORT, data, records=review.figures.writes, expires_at=until)
    return review.model_copy(update={"report": report})


def packet_name(review: Review) -> str:
    """Return the name of the packet as a file."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", f"{review.sync}-{review.id}") + ".html"


def packet_of(services: Services, review: Review) -> bytes | None:
    """Return the packet of a review; None if it was lost, or never made."""
    return None if review.report is None else _stored(services, review.report)


def evidence_of(services: Services, review: Review) -> Evidence | None:
    """Return the evidence of a review; None if it was lost, never made, or is of another release."""
    data = None if review.evidence is None else _stored(services, review.evidence)
    if data is None:
        return None
    try:
        return Evidence.model_validate_json(data)
    except ValidationError:
        return None


def _stored(services: Services, pointer: Pointer) -> bytes | None:
    try:
        return services.artifacts.get(pointer)
    except ArtifactCorrupt as error:
        note(services, pointer, error)
        return None
