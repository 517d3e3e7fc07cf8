"""The pages of dead letters: hostile words are text, keys lead where they should, and what is done about them is asked once."""

from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from sluice.errors import ConnectionInvalid
from sluice.model.artifact import ArtifactKind, ArtifactRef
from sluice.model.audit import Act
from sluice.model.reject import DeadLetterStatus
from sluice.model.run import Mode, Redrive, ReviewMode
from tests.support.nouns import a_reject
from tests.unit.flow.workshop import RUN, Workshop
from tests.unit.packet.reading import Reading
from tests.unit.web.visitor import DAG, Visitor

WORD = "<img src=x onerror=alert(1)>"
KEY = f'a/b?c=d&e="{WORD}"#\u202e\u200dé' + "k" * 2_000


@pytest.fixture
def workshop() -> Workshop:
    """A workshop with two letters of one cause, one of them of a hostile object, and its chunk."""
    workshop = Workshop()
    workshop.begin()
    ref = ArtifactRef(sync="hotels", run=RUN, kind=ArtifactKind.RAW, shard="north")
    body = b'{"hotels": [{"id": "x"}, {}, {"id": "</pre><script>alert(1)</script>"}]}'
    chunk = workshop.artifacts.put(ref, workshop.codec.pack([body], 1), records=3, expires_at=None)
    workshop.services.pointers.add(chunk)
    rejects = [a_reject(KEY, artifact=chunk.key, message=f"stars: {WORD}"), a_reject("plain", artifact=chunk.key)]
    run, shard = workshop.memory.runs[RUN], workshop.services.shards.claim(RUN, workshop.shard().key)
    workshop.services.dead_letters.record(run, shard, rejects, "rejects-0")
    return workshop


def test_every_page_shows_what_the_supplier_says_as_text(workshop: Workshop) -> None:
    """By cause, as a list, one by one, and its bytes apart, where nothing of them can act."""
    ann = Visitor(workshop)
    pages = [ann.client().get("/letters"), ann.get("letters"), ann.get("letters", cause="out-of-range:stars")]
    pages += [ann.get("letters/1"), ann.get("letters/proposals", cause="out-of-range:stars")]
    for page in pages:
        assert page.status_code == 200
        reading = Reading(page.text)
        assert not reading.unclosed
        assert {tag for tag, _ in reading.elements}.isdisjoint({"img", "style"})
        assert page.text.count("<script") == 1
        assert "\u202e" not in page.text
    assert "alert(1)" in Reading(pages[3].text).text
    link = next(str(a["href"]) for tag, a in Reading(pages[3].text).elements if tag == "a" and "/raw?" in str(a.get("href")))
    raw = ann.client().get(str(pages[3].url.join(link)))
    assert raw.content == b'{"id": "</pre><script>alert(1)</script>"}'
    assert raw.headers["content-type"] == "text/plain; charset=utf-8"
    assert raw.headers["content-security-policy"].startswith("sandbox; default-src 'none'")


def test_a_link_to_an_object_holds_its_whole_key(workshop: Workshop) -> None:
    """However long and odd it is."""
    links = [
        str(a["href"]) for tag, a in Reading(Visitor(workshop).get("letters").text).elements if tag == "a" and a.get("href")
    ]
    keys = [parse_qs(urlsplit(link).query)["key"][0] for link in links if "/objects?" in link]
    assert keys == ["plain", KEY]


def test_letters_come_in_pages(workshop: Workshop) -> None:
    """Behind the last one there are those before it, and none twice."""
    assert [letter.id for letter in workshop.services.letter_desk.selected("hotels", Redrive(), 9, before=2)] == [1]
    assert "letters/2" not in Visitor(workshop).get("letters", before=2).text


def test_a_redrive_is_asked_of_airflow(workshop: Workshop) -> None:
    """Of those chosen, reviewed as asked for, and on the trail; the answer leads to its DagRun."""
    answer = Visitor(workshop).post("letters/redrive", {"letters": ["2", "1"], "reason": "mended", "look": True})
    assert answer.json()["next"] == f"dags/{DAG}/dagRuns/manual__1"
    (asked,) = workshop.triggers.asked
    assert (asked.mode, asked.redrives, asked.review) == (Mode.REDRIVE, Redrive(letters=(1, 2)), ReviewMode.ALWAYS)
    (entry,) = workshop.services.audit.of("hotels", None, 9)
    assert (entry.act, entry.by.name, entry.by.reason, entry.facts["letters"]) == (Act.REDRIVE, "Ann", "mended", [1, 2])
    assert entry.run == "manual__1"


def test_without_airflow_it_is_said_how_to_redrive(workshop: Workshop) -> None:
    """In place, with the command that does the same."""
    workshop.triggers.trouble = ConnectionInvalid("there is no connection sluice_airflow")
    refused = Visitor(workshop).post("letters/redrive", {"cause": "out-of-range:stars", "reason": "mended"})
    assert refused.status_code == 500
    assert refused.json()["message"].endswith("sluice dlq redrive hotels --cause 'out-of-range:stars' --inline")


def test_letters_are_given_up_with_a_reason(workshop: Workshop) -> None:
    """By the user; once more there is nothing left."""
    form = {"letters": [1], "reason": "closed for good"}
    ann = Visitor(workshop)
    assert ann.post("letters/discard", form).json()["message"] == "1 objects are given up."
    letter = workshop.services.letter_desk.get(1)
    assert (letter.status, letter.ended_by, letter.reason) == (DeadLetterStatus.DISCARDED, "Ann", "closed for good")
    assert ann.post("letters/discard", form).status_code == 404
    assert 'value="1"' not in ann.get("letters/1").text


@pytest.mark.parametrize(
    "form",
    [
        {"letters": [], "reason": "x"},
        {"letters": [1], "reason": " "},
        {"letters": [1], "reason": "x\0y"},
        {"letters": [0], "reason": "x"},
        {"cause": "x\0y", "reason": "x"},
    ],
)
def test_nothing_is_done_about_nothing_or_without_a_reason(workshop: Workshop, form: Any) -> None:
    """It is refused in a sentence."""
    for act in ("redrive", "discard"):
        refused = Visitor(workshop).post(f"letters/{act}", form)
        assert (refused.status_code, bool(refused.json()["message"])) == (422, True)


def test_another_dag_shows_and_does_nothing_of_them(workshop: Workshop) -> None:
    """Letters and bytes are those of one sync."""
    other = "sluice_other"
    ann = Visitor(workshop, reads={DAG, other}, changes={other})
    assert ann.get("letters/1", dag=other).status_code == 404
    key = workshop.services.letter_desk.get(1).reject.address.artifact
    assert ann.get("raw", dag=other, artifact=key, page=0, index=0).status_code == 404
    assert ann.post("letters/discard", {"letters": [1], "reason": "x"}, dag=other).status_code == 404
    assert ann.post("letters/discard", {"letters": [1], "reason": "x"}).status_code == 403
    assert "data-act" not in ann.get("letters/1").text
