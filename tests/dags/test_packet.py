"""What a person decides by: figures and reasons in Markdown, in which nobody else's words can pass for markup."""

import pytest

from sluice.adapters.spec_files import SpecFiles
from sluice.airflow_glue.packet import markdown_text, review_body, review_subject
from sluice.model.airflow_names import ANSWERS
from sluice.model.ledger import Outcome
from sluice.model.lifecycle import Verdict
from sluice.model.review import Figures
from tests.support.nouns import a_review, a_run
from tests.support.servers import PROJECT

FIGURES = Figures(seen=1234, unchanged=1000, live_before=1300, outcomes={Outcome.CREATED: 34, Outcome.DELETED: 5})


def test_the_question_names_what_would_change() -> None:
    """The headline has the sync, the number of rows and the table; a block is said there."""
    spec = SpecFiles(PROJECT / "include").sync("hotels")
    assert review_subject(spec, a_review("r", figures=FIGURES)) == "hotels: change 39 rows of public.hotels?"
    assert review_subject(spec, a_review("r", verdict=Verdict.BLOCKED)).startswith("hotels, blocked: ")


def test_the_body_has_reasons_figures_and_where_to_look() -> None:
    """Everything a decision needs, on one page."""
    figures = FIGURES.model_copy(update={"shards_failed": 2})
    body = review_body(a_run(), a_review("run.digest", figures=figures, reasons=("5 of 1,300 objects deleted",)))
    assert "- 5 of 1,300 objects deleted" in body
    assert "| created | 34 |" in body
    assert "| **seen** | 1,234 | 1,300 are in the table now |" in body
    assert "2 shards failed" in body
    assert "sluice review show run.digest" in body
    assert all(label in body for label in ANSWERS.values())


@pytest.mark.parametrize(
    "words", ["<img src=x onerror=alert(1)>", "a | b", "[click](http://x)", "**bold** `code`", "line\n# heading", "&lt;b&gt;"]
)
def test_other_people_s_words_are_no_markup(words: str) -> None:
    """Each mark that means something to Markdown or HTML is escaped, and no line begins with them."""
    text = markdown_text(words)
    assert "\n" not in text
    for mark in "<>|[]()*`#&":
        assert text.count(mark) == text.count(f"\\{mark}")
