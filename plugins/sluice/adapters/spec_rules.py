"""The parts of a sync's YAML in; the rules between them that are broken out. A part that is wrong in itself is left alone."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from sluice.adapters import canary_rules, field_rules, shard_rules, source_rules
from sluice.adapters.spec_draft import Draft, undeclared
from sluice.adapters.spec_problems import suggest
from sluice.adapters.yaml_positions import Path, Problem
from sluice.model.fields import ARRAYS, SYSTEM_COLUMNS, VERSION_TYPES, TypeName

PRESETS: Final = ("@hourly", "@daily", "@weekly", "@monthly", "@quarterly", "@yearly")
_CRON_PARTS: Final = 5
_KEY_TYPES: Final = tuple(name for name in TypeName if name not in ARRAYS | {TypeName.JSON, TypeName.DOUBLE})
_OWN_SCHEMAS: Final = ("sluice_state", "sluice_ledger", "information_schema")


def broken_rules(raw: Mapping[str, Any], file_stem: str, texts: Mapping[Path, str]) -> Iterator[Problem]:
    """Yield each rule between the parts of one sync that does not hold; `texts` are its scalars as written."""
    draft = Draft(raw)
    yield from _name(raw, file_stem)
    yield from _schedule(raw)
    yield from _field_names(draft)
    yield from field_rules.broken_rules(draft, texts)
    yield from _key(draft)
    yield from _version(draft)
    yield from _deleted(draft)
    yield from source_rules.broken_rules(draft)
    yield from shard_rules.broken_rules(draft)
    yield from canary_rules.broken_rules(draft)
    yield from _target(draft)
    yield from _webhooks(raw)
    yield from _expectations(raw, draft)


def _name(raw: Mapping[str, Any], file_stem: str) -> Iterator[Problem]:
    name = raw.get("sync")
    if isinstance(name, str) and name != file_stem:
        yield Problem(("sync",), f"is {name!r}, but the file is {file_stem}.yaml: the two have to be the same")


def _schedule(raw: Mapping[str, Any]) -> Iterator[Problem]:
    schedule = raw.get("schedule")
    if schedule is None and "schedule_zone" in raw:
        yield Problem(("schedule_zone",), "says whose clocks a schedule goes by, and there is no schedule")
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
        if name in SYSTEM_COLUMNS:
            mend = "choose another name" if item.get("path") else f"choose another name, and path: {name}"
            yield Problem(("fields", index, "name"), f"{name!r} is a column that Postgres gives to every table: {mend}")
        if first.setdefault(name, index) != index:
            yield Problem(("fields", index, "name"), f"{name!r} stands twice; the first is fields[{first[name]}]")


def _key(draft: Draft) -> Iterator[Problem]:
    if draft.object is None:
        return
    for index, name in enumerate(draft.object.key):
        path: Path = ("object", "key", index)
        yield from undeclared(draft, path, name)
        if name in draft.object.key[:index]:
            yield Problem(path, f"{name!r} stands twice")
        kind = draft.type_of(name)
        if kind is not None and kind not in _KEY_TYPES:
            yield Problem(path, f"{name!r} is {kind}, which cannot identify an object; allowed: {', '.join(_KEY_TYPES)}")
    for index, item in enumerate(draft.fields):
        if item.get("name") in draft.object.key and item.get("required") is False:
            yield Problem(("fields", index, "required"), "is part of object.key, so it is always required: leave this line out")


def _version(draft: Draft) -> Iterator[Problem]:
    """Check the field that orders the versions of an object."""
    name = draft.object.version if draft.object else None
    if name is None:
        return
    path: Path = ("object", "version")
    yield from undeclared(draft, path, name)
    kind = draft.type_of(name)
    if kind is not None and kind not in VERSION_TYPES:
        yield Problem(path, f"{name!r} is {kind}, which does not order; allowed: {', '.join(sorted(VERSION_TYPES))}")


def _deleted(draft: Draft) -> Iterator[Problem]:
    """Check the field by which a record says that its object is gone."""
    name = draft.object.deleted if draft.object else None
    if draft.object is None or name is None:
        return
    path: Path = ("object", "deleted")
    yield from undeclared(draft, path, name)
    kind = draft.type_of(name)
    if kind is not None and kind is not TypeName.BOOLEAN:
        yield Problem(path, f"{name!r} is {kind}, which does not say whether an object is gone; allowed: {TypeName.BOOLEAN}")
    if name in draft.object.key:
        yield Problem(path, f"{name!r} is part of object.key: an object would become another one by being deleted")


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
            yield from undeclared(draft, ("review", "block", "expect", index, "field"), name)
