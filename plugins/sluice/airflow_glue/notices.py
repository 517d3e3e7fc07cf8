"""A notice in, what notifiers can say of it out: every value is text, so that templates need no more than its name."""

from html import escape
from typing import Final

from sluice.airflow_glue.mending import what_to_mend
from sluice.model.airflow_names import review_url, run_url
from sluice.model.alert import Tidings
from sluice.model.lifecycle import ShardStatus
from sluice.model.notice import Notice
from sluice.model.shard import some_of
from sluice.packet.words import spelled
from sluice.ports import Services

_LONGEST: Final = 4000
"""Characters of a message: some receivers take no more."""


def notice_fields(services: Services, notice: Notice) -> dict[str, str]:
    """Return what templates know as `alert`."""
    run, incident = notice.run, notice.incident
    fields = {
        "kind": str(notice.tidings),
        "key": notice.key,
        "title": _title(notice),
        "sync": run.sync,
        "stage": run.stage,
        "run": run.id,
        "status": str(run.status),
        "runs": str(incident.runs) if incident is not None else "",
        "shards": _failed_shards(services, notice),
        "error": f"{run.failure.error}: {run.failure.message}" if run.failure is not None else "",
        "todo": _todo(services, notice),
        "url": _url(services, notice) or "",
    }
    # What a supplier has said may be among it: whatever acts unseen is spelled out.
    shown = {name: "\n".join(spelled(line, _LONGEST) for line in text.splitlines()) for name, text in fields.items()}
    message = "\n".join(filter(None, (shown["title"], shown["todo"], shown["url"])))[:_LONGEST]
    return {**shown, "message": message, "html": f"<pre>{escape(message)}</pre>"}


def _title(notice: Notice) -> str:
    sync, incident = notice.run.sync, notice.incident
    match notice.tidings:
        case Tidings.REVIEW:
            return f"{sync}: a review waits for a person"
        case Tidings.RECOVERED:
            return f"{sync}: recovered"
        case Tidings.WARN | Tidings.PAGE:
            runs = incident.runs if incident is not None else 1
            return f"{sync}: {f'{runs} runs in a row have' if runs > 1 else 'a run has'} not come through"


def _failed_shards(services: Services, notice: Notice) -> str:
    """Return which shards are missing; of thousands no more than a person reads."""
    shards = services.shards.of(notice.run.id) if notice.tidings in (Tidings.WARN, Tidings.PAGE) else []
    return some_of([shard.key for shard in shards if shard.status is ShardStatus.FAILED])


def _todo(services: Services, notice: Notice) -> str:
    match notice.tidings:
        case Tidings.REVIEW:
            review = notice.review
            return "\n".join(review.reasons) if review is not None else ""
        case Tidings.RECOVERED:
            return f"run {notice.run.id} has succeeded: there is nothing to do"
        case Tidings.WARN | Tidings.PAGE:
            return what_to_mend(services, notice.run)


def _url(services: Services, notice: Notice) -> str | None:
    if services.airflow_url is None:
        return None
    if notice.review is not None:
        return review_url(services.airflow_url, notice.run, notice.review)
    return run_url(services.airflow_url, notice.run)
