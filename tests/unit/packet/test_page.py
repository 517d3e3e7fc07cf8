"""The packet: one file that needs nothing beside it, in which the supplier's words are words and nothing else."""

import re
from datetime import timedelta
from typing import Any

import pytest

from sluice.adapters.spec_files import SpecFiles
from sluice.model.evidence import (
    Drift,
    Evidence,
    FieldChange,
    FieldKind,
    FieldProfile,
    Measure,
    ObjectSample,
    Profile,
    ValueChange,
)
from sluice.model.ledger import Outcome
from sluice.model.lifecycle import ShardStatus, Verdict
from sluice.model.quality import Quality
from sluice.model.review import Figures
from sluice.model.run import Failure, Origin
from sluice.model.shard import Shard
from sluice.packet.page import evidence_part, packet
from tests.support.evidence import some_evidence
from tests.support.nouns import NOW, a_decision, a_review, a_run
from tests.support.servers import PROJECT
from tests.unit.packet.reading import Reading, drawings

SPEC = SpecFiles(PROJECT / "include").sync("hotels")
FIGURES = Figures(
    seen=1234,
    unchanged=1000,
    live_before=1300,
    vanished=5,
    moved=3,
    outcomes={Outcome.CREATED: 34, Outcome.CHANGED: 12, Outcome.DELETED: 5},
    shards_failed=1,
)
HOSTILE = [
    "<script>alert(1)</script>",
    "</style><img src=x onerror=alert(1)>",
    '" onload="alert(1)',
    "' style='display:none",
    "</svg></title></table>",
    "\u202egnp.exe\u2066",
    "a\x00b\x1b[31m\r\n",
    "x" * 10_000,
    "]]><![CDATA[",
    "<!-- ",
    "[here](http://elsewhere) **now** | `x`",
    "{{ 7 * 7 }}{% raw %}",
    "&lt;b&gt;&amp;",
]


def page(evidence: Evidence | None = None, **changes: Any) -> str:
    """Return the packet of a review."""
    facts: dict[str, Any] = {
        "run": a_run(),
        "review": a_review("run-1.abcd", figures=FIGURES),
        "failed": [],
        "dag_run_url": None,
    }
    given = facts | changes
    return packet(
        SPEC,
        given["run"],
        given["review"],
        evidence or some_evidence(),
        failed=given["failed"],
        dag_run_url=given["dag_run_url"],
    ).decode()


def failed_shard(message: str) -> Shard:
    """Return a shard that did not come in."""
    return Shard.model_validate(
        {
            "run": "run-1",
            "key": message,
            "params": {},
            "token": 1,
            "status": ShardStatus.FAILED,
            "failure": Failure(error="SupplierRefused", message=message),
        }
    )


@pytest.mark.parametrize("word", HOSTILE)
def test_the_supplier_s_words_change_nothing_of_the_page(word: str) -> None:
    """Its elements and their attributes are those of a harmless word, wherever the supplier's words stand."""
    harmless = Reading(page(failed=[failed_shard("Grand Hotel")]))
    text = page(some_evidence(word), failed=[failed_shard(word)], review=a_review("r", figures=FIGURES, reasons=(word,)))
    hostile = Reading(text)
    assert hostile.shape == harmless.shape
    assert not hostile.unclosed
    assert all(char.isprintable() or char == "\n" for char in text)
    assert len(drawings(text)) == len(drawings(page()))
    assert len(text) < 100_000


def test_it_needs_nothing_beside_it() -> None:
    """No script, no address, no style attribute; and a policy that would let none of them through."""
    reading = Reading(page(failed=[failed_shard("403 Forbidden")]))
    assert not reading.unclosed
    assert {tag for tag, _ in reading.elements}.isdisjoint({"script", "link", "img", "iframe", "object", "form", "base", "use"})
    names = {name for _, attributes in reading.elements for name in attributes}
    assert names.isdisjoint({"src", "href", "style", "xlink:href"})
    assert not any(name.startswith("on") for name in names)
    policies = [a["content"] for _, a in reading.elements if a.get("http-equiv") == "Content-Security-Policy"]
    assert len(policies) == 1
    assert str(policies[0]).startswith("default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'")
    assert not re.search(r"url\(|@import", page())


