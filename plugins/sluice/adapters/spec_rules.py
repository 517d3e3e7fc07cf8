"""The parts of a sync's YAML in; the rules between them that are broken out. A part that is wrong in itself is left alone."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError

from sluice.adapters.spec_problems import suggest
from sluice.adapters.spec_templates import inspect_template
from sluice.adapters.yaml_positions import Path, Problem
from sluice.model.fields import VERSION_TYPES, FieldSpec, TypeName
from sluice.model.spec import ObjectSpec, RestSource, TargetSpec

PRESETS: Final = ("@hourly", "@daily", "@weekly", "@monthly", "@quarterly", "@yearly")
_CRON_PARTS: Final = 5
_KEY_TYPES: Final = tuple(name for name in TypeName if name not in (TypeName.JSON, TypeName.DOUBLE))
_OWN_SCHEMAS: Final = ("sluice_state", "sluice_ledger", "information_schema")

M = TypeVar("M", bound=BaseModel)


class Draft:
    """The parts of a spec that can be read, whatever is wrong with the others."""

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.raw = raw
        source = raw.get("source")
        # There is one kind of source: a slip in its name hides nothing else.
        self.source = _part(RestSource, {**source, "kind": "rest"} if isinstance(source, dict) else source)
        shards = raw.get("shards")
        self.shard_name: str | None = shards.get("name") if isinstance(shards, dict) else None
        self.object = _part(ObjectSpec, raw.get("object"))
        self.target = _part(TargetSpec, raw.get("target"))
        listed = raw.get("fields")
        self.fields: list[Mapping[str, Any]] = (
            [item if isinstance(item, dict) else {} for item in listed] if isinstance(listed, list) else []
        )
        self.declared: dict[str, FieldSpec | None] = {
            item["name"]: _part(FieldSpec, item) for item in reversed(self.fields) if isinstance(item.get("name"), str)
        }

    def type_of(self, field: str) -> TypeName | None:
        """Return the type of a field, if that can be told."""
        found = self.declared.get(field)
        return found.type.name if found else None


def _part(model: type[M], value: Any) -> M | None:
    try:
        return None if value is None else model.model_validate(value)
    except ValidationError:
        return None


def broken_rules(raw: Mapping[str, Any], file_stem: str) -> Iterator[Problem]:
    """Yield each rule between the parts of one sync that does not hold."""
    draft = Draft(raw)
    yield from _name(raw, file_stem)
    yield from _schedule(raw)
    yield from _field_names(draft)
    yield from _key(draft)
    yield from _ordering_fields(draft)
    yield from _deleted(draft)
    yield from _templates(draft)
    yield from _target(draft)
    yield from _webhooks(raw)
    yield from _expectations(raw, draft)


def _name(raw: Mapping[str, Any], file_stem: str) -> Iterator[Problem]:
    name = raw.get("sync")
    if isinstance(name, str) and name != file_stem:
        yield Problem(("sync",), f"is {name!r}, but the file is {file_stem}.yaml: the two have to be the same")


def _schedule(raw: Mapping[str, Any]) -> Iterator[Problem]:
    schedule = raw.get("schedule")
    if not isinstance(schedule, str) or schedule in PRESETS:
        return
    if schedule.startswith("@"):
        yield Problem(
            ("schedule",), f"unknown preset {schedule!r}; {suggest(schedule, PRESETS, 'allowed')}, or a cron expression"
        )
        return

    from croniter import croniter  # type: ignore[import-untyped]  # it has no stubs of its own

    if len(schedule.split()) != _CRON_PARTS or not croniter.is_valid(schedule):
        yield Problem(
            ("schedule",),
            f"{schedule!r} is no cron expression: five parts (minute hour day month weekday), or one of {', '.join(PRESETS)}",
        )


def _field_names(draft: Draft) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for index, item in enumerate(draft.fields):
        name = item.get("name")
        if not isinstance(name, str):
            continue
        if name.startswith("_sluice"):
            yield Problem(("fields", index, "name"), f"{name!r}: names that begin with _sluice are Sluice's own")
        if first.setdefault(name, index) != index:
            yield Problem(("fields", index, "name"), f"{name!r} stands twice; the first is fields[{first[name]}]")


def _undeclared(draft: Draft, path: Path, name: str) -> Iterator[Problem]:
    if draft.declared and name not in draft.declared:
        yield Problem(path, f"no field is named {name!r}; {suggest(name, reversed(draft.declared), 'declared')}")


def _key(draft: Draft) -> Iterator[Problem]:
    if draft.object is None:
        return
    for index, name in enumerate(draft.object.key):
        path: Path = ("object", "key", index)
        yield from _undeclared(draft, path, name)
        if name in draft.object.key[:index]:
            yield Problem(path, f"{name!r} stands twice")
        kind = draft.type_of(name)
        if kind is not None and kind not in _KEY_TYPES:
            yield Problem(path, f"{name!r} is {kind}, which cannot identify an object; allowed: {', '.join(_KEY_TYPES)}")
    for index, item in enumerate(draft.fields):
        if item.get("name") in draft.object.key and item.get("required") is False:
            yield Problem(("fields", index, "required"), "is part of object.key, so it is always required: leave this line out")


def _ordering_fields(draft: Draft) -> Iterator[Problem]:
    """Check the fields that order things: the version of an object, and the watermark."""
    version = draft.object.version if draft.object else None
    watermark = draft.source.watermark if draft.source else None
    for path, name in ((("object", "version"), version), (("source", "watermark"), watermark)):
        if name is None:
            continue
        yield from _undeclared(draft, path, name)
        kind = draft.type_of(name)
        if kind is not None and kind not in VERSION_TYPES:
            allowed = ", ".join(sorted(VERSION_TYPES))
            yield Problem(path, f"{name!r} is {kind}, which does not order; allowed: {allowed}")


def _deleted(draft: Draft) -> Iterator[Problem]:
    """Check the field by which a record says that its object is gone."""
    name = draft.object.deleted if draft.object else None
    if draft.object is None or name is None:
        return
    path: Path = ("object", "deleted")
    yield from _undeclared(draft, path, name)
    kind = draft.type_of(name)
    if kind is not None and kind is not TypeName.BOOLEAN:
        yield Problem(path, f"{name!r} is {kind}, which does not say whether an object is gone; allowed: {TypeName.BOOLEAN}")
    if name in draft.object.key:
        yield Problem(path, f"{name!r} is part of object.key: an object would become another one by being deleted")


def _templates(draft: Draft) -> Iterator[Problem]:
    source = draft.source
    if source is None:
        return
    if source.cursor.parameter in source.query:
        yield Problem(("source", "query", source.cursor.parameter), "is set by source.cursor.parameter: leave it out here")
    shard = draft.shard_name
    known: dict[str, tuple[str, ...]] = {**({"shard": (shard,)} if shard else {}), "window": ("start", "end"), "watermark": ()}
    places: list[tuple[Path, str]] = [(("source", "path"), source.path)]
    places += [(("source", "query", name), value) for name, value in source.query.items()]
    uses: set[str] = set()
    sound = True
    for path, text in places:
        report = inspect_template(text, known)
        sound = sound and not report.problems
        uses |= report.uses
        yield from (Problem(path, problem) for problem in report.problems)
        if "watermark" in report.uses and source.watermark is None:
            yield Problem(path, "uses {{ watermark }}, but source.watermark does not say which field that is")
    if not sound:
        return
    if source.watermark is not None and "watermark" not in uses:
        yield Problem(("source", "watermark"), "no parameter of source.query uses {{ watermark }}: every run would fetch all")
    if shard and f"shard.{shard}" not in uses:
        yield Problem(
            ("shards", "name"), f"neither source.path nor source.query uses {{{{ shard.{shard} }}}}: all shards are alike"
        )


def _target(draft: Draft) -> Iterator[Problem]:
    if draft.target is None:
        return
    schema = draft.target.table.split(".")[0]
    if schema in _OWN_SCHEMAS or schema.startswith("pg_"):
        yield Problem(("target", "table"), f"the schema {schema} is not for published tables")
    if draft.target.form == "history" and draft.target.deletes == "hard":
        yield Problem(("target", "deletes"), "nothing is ever removed from a history; allowed: soft (ends the version), ignore")


def _webhooks(raw: Mapping[str, Any]) -> Iterator[Problem]:
    listed = raw.get("webhooks")
    first: dict[Any, int] = {}
    for index, item in enumerate(listed if isinstance(listed, list) else []):
        name = item.get("name") if isinstance(item, dict) else None
        if isinstance(name, str) and first.setdefault(name, index) != index:
            yield Problem(("webhooks", index, "name"), f"{name!r} stands twice; the first is webhooks[{first[name]}]")


def _expectations(raw: Mapping[str, Any], draft: Draft) -> Iterator[Problem]:
    review = raw.get("review")
    block = review.get("block") if isinstance(review, dict) else None
    listed = block.get("expect") if isinstance(block, dict) else None
    for index, item in enumerate(listed if isinstance(listed, list) else []):
        name = item.get("field") if isinstance(item, dict) else None
        if isinstance(name, str):
            yield from _undeclared(draft, ("review", "block", "expect", index, "field"), name)
