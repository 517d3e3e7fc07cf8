"""Open dead letters of a sync come in; what may be the matter with each group of them goes out, tried on the objects.

Nothing is changed by it: a person who finds a proposal right writes it into the spec, and redrives the letters.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from pydantic import ValidationError

from sluice.errors import CodeFailed, SluiceError
from sluice.mapping.mapper import Mapper
from sluice.mapping.pages import page_of
from sluice.mapping.violation import Violation
from sluice.model.base import ShardKey
from sluice.model.fields import FieldSpec
from sluice.model.reject import Cause, DeadLetter, DeadLetterGroup
from sluice.model.run import Redrive
from sluice.model.spec import SyncSpec
from sluice.model.triage import Proposal, Specimen, Triaged, Ward, Weighed
from sluice.ports import Services, Triage
from sluice.upkeep.letters import raw_records

_SPECIMENS: Final = 50
"""So many objects of a group are looked at, the newest ones."""
_PROPOSALS: Final = 10
"""Nobody reads more of one group."""


def triaged(services: Services, spec: SyncSpec, cause: Cause | None = None) -> Iterator[Triaged]:
    """Yield what is proposed about each group of open letters, or about the one of a cause, where raw bytes are kept of it.

    Raises `SpecInvalid` if the spec names a triage that cannot be loaded, and `CodeFailed` if it fails.
    """
    ask = services.triage(spec)
    for group in services.letter_desk.groups(spec.sync):
        if cause is not None and group.cause != cause:
            continue
        letters = services.letter_desk.selected(spec.sync, Redrive(cause=str(group.cause)), _SPECIMENS)
        ward = _ward(services, spec, group, letters)
        if ward.specimens:
            weighed = [_weighed(services, spec, ward, letters[0].shard, proposal) for proposal in _asked(spec, ask, ward)]
            yield Triaged(ward=ward, proposals=tuple(sorted(weighed, key=lambda each: -(each.takes_in or 0))))


def _ward(services: Services, spec: SyncSpec, group: DeadLetterGroup, letters: Sequence[DeadLetter]) -> Ward:
    specimens = (
        Specimen(key=letter.reject.key, message=letter.reject.message, record=record)
        for letter, record in zip(letters, raw_records(services, spec, letters), strict=True)
        if record is not None
    )
    declared = {field.name: field for field in spec.fields}
    return Ward(
        sync=spec.sync,
        cause=group.cause,
        field=declared.get(group.cause.field or ""),
        objects=group.objects,
        specimens=tuple(specimens),
    )


def _asked(spec: SyncSpec, ask: Triage, ward: Ward) -> list[Proposal]:
    """Return what a triage proposes; whatever a team's own one raises, or returns that is no proposal, is its failure."""
    try:
        return [Proposal.model_validate(proposal) for proposal in islice(ask(ward), _PROPOSALS)]
    except SluiceError:
        raise
    except Exception as exc:
        raise CodeFailed(f"triage {spec.triage} failed: {type(exc).__name__}: {exc}") from exc


def _weighed(services: Services, spec: SyncSpec, ward: Ward, shard: ShardKey, proposal: Proposal) -> Weighed:
    """Map the specimens as the spec would have it with the proposal."""
    number = len(ward.specimens)
    if ward.field is None or not proposal.changes:
        return Weighed(proposal=proposal, takes_in=None, of=number)
    try:
        changed = _changed(spec, ward.field, proposal.changes)
        mapper = Mapper(changed, function=services.transform(changed, shard))
        page = page_of([each.record for each in ward.specimens], spec.source.stored_records)
        mapped = mapper.map_chunk([page], "", lambda _: {})
    except (ValidationError, ValueError, Violation) as error:
        return Weighed(proposal=proposal, takes_in=0, of=number, refused=_reason(error))
    return Weighed(proposal=proposal, takes_in=number - len(mapped.rejects), of=number)


def _changed(spec: SyncSpec, field: FieldSpec, changes: Mapping[str, Any]) -> SyncSpec:
    """Return the spec with one field declared otherwise; raise `ValidationError` if no field can be."""
    declared = {name: getattr(field, name) for name in FieldSpec.model_fields if name in field.model_fields_set}
    told = FieldSpec.model_validate({**declared, **changes})
    return spec.model_copy(update={"fields": tuple(told if each.name == field.name else each for each in spec.fields)})


def _reason(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return "; ".join(problem["msg"].removeprefix("Value error, ") for problem in error.errors(include_url=False))
    return str(error)
