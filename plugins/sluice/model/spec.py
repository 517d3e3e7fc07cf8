"""The spec of a sync, as declared in one YAML file: what to fetch, how to read it, when to trust it, where it goes."""

import re
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field

from sluice.errors import UsageInvalid
from sluice.model.auth import CODE_PATTERN
from sluice.model.base import Frozen
from sluice.model.canary import HIGHEST_VERSION, CanarySpec
from sluice.model.connections import TARGET
from sluice.model.fields import FieldSpec
from sluice.model.scalars import Duration, LimitValue, Share, ZoneName
from sluice.model.schedule import Schedule
from sluice.model.sharding import NAME_PATTERN, FileShards, ListedShards, ShardingSpec, WindowShards
from sluice.model.source import PATH_PATTERN, SourceSpec, SqlSource
from sluice.model.transform import TransformSpec
from sluice.model.watermark import WATERMARK_TYPES, WatermarkSpec, WatermarkType

STAGE_PATTERN: Final = r"^[a-z][a-z0-9-]{0,62}$"


class ObjectSpec(Frozen):
    """What identifies an object, and what orders its versions."""

    key: tuple[str, ...] = Field(min_length=1, description="the fields of the natural key")
    version: str | None = Field(default=None, description="the field that orders versions; older never overwrites newer")
    deleted: str | None = Field(default=None, description="the boolean field by which a record says that its object is gone")


class AutoApprove(Frozen):
    """What policy may approve by itself. Shares are of the objects the target holds; `rejected`: of those seen."""

    seen_at_least: Share = Field(
        default="80%", validate_default=True, description="how much of what the target holds a full run has to see"
    )
    drift: float = Field(
        default=0.25,
        gt=0,
        description="how far a field may drift from the last publication: see docs/review.md",
    )

    created: LimitValue = Field(default="20%", validate_default=True, description="how many objects may be new")
    changed: LimitValue = Field(default="20%", validate_default=True, description="how many objects may change, or come back")
    deleted: LimitValue = Field(default=0, validate_default=True, description="how many objects may be deleted")
    rejected: LimitValue = Field(default="1%", validate_default=True, description="how many objects may be rejected")


class Expectation(Frozen):
    """What has to hold of a field in the table as it would be."""

    field: str = Field(min_length=1, description="the field")
    nulls_at_most: LimitValue = Field(description="how many rows, or which share of them, may have no value")


class Block(Frozen):
    """What blocks a review until a person has looked. Nothing received always does."""

    deleted: LimitValue = Field(default="20%", validate_default=True, description="more deletions than this block")
    expect: tuple[Expectation, ...] = Field(default=(), description="hard expectations: what fails one is not published unseen")


class ReviewPolicy(Frozen):
    """When a run may publish without a person."""

    always: bool = Field(default=False, description="whether a person looks at every run that would change something")
    first_load: Literal["auto-approve", "needs-human"] = Field(
        default="needs-human", description="whether the first load of a table needs a person"
    )
    auto_approve: AutoApprove = AutoApprove()
    block: Block = Block()
    expectations: str | None = Field(
        default=None,
        pattern=NAME_PATTERN,
        exclude_if=lambda suite: suite is None,
        description="the suite in include/expectations that is held against the table as it would be",
    )
    approvers: tuple[Annotated[str, Field(min_length=1, max_length=200)], ...] = Field(
        default=(), description="the users who may answer; empty: whoever may act on the DAG"
    )
    timeout: Duration = Field(default="24h", validate_default=True, description="how long an answer is waited for")
    on_timeout: Literal["expire", "reject"] = Field(
        default="expire", description="what becomes of a review nobody answers: its run fails, or ends cancelled"
    )


def _qualified(table: str) -> str:
    if not re.fullmatch(r"([a-z_][a-z0-9_]{0,62}\.)?[a-z_][a-z0-9_]{0,62}", table):
        raise ValueError("a table is `name` or `schema.name`, in lower case")
    return table if "." in table else f"public.{table}"


class TargetSpec(Frozen):
    """The Postgres table that is kept in step."""

    connection: str = Field(default=TARGET, min_length=1, description="Airflow connection of type postgres")
    table: Annotated[str, AfterValidator(_qualified)] = Field(description="`schema.table`; without a schema: public")
    form: Literal["upsert", "history"] = Field(
        default="upsert", description="one row for each object, or one for each of its versions with the time it was valid"
    )
    deletes: Literal["soft", "hard", "ignore"] = Field(
        default="soft", description="what a deletion does to the row: set `_sluice_deleted_at`, remove it, or nothing"
    )
    evolution: Literal["freeze", "add", "widen"] = Field(
        default="add", description="what a publication may do to the table: nothing, add columns, or widen types, too"
    )


class WebhookSpec(Frozen):
    """Somebody who is told of each publication, with one POST request."""

    name: str = Field(pattern=NAME_PATTERN, description="what it is called in logs and in `sluice show`")
    connection: str = Field(
        min_length=1, description="Airflow connection of type http: scheme, host, port, login, extra headers"
    )
    path: str = Field(pattern=PATH_PATTERN, description="path below the connection's host")


