"""The draft of a sync in; the rules of the requests to its supplier that are broken out."""

from collections.abc import Iterator

from sluice.adapters.spec_draft import Draft, known_names
from sluice.adapters.spec_templates import inspect_template
from sluice.adapters.yaml_positions import Path, Problem
from sluice.model.header_names import misnamed
from sluice.model.source import RestSource


def broken_rules(draft: Draft) -> Iterator[Problem]:
    """Yield each rule that does not hold. A part that is wrong in itself is left alone."""
    if isinstance(draft.source, RestSource):
        for name in draft.source.headers:
            if (problem := misnamed(name)) is not None:
                yield Problem(("source", "headers", name), problem)
        yield from _details(draft, draft.source)


def _details(draft: Draft, source: RestSource) -> Iterator[Problem]:
    """Check the templates that see a listed record as well."""
    uses: set[str] = set()
    sound = True
    for place, text in source.detail_templates():
        path: Path = ("source", *place)
        report = inspect_template(text, {"record": None, **known_names(draft)})
        sound = sound and not report.problems
        uses |= {name.partition(".")[0] for name in report.uses}
        yield from (Problem(path, problem) for problem in report.problems)
    if source.detail is not None and sound and "record" not in uses:
        yield Problem(("source", "detail", "path"), "uses no {{ record }}, nor does the query: all details are alike")
