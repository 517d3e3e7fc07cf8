"""A review and its evidence in; the packet, one HTML file that needs nothing beside it, or the part of a web page out.

Nothing of it depends on the time or the place where it is made: the same review has the same bytes. There is no script, no
style attribute and no address in it but the DAG run's. Every word of the supplier is escaped, spelled out and bounded.
"""

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from sluice.model.evidence import Evidence
from sluice.model.review import Review
from sluice.model.run import Run
from sluice.model.shard import Shard, some_of
from sluice.model.spec import SyncSpec
from sluice.packet.view import MOST_VALUES, view_of
from sluice.packet.words import MEANINGS, VERDICTS, counts_of, marked, sentence, spelled, version_speller

_MOST_FAILED: Final = 50
"""Failed shards named in the packet."""


@cache
def style() -> str:
    """Return the sheet that packet and web pages share."""
    return files(__package__).joinpath("style.css").read_text(encoding="utf-8")


def packet(
    spec: SyncSpec, run: Run, review: Review, evidence: Evidence, *, failed: Sequence[Shard], dag_run_url: str | None
) -> bytes:
    """Return the packet of a review that has not been decided yet; `failed` are the shards that it leaves out."""
    text = (
        _templates()
        .get_template("packet.html")
        .render(
            _evidence_context(spec, review, evidence),
            style=Markup(style()),  # noqa: S704 - our own file
            spec=spec,
            run=run,
            review=review,
            figures=review.figures,
            verdicts=VERDICTS,
            counts=counts_of(review.figures),
            failed=failed,
            most_failed=_MOST_FAILED,
            facts=_facts(spec, run, review, evidence),
            dag_run_url=dag_run_url,
        )
    )
    return text.encode()


def evidence_part(spec: SyncSpec, review: Review, evidence: Evidence) -> Markup:
    """Return the evidence as a part of a page whose sheet holds `style()`."""
    text = _templates().get_template("evidence.html").render(_evidence_context(spec, review, evidence))
    return Markup(text)  # noqa: S704 - a template with autoescape made it


@cache
def _templates() -> Environment:
    templates = Environment(
        loader=PackageLoader(__package__), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    templates.filters["spelled"] = spelled
    templates.filters["sentence"] = sentence
    templates.filters["marked"] = marked
    templates.filters["begun"] = lambda text: text[:1].upper() + text[1:]
    templates.filters["count"] = "{:,}".format
    return templates


def _evidence_context(spec: SyncSpec, review: Review, evidence: Evidence) -> dict[str, Any]:
    return {
        "view": view_of(spec, review.figures, evidence),
        "meanings": MEANINGS,
        "most_values": MOST_VALUES,
        "spell_version": version_speller(spec),
    }


def _versions(run: Run, evidence: Evidence) -> str:
    """Say which version of the transformation has made the rows; of several, how many each, and how much that would change."""
    if not evidence.versions:
        return str(run.transformer_version)
    return "; ".join(
        f"{made.version}: {made.shards:,} shards, {made.objects:,} objects, {made.changed_share:.1%} of those known changed"
        for made in evidence.versions
    )


def _facts(spec: SyncSpec, run: Run, review: Review, evidence: Evidence) -> list[tuple[str, str]]:
    window = f"{run.window.start.isoformat()} to {run.window.end.isoformat()}" if run.window else "none"
    return [
        ("sync", spec.sync),
        ("stage", run.stage),
        ("tenant", run.tenant),
        ("target", f"{spec.target.table}, through connection {spec.target.connection}"),
        ("run", run.id),
        ("mode", run.mode.value),
        ("window", window),
        ("shards", spelled(some_of(run.shards)) if run.shards else "all"),
        ("spec", run.spec_hash),
        ("transformer version", _versions(run, evidence)),
        ("review", review.id),
        ("digest", review.digest),
        ("diff", review.diff.sha256),
        *([("evidence", review.evidence.sha256)] if review.evidence else []),
    ]