def test_it_can_be_read_without_eyes() -> None:
    """The language is said, columns have headers, and drawings that say more than their row a title and a description."""
    text = page()
    reading = Reading(text)
    assert ("html", {"lang": "en"}) in reading.elements
    assert all(attributes.get("scope") for tag, attributes in reading.elements if tag == "th")
    ids = [str(attributes["id"]) for _, attributes in reading.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for drawing in drawings(text):
        if drawing.get("aria-hidden") != "true":
            assert set(str(drawing.get("aria-labelledby")).split()) <= set(ids)
            assert [child.tag for child in drawing[:2]] == ["title", "desc"]


def test_the_same_review_has_the_same_bytes() -> None:
    """Whenever it is made, and whatever has been decided since."""
    review = a_review("run-1.abcd", figures=FIGURES)
    later = review.model_copy(update={"created_at": NOW + timedelta(days=1), "decision": a_decision()})
    assert page(review=later) == page(review=review)


def test_how_to_decide_stands_where_there_is_something_to_decide() -> None:
    """What policy has approved asks nobody."""
    assert "sluice review approve r" in page(review=a_review("r", figures=FIGURES))
    approved = a_review("r", figures=FIGURES, verdict=Verdict.AUTO_APPROVED, reasons=())
    assert "sluice review approve" not in page(review=approved)


def test_headline_verdict_and_reasons_come_first() -> None:
    """What would change in which table, and why policy does not let it pass."""
    text = Reading(page(review=a_review("r", figures=FIGURES, verdict=Verdict.BLOCKED, reasons=("too many deletions",)))).text
    places = [text.index(words) for words in ("51 rows of public.hotels", "blocked", "too many deletions", "What it would do")]
    assert places == sorted(places)


def test_counts_have_meanings() -> None:
    """Every figure says what it counts."""
    text = " ".join(Reading(page()).text.split())
    assert "created 34 new in the table" in text
    assert "moved 3 delivered by another shard" in text
    assert "vanished" not in text  # they are the deleted ones
    assert "shards failed 1" in text
    kept = FIGURES.model_copy(update={"outcomes": {}})
    assert "vanished 5 in the table, but not delivered" in " ".join(
        Reading(page(review=a_review("r", figures=kept))).text.split()
    )


def test_before_and_after_stand_side_by_side_and_what_differs_is_marked() -> None:
    """Null and empty are told from text, and from each other."""
    text = page()
    assert "<del>the</del> Grand Hotel" in text
    assert "<ins>our</ins> Grand Hotel" in text
    assert '<i class="quiet">null</i>' in text
    assert '<i class="quiet">empty text</i>' in text


def test_drift_that_is_over_the_limit_says_so_in_words() -> None:
    """With the limit beside it; what is within it says nothing."""
    text = Reading(page()).text
    assert text.count("too far") == 1
    assert "0.400" in text
    assert "0.25" in text


def test_what_becomes_of_the_table_is_told() -> None:
    """Each statement with its reason; where there is none, nothing."""
    assert "comment on column name is &#39;Grand Hotel&#39; -- its description changed" in page()
    assert "What becomes of the table itself" not in page(evidence=some_evidence(schema_changes=()))


def test_what_is_dated_after_the_fetch_is_told() -> None:
    """How many records, and the first of them; where there are none, nothing."""
    text = " ".join(Reading(page()).text.split())
    assert "The supplier dates 3 of the records later than its own clock" in text
    assert "The first: Grand Hotel , dated Grand Hotel" in text.replace(",", " ,").replace("  ", " ")
    assert "Dated after the fetch" not in page(some_evidence(postdated=None))


def test_what_is_a_sample_or_left_out_says_so() -> None:
    """No figure passes for one of all rows, and nothing is missing silently."""
    text = " ".join(Reading(page()).text.split())
    assert "1,000 rows; the figures are of a sample of 100" in text
    assert "And 5 more shards" in text
    first = page(some_evidence(baseline=None, drifts=()))
    assert "there is nothing to compare with" in first


def test_it_can_be_matched_with_the_record() -> None:
    """Run, spec and the digest that an approval is of; and the DagRun, with a link where its address is known."""
    review = a_review("run-1.abcd", figures=FIGURES)
    in_airflow = a_run(origin=Origin(dag_id="sluice_hotels", dag_run_id="manual__1"))
    text = Reading(page(run=in_airflow, review=review)).text
    assert review.digest in text
    assert review.diff.sha256 in text
    assert in_airflow.spec_hash in text
    assert "sluice_hotels manual__1" in text
    linked = Reading(
        page(run=in_airflow, review=review, dag_run_url="https://airflow.example/dags/sluice_hotels/runs/manual__1")
    )
    links = [attributes["href"] for tag, attributes in linked.elements if tag == "a"]
    assert links == ["https://airflow.example/dags/sluice_hotels/runs/manual__1"]


def test_a_page_takes_the_evidence_alone() -> None:
    """Without a document around it, and with nothing that a strict policy for styles would refuse."""
    part = evidence_part(SPEC, a_review("r", figures=FIGURES), some_evidence())
    reading = Reading(part)
    assert not reading.unclosed
    assert {tag for tag, _ in reading.elements}.isdisjoint({"html", "head", "style", "link", "script"})
    assert part in page(review=a_review("r", figures=FIGURES))


def test_what_becomes_of_the_table_itself_is_told() -> None:
    """As the statements of it; there is no heading where there is none."""
    statement = "alter table public.hotels add column beds integer -- the spec has a new field"
    text = page(some_evidence(schema_changes=(statement,) * 60))
    assert text.count(statement) == 50
    assert "And 10 more statements" in text
    assert "the table itself" not in page(some_evidence(schema_changes=()))


def test_what_a_rollback_leaves_alone_is_counted() -> None:
    """It has no supplier, no drift and no profile."""
    figures = Figures(seen=7, unchanged=0, live_before=90, conflicts=2, outcomes={Outcome.ROLLED_BACK: 5})
    empty = Profile(rows=88, looked_at=0, fields=())
    evidence = some_evidence(profile=empty, baseline=None, drifts=(), shards=(), shards_in_all=0)
    text = " ".join(Reading(page(evidence, review=a_review("r", figures=figures))).text.split())
    assert "rolled-back 5 put back as they were" in text
    assert "conflicts 2 changed since, and left alone" in text
    assert "published 7 objects" in text
    assert "88 rows." in text
    assert "Drift" not in text
    assert "sample of" not in text


def test_a_version_is_what_its_field_is() -> None:
    """The ledger holds numbers; of a time, a person reads the time."""
    sample = ObjectSample.model_validate(
        {"key": "a", "outcome": "stale", "shard": None, "old_version": 1767225600000000, "version": 2**62, "values": ()}
    )
    text = page(some_evidence(samples=(sample,)))
    assert f"2026-01-01 00:00:00 UTC → {2**62}" in text


def test_what_a_suite_found_is_shown_with_what_is_not_met_first() -> None:
    """How many rows of how many, who they are, what was rejected, why something was not checked, and what all that cost."""
    text = Reading(page(some_evidence("Ritz"))).text
    assert "checked by Great Expectations 1.24.1 over all 1,000 rows" in text
    assert text.index("failed") < text.index("not-checked") < text.index("passed")
    assert "3 of 990, 2 of them in the table already" in text
    assert "4 objects were rejected for it" in text
    assert "no Ritz" in text
    assert "{}" not in text
    assert "Not run: nothing would change." in page(
        some_evidence(quality=Quality(suite="hotels", not_run="nothing would change"))
    )
    assert "It could not be run:" in page(some_evidence(quality=Quality(suite="hotels", trouble="no file")))
    assert "What is expected of the table" not in page(some_evidence(quality=None))


def test_a_long_suite_makes_no_huge_packet() -> None:
    """What is left out is counted."""
    quality = some_evidence().quality
    assert quality is not None
    text = page(some_evidence(quality=quality.model_copy(update={"results": quality.results * 250})))
    assert "And 900 more expectations." in text


def wide_evidence() -> Evidence:
    """Return the evidence of a table of 500 fields with long values, all of which changed and drifted."""
    names = [f"field_{number}" for number in range(500)]
    long = "é" * 180
    profile = Profile(
        rows=10**9,
        looked_at=100_000,
        fields=tuple(
            FieldProfile(
                field=name,
                kind=FieldKind.CATEGORY,
                nulls=1,
                distinct=20,
                low=long,
                high=long,
                categories={f"{long}{number}": number for number in range(20)},
            )
            for name in names
        ),
    )
    values = tuple(ValueChange(field=name, old=long + "1", new=long + "2") for name in names)
    return Evidence(
        changes=tuple(FieldChange(field=name, objects=9, samples=(("k" * 200, long, None),) * 20) for name in names),
        samples=tuple(
            ObjectSample.model_validate({"key": f"{outcome}{number}", "outcome": outcome, "shard": None, "values": values})
            for outcome in Outcome
            for number in range(20)
        ),
        profile=profile,
        baseline=profile,
        drifts=tuple(Drift(field=name, measure=Measure.FREQUENCY_SHIFT, value=1.0) for name in names),
        shards=(),
        shards_in_all=0,
    )


def test_a_wide_table_makes_no_huge_packet() -> None:
    """500 fields with 20 long categories each stay within a few megabytes, and what is left out is counted."""
    data = page(wide_evidence()).encode()
    assert len(data) < 6_000_000
    assert b"and 480 more fields" in data
    assert b"And 400 more fields" in data
    assert not Reading(data.decode()).unclosed
