"""The parts of a sync's YAML in; each as far as it can be read out, whatever is wrong with the others."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from sluice.adapters.spec_problems import suggest
from sluice.adapters.yaml_positions import Path, Problem
from sluice.model.fields import FieldSpec, TypeName
from sluice.model.sharding import ShardingSpec
from sluice.model.source import SourceSpec
from sluice.model.spec import ObjectSpec, TargetSpec

M = TypeVar("M", bound=BaseModel)

_SOURCE: Final[TypeAdapter[SourceSpec]] = TypeAdapter(SourceSpec)
_SHARDING: Final[TypeAdapter[ShardingSpec]] = TypeAdapter(ShardingSpec)


class Draft:
    """The parts of a spec that can be read, whatever is wrong with the others."""

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.raw = raw
        self.source: SourceSpec | None = _arm(_SOURCE, raw.get("source"))
        self.shards: ShardingSpec | None = _arm(_SHARDING, raw.get("shards"))
        self.object = _part(ObjectSpec, raw.get("object"))
        self.target = _part(TargetSpec, raw.get("target"))
        listed = raw.get("fields")
        self.fields: list[Mapping[str, Any]] = (
            [item if isinstance(item, dict) else {} for item in listed] if isinstance(listed, list) else []
        )
        self.specs = [_part(FieldSpec, item) for item in self.fields]
        self.declared: dict[str, FieldSpec | None] = {
            item["name"]: spec
            for item, spec in zip(reversed(self.fields), reversed(self.specs), strict=True)
            if isinstance(item.get("name"), str)
        }

    @property
    def shard_params(self) -> tuple[str, ...]:
        """What templates see below `shard`; of shards that cannot be read, the name at least."""
        if self.shards is not None:
            return self.shards.params
        shards = self.raw.get("shards")
        name = shards.get("name") if isinstance(shards, dict) else None
        return (name,) if isinstance(name, str) else ()

    def type_of(self, field: str) -> TypeName | None:
        """Return the type of a field, if that can be told."""
        found = self.declared.get(field)
        return found.type.name if found else None


def known_names(draft: Draft) -> dict[str, tuple[str, ...]]:
    """Return the names that templates of the source may use, with their parts."""
    known: dict[str, tuple[str, ...]] = {"window": ("start", "end"), "watermark": (), "until": ()}
    return {"shard": draft.shard_params, **known} if draft.shard_params else known


def undeclared(draft: Draft, path: Path, name: str) -> Iterator[Problem]:
    """Yield the problem that a field is not declared, if it is not."""
    if draft.declared and name not in draft.declared:
        yield Problem(path, f"no field is named {name!r}; {suggest(name, reversed(draft.declared), 'declared')}")


def _part(model: type[M], value: Any) -> M | None:
    try:
        return None if value is None else model.model_validate(value)
    except ValidationError:
        return None


def _arm(union: TypeAdapter[Any], value: Any) -> Any:
    try:
        return None if value is None else union.validate_python(value)
    except ValidationError:
        return None
