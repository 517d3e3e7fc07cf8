"""What a person decides by in Airflow: Markdown, in which nobody else's words can pass for markup."""

from typing import Any

import pytest
from markdown_it import MarkdownIt

from sluice.adapters.spec_files import SpecFiles
from sluice.airflow_glue.packet import markdown_text, review_body, review_subject
from sluice.airflow_glue.run_ids import run_id_of
from sluice.errors import DecisionRefused
from sluice.flow.gate import require_allowed
from sluice.model.airflow_names import ANSWERS
from sluice.model.artifact import ArtifactKind
from sluice.model.evidence import Drift, Measure
from sluice.model.ledger import Outcome
from sluice.model.lifecycle import Verdict
from sluice.model.review import Figures
from tests.support.evidence import some_evidence
from tests.support.nouns import a_decision, a_pointer, a_review, a_run
from tests.support.servers import PROJECT
from tests.unit.flow.workshop import Workshop

FIGURES = Figures(seen=1234, unchanged=1000, live_before=1300, outcomes={Outcome.CREATED: 34, Outcome.DELETED: 5})
SPEC = SpecFiles(PROJECT / "include").sync("hotels")
AIRFLOW = "https://airflow.example/af"
HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "a | b",
    "[click](http://x.example)",
    "![x](http://x.example/y.png)",
    "**bold** `code` ``two``",
    "line\n# heading\n\n- item",
    "&lt;b&gt;",
    "http://x.example/ and www.x.example",
    "`",
    "\\`\\",
    "~~gone~~ <!--",
    "\u202eevil\x00",
    "x" * 10_000,
    "`" * 200,
    "\u202e" * 200,
    " ",
]


def body(**changes: Any) -> str:
    """Return the body of the question about a review."""
    evidence = changes.pop("evidence", some_evidence())
    url = changes.pop("airflow_url", AIRFLOW)
    return review_body(SPEC, a_run(), a_review("run.digest", **({"figures": FIGURES} | changes)), evidence, url)


def marks(text: str) -> list[tuple[str, str]]:
    """Return what a reader of Markdown takes for markup in it, with the addresses of links."""
    markdown = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    tokens = [token for block in markdown.parse(text) for token in (block, *(block.children or []))]
    return [(token.type, str(token.attrs.get("href", ""))) for token in tokens if token.type not in {"inline", "text"}]


def test_the_question_names_what_would_change() -> None:
    """The headline has the sync, the number of rows and the table; a block is said there."""
    assert review_subject(SPEC, a_review("r", figures=FIGURES)) == "hotels: change 39 rows of public.hotels?"
    assert review_subject(SPEC, a_review("r", verdict=Verdict.BLOCKED)).startswith("hotels, blocked: ")


def test_the_body_has_reasons_figures_and_where_to_look() -> None:
    """Everything a decision needs, on one page, with links to all there is."""
    figures = FIGURES.model_copy(update={"shards_failed": 2})
    report = a_pointer(kind=ArtifactKind.REPORT)
    text = body(figures=figures, reasons=("5 of 1,300 objects deleted",), report=report)
    assert "- 5 of 1,300 objects deleted" in text
    assert "| created | 34 |" in text
    assert "| seen | 1,234 |" in text
    assert "| shards failed | 2 |" in text
    assert "sluice review show run.digest" in text
    assert all(label in text for label in ANSWERS.values())
    page = f"{AIRFLOW}/sluice/dags/sluice_hotels/reviews/run.digest"
    assert [href for kind, href in marks(text) if kind == "link_open"] == [f"{page}/packet", page]


def test_a_refusal_is_read_to_its_end() -> None:
    """What to answer instead comes last, after a review with the longest name there is."""
    workshop = Workshop()
    figures = Figures(seen=0, unchanged=0, live_before=1_000_000, outcomes={Outcome.DELETED: 1_000_000})
    run = workshop.begin()
    review = a_review(f"{run_id_of('sluice_hotels', 'x' * 250)}.31ea43f1", run=run.id, figures=figures)
    with pytest.raises(DecisionRefused) as refused:
        require_allowed(workshop.services, workshop.services.reviews.save(review, run), a_decision())
    shown = markdown_text(refused.value.message).replace("\\", "")
    assert shown.endswith("approve with deletes_at_most 1000000 or more, approve without deletions, or reject")


def test_evidence_is_told_in_short() -> None:
    """The fields that change most, what has drifted too far, and a few objects; how many there are besides is told."""
    text = body(evidence=some_evidence(drifts=tuple(_drift(f"f{number}") for number in range(7))))
    assert "- `name` of 2 objects, such as `Grand Hotel`: `the Grand Hotel` → `our Grand Hotel`" in text
    assert "- `f4`: population stability index 0.400" in text
    assert "- `f5`" not in text
    assert "- and 2 more fields" in text
    assert "**Created**, 1 of 34" in text
    assert "**The table itself would change**\n\n- comment on column name is 'Grand Hotel' \\-\\- its desc" in text
    assert "- `Grand Hotel`: `name` `our Grand Hotel`" in text
    assert "**Dated after the fetch**: 3, first: `Grand Hotel` `Grand Hotel`" in text


def _drift(field: str) -> Drift:
    return Drift(field=field, measure=Measure.STABILITY_INDEX, value=0.4)


def test_drift_within_the_limit_is_not_told() -> None:
    """What policy approves by itself needs nobody."""
    assert "Drift" not in body(evidence=some_evidence(drifts=()))
    within = Drift(field="a", measure=Measure.STABILITY_INDEX, value=0.25)
    assert "Drift" not in body(evidence=some_evidence(drifts=(within,)))


def test_without_evidence_or_an_address_the_figures_remain() -> None:
    """A review of an old release, or one whose evidence was lost, can be decided as well."""
    text = body(evidence=None, airflow_url=None)
    assert "| created | 34 |" in text
    assert "the tab *Sluice* of this DAG run" in text
    assert not [kind for kind, _ in marks(text) if kind == "link_open"]


@pytest.mark.parametrize(
    ("deleted", "said"),
    [
        (0, "*Approve* publishes all of it."),
        (5, "with 5 deletions. `deletes_at_most` may say how many at most"),
        (1299, "with 1,299 deletions: so many need a number in `deletes_at_most`, at least 1,299"),
    ],
)
def test_the_number_of_deletions_is_told_with_how_to_let_them_through(deleted: int, said: str) -> None:
    """So that nobody learns it from a refusal."""
    figures = FIGURES.model_copy(update={"outcomes": {Outcome.DELETED: deleted}})
    assert said in body(figures=figures)


@pytest.mark.parametrize("words", HOSTILE)
def test_other_people_s_words_are_no_markup(words: str) -> None:
    """Whatever stands in values, keys and reasons, the marks are those of harmless words, and there is room for all of it."""
    text = body(evidence=some_evidence(words), reasons=(f"because of {words}",) * 20)
    assert marks(text) == marks(body(reasons=("harmless",) * 20))
    assert all(char.isprintable() or char == "\n" for char in text)
    assert len(text) < 8_000


@pytest.mark.parametrize("words", HOSTILE[:-1])
def test_our_sentences_with_their_words_are_one_line_of_text(words: str) -> None:
    """Each mark that means something to Markdown or HTML is escaped."""
    assert "\n" not in markdown_text(words)
    assert marks(markdown_text(words)) == [("paragraph_open", ""), ("paragraph_close", "")]
