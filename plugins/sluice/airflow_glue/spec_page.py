"""A spec in, the Markdown page that Airflow shows as the DAG's documentation out."""

from sluice.airflow_glue.packet import markdown_text
from sluice.model.scalars import spell_duration
from sluice.model.spec import SyncSpec
from sluice.model.stage import StagePolicy


def spec_page(spec: SyncSpec, policy: StagePolicy) -> str:
    """Return the spec, rendered for reading."""
    silence = "rejected" if spec.review.on_timeout == "reject" else "expired"
    shards = "one, `all`" if spec.sharding is None else markdown_text(str(spec.sharding))
    review, limits = spec.review, spec.review.auto_approve
    facts = {
        "stage": f"{spec.stage}, tenant {spec.tenant}, version {spec.version}{_canary(spec)}",
        "source": f"{spec.source.kind}: {markdown_text(str(spec.source))}",
        "shards": shards,
        "scheduled": "no, it runs when asked to" if spec.schedule is None else f"`{spec.schedule}`, {spec.schedule_zone}",
        "incremental": _incremental(spec),
        "object": f"key {_names(spec.object.key)}"
        + (f", version `{spec.object.version}`" if spec.object.version else "")
        + (f", gone where `{spec.object.deleted}`" if spec.object.deleted else ""),
        "target": f"`{spec.target.table}` of connection `{spec.target.connection}`, form {spec.target.form}, "
        f"deletes {spec.target.deletes}, evolution {spec.target.evolution}",
        "approved by policy": f"created {limits.created}, changed {limits.changed}, deleted {limits.deleted}, "
        f"rejected {limits.rejected}, seen at least {(limits.seen_at_least * 100).normalize():f}%, drift {limits.drift:g}; "
        f"first load: {review.first_load}{'; but every change is looked at' if review.always else ''}",
        "blocked": f"deleted above {review.block.deleted}, or nothing delivered",
        "who decides": markdown_text(", ".join(review.approvers)) or "whoever may act on this DAG",
        "without an answer": f"{silence} after {spell_duration(review.timeout)}",
        "parallel": f"{policy.max_parallel_shards} shards of the stage at a time",
    }
    return "\n".join(
        [
            f"# {markdown_text(spec.sync)}",
            "",
            markdown_text(spec.description),
            "",
            "| | |",
            "| --- | --- |",
            *(f"| {name} | {value} |" for name, value in facts.items()),
            "",
            "| column | type | from | required | |",
            "| --- | --- | --- | --- | --- |",
            *(
                f"| `{field.name}` | {field.type.sql} | {markdown_text(field.origin)} | {'yes' if field.required else ''} "
                f"| {markdown_text(field.description)} |"
                for field in spec.fields
            ),
            "",
            "A failed shard: clear its mapped task `shards.fetch` with downstream. It goes on from its last checkpoint,",
            "and the run is reviewed and published again.",
        ]
    )


def _canary(spec: SyncSpec) -> str:
    if spec.canary is None:
        return ""
    return f"; version {spec.canary.version} for {(spec.canary.share * 100).normalize():f}% of the shards"


def _incremental(spec: SyncSpec) -> str:
    if spec.watermark is not None:
        return f"by {_names(spec.watermark.fields)}"
    return "by the files' names and ETags" if spec.can_increment else "no, every run is full"


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)