class SyncSpec(Frozen):
    """One declared flow: one entity, one source, one target table."""

    sync: str = Field(pattern=NAME_PATTERN, description="its name, and that of its file; its DAG is `sluice_` and the name")
    stage: str = Field(pattern=STAGE_PATTERN, description="one of include/stages.yaml, whose policy governs its runs")
    tenant: str = Field(default="default", pattern=STAGE_PATTERN, description="for whom it runs: a part of every request key")
    version: int = Field(
        default=1,
        ge=1,
        le=HIGHEST_VERSION,
        strict=True,
        description="of the transformation: raise it when the meaning of fields changes",
    )
    schedule: str | None = Field(default=None, description="cron expression, or a preset such as @daily")
    schedule_zone: ZoneName = Field(
        default="UTC", exclude_if=lambda zone: zone == "UTC", description="the time zone by whose clocks the schedule goes"
    )
    description: str = Field(default="", description="for people: the table's comment, and the head of the DAG's page")
    source: SourceSpec = Field(description="where records come from")
    shards: ShardingSpec | None = Field(default=None, description="absent: one shard, `all`, or one for each file")
    object: ObjectSpec
    fields: tuple[FieldSpec, ...] = Field(min_length=1, description="the columns of the table")
    transform: TransformSpec | None = Field(
        default=None,
        exclude_if=lambda transform: transform is None,
        description="a function of the team's, for what fields cannot say",
    )
    canary: CanarySpec | None = Field(
        default=None,
        exclude_if=lambda canary: canary is None,
        description="another version of the transformation, for a share of the shards",
    )
    triage: str | None = Field(
        default=None,
        pattern=CODE_PATTERN,
        exclude_if=lambda triage: triage is None,
        description="a function of the team's that says what may be the matter with dead letters; absent: rules that ship",
    )
    review: ReviewPolicy = ReviewPolicy()
    target: TargetSpec
    webhooks: tuple[WebhookSpec, ...] = Field(default=(), description="who is told of each publication")

    def field(self, name: str) -> FieldSpec:
        """Return the field of that name; raise `KeyError` if there is none."""
        return {field.name: field for field in self.fields}[name]

    @property
    def versions(self) -> tuple[int, ...]:
        """The versions of the transformation that it declares."""
        return (self.version,) if self.canary is None else (self.version, self.canary.version)

    def as_version(self, version: int) -> "SyncSpec":
        """Return what a version of the transformation means: a spec of it alone; raise `UsageInvalid` if none declares it."""
        canary = self.canary
        if version == self.version:
            return self if canary is None else self.model_copy(update={"canary": None})
        if canary is None or version != canary.version:
            also = "and no canary" if canary is None else f"and its canary is version {canary.version}"
            raise UsageInvalid(f"{self.sync} is version {self.version}, {also}: there is no version {version}")
        meant: dict[str, object] = {"version": version, "canary": None}
        if canary.transform is not None:
            meant["transform"] = canary.transform
        if canary.fields is not None:
            declared = {field.name: field for field in canary.fields}
            # Rows are hashed in the order of the fields: it is the spec's, whichever version made them.
            meant["fields"] = tuple(declared[field.name] for field in self.fields)
        return self.model_copy(update=meant)

    @property
    def timetable(self) -> Schedule:
        """When it runs by itself."""
        return Schedule(cron=self.schedule, zone=self.schedule_zone)

    @property
    def sharding(self) -> ShardingSpec | None:
        """How the sync is cut into shards; None: it is not."""
        return FileShards(kind="files") if self.shards is None and self.source.kind == "files" else self.shards

    @property
    def shards_come_with_time(self) -> bool:
        """Whether each new file, or each new span of time, is a new shard."""
        return self.sharding is not None and self.sharding.kind in ("files", "windows")

    @property
    def watermark(self) -> WatermarkSpec | None:
        """What makes the sync incremental; None: nothing, or files, whose names and ETags do."""
        return self.source.watermark

    @property
    def uses_window(self) -> bool:
        """Whether a window shapes what is asked of the supplier."""
        match self.shards:
            case WindowShards():
                return True
            case ListedShards(source=lister) if lister.uses_window:
                return True
            case _:
                return self.source.uses_window or self._has_dated_rows

    @property
    def _has_dated_rows(self) -> bool:
        """Whether a window says which rows of a table are meant: those of its span by a watermark that is dates or instants."""
        if self.watermark is None or not isinstance(self.source, SqlSource) or self.source.table is None:
            return False
        first = self.field(self.watermark.fields[0])
        order = self.watermark.type or WATERMARK_TYPES[first.type.name]
        return first.format is None and order in (WatermarkType.INSTANT, WatermarkType.DATE)

    @property
    def tells_absence(self) -> bool:
        """Whether an object is gone that no shard of a full run delivers.

        Not by spans of time: an object whose time changes while the run goes on is in none of them.
        """
        return not isinstance(self.shards, WindowShards)

    @property
    def can_increment(self) -> bool:
        """Whether the source can be asked for what is new."""
        return self.source.watermark is not None or self.source.kind == "files"
