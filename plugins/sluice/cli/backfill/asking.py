"""A spec and what a person wrote in; what is asked of each span of a backfill, or why none makes sense, out."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from sluice.cli.backfill.plan import Asked
from sluice.cli.backfill.spans import interval_from, scheduled_spans, stepped_spans
from sluice.errors import UsageInvalid
from sluice.model.backfill import AirflowBackfill, Reprocess
from sluice.model.base import ShardKey
from sluice.model.run import Mode, Origin, RunRequest, Window
from sluice.model.schedule import Schedule
from sluice.model.spec import SyncSpec

_TO_ADD: Final[Mapping[str, str]] = {
    "rest": 'a parameter such as `updated_since: "{{ window.start or watermark }}"`, and one for `{{ window.end }}`',
    "sql": "a `watermark` of dates or instants, or `{{ window.start }}` and `{{ window.end }}` in the query",
    "files": "`{{ window.start }}` in the names of the files",
    "code": "a function that uses `window`",
}


def asked_of(spec: SyncSpec, request: RunRequest, within: Window, step: timedelta | None, reprocess: Reprocess) -> Asked:
    """Return what is asked for; raise `UsageInvalid` where each run would bring the same, or there is nothing to cut by."""
    _require_window(spec, request)
    if step is None and spec.schedule is None:
        raise UsageInvalid(f"{spec.sync} has no schedule whose intervals could be gone over: say how long they are: --step 1d")
    scheduled = [] if spec.schedule is None else _or_none(spec.timetable, within)
    windows = stepped_spans(step, within) if step is not None else scheduled_spans(spec.timetable, within)
    return Asked(
        request=request,
        windows=tuple(windows),
        reprocess=reprocess,
        is_scheduled=request.mode is Mode.FULL and windows == scheduled,
    )


def asked_again(spec: SyncSpec, backfill: AirflowBackfill) -> Asked:
    """Return what a backfill that Airflow has on its books was asked for."""
    if spec.schedule is None:
        raise UsageInvalid(f"{spec.sync} has no schedule any more: say which time to look at with --from, --to and --step")
    within = Window(start=backfill.first, end=interval_from(spec.timetable, backfill.last).end)
    shards = tuple(ShardKey(str(key)) for key in backfill.conf.get("shards") or ())
    request = RunRequest(sync=spec.sync, mode=Mode.FULL, shards=shards, origin=Origin())
    return asked_of(spec, request, within, None, Reprocess.NONE)


def without_unfinished(asked: Asked, now: datetime) -> tuple[Asked, int]:
    """Return what is asked without the spans that are not over yet, and how many those are."""
    over = tuple(window for window in asked.windows if window.end <= now)
    if not over:
        raise UsageInvalid("none of these spans is over yet: the schedule takes them when they are")
    return replace(asked, windows=over), len(asked.windows) - len(over)


def _require_window(spec: SyncSpec, request: RunRequest) -> None:
    if request.mode is Mode.FULL and not spec.uses_window:
        raise UsageInvalid(
            f"nothing that {spec.sync} asks its supplier depends on a window, so each run would bring the same. "
            f"Add to `source:` in its spec {_TO_ADD[spec.source.kind]}; see docs/backfill.md"
        )


def _or_none(schedule: Schedule, within: Window) -> list[Window]:
    try:
        return scheduled_spans(schedule, within)
    except UsageInvalid:
        return []
