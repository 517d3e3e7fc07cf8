"""The page of a run: what it shows of shards, events and acts, and what may be done from it."""

from typing import Any

import pytest

from sluice.model.audit import Act
from sluice.model.base import PublicationId, RunId, ShardKey
from sluice.model.lifecycle import RunStatus, ShardStatus
from sluice.model.run import Mode
from tests.support.nouns import a_run
from tests.unit.flow.workshop import NORTH, RUN, SOUTH, Workshop
from tests.unit.packet.reading import Reading
from tests.unit.web.visitor import Visitor

MARKUP = "<b>bold</b>"


@pytest.fixture
def visitor() -> Visitor:
    """Somebody who looks at a run of which a shard is in, and another one was refused."""
    workshop = Workshop()
    workshop.equip()
    workshop.begin()
    workshop.bring_in(NORTH, ("a", "2024-05-01T00:00:00Z"))
    workshop.lose(SOUTH)
    return Visitor(workshop)


def text(answer: Any) -> str:
    """Return what is read on a page."""
    assert answer.status_code == 200, answer.text
    return " ".join(Reading(answer.text).text.split())


def test_it_has_a_square_for_each_shard_and_a_line_for_those_asked_for(visitor: Visitor) -> None:
    """The squares are named for who cannot see them; the table holds the failed ones alone if so asked."""
    page = visitor.get(f"runs/{RUN}")
    reading = Reading(page.text)
    assert not reading.unclosed
    squares = {
        attributes["data-shard"]: attributes["class"] for tag, attributes in reading.elements if "data-shard" in attributes
    }
    assert squares == {"north": "succeeded", "south": "failed"}
    (strip,) = [attributes for _, attributes in reading.elements if attributes.get("class") == "strip"]
    assert "1 failed, 1 succeeded" in str(strip["aria-label"])
    assert "south failed" in text(page)
    assert "SupplierRefused: 403 Forbidden" in text(page)
    failed = text(visitor.get(f"runs/{RUN}", shards="failed"))
    assert "south failed" in failed
    assert "north succeeded" not in failed
    assert visitor.get(f"runs/{RUN}", shards="lost").status_code == 422


def test_it_bears_thousands_of_shards(visitor: Visitor) -> None:
    """All have a square; the table has a page of them, those first that are not done."""
    memory = visitor.workshop.memory
    for number in range(2_000):
        key = ShardKey(f"s{number}")
        memory.shards[RUN, key] = memory.shards[RUN, NORTH].model_copy(update={"key": key})
    page = visitor.get(f"runs/{RUN}")
    assert page.text.count("data-shard=") == 2_002
    assert "south failed" in text(page)
    assert "page 1 of 101" in text(page)
    assert "s1999 succeeded" in text(visitor.get(f"runs/{RUN}", shards="succeeded", page_of=9_999))


def test_what_others_called_things_is_text(visitor: Visitor) -> None:
    """Keys and messages are the supplier's: they are escaped in text and attributes alike."""
    memory = visitor.workshop.memory
    key = ShardKey(f'"{MARKUP}')
    memory.shards[RUN, key] = memory.shards[RUN, SOUTH].model_copy(update={"key": key})
    page = visitor.get(f"runs/{RUN}").text
    assert MARKUP not in page
    assert page.count("&#34;&lt;b&gt;bold&lt;/b&gt;") >= 3


def test_runs_lead_to_each_other(visitor: Visitor) -> None:
    """Who follows leads to whom it follows, and the other way round; a rollback says what it takes back."""
    memory = visitor.workshop.memory
    follower = memory.runs[RUN].model_copy(update={"id": RunId("other"), "follows": RUN, "status": RunStatus.WAITING})
    memory.runs[follower.id] = follower
    back = a_run("back", mode=Mode.ROLLBACK, undoes=PublicationId(7))
    memory.runs[back.id] = back
    assert f"follows {RUN}" in text(visitor.get("runs/other"))
    assert "followed by other" in text(visitor.get(f"runs/{RUN}"))
    said = text(visitor.get("runs/back"))
    assert "takes back publication 7" in said
    assert "A rollback asks no supplier." in said


def test_a_shard_is_reset_and_the_page_says_by_whom(visitor: Visitor) -> None:
    """The answer says what comes next; the act stands on the page, with person and reason."""
    asked = {"act": "reset", "shard": SOUTH, "reason": "they have mended it"}
    done = visitor.post(f"runs/{RUN}/shards", asked)
    assert done.status_code == 200, done.text
    assert "south begins again from its first page." in done.json()["message"]
    assert done.json()["next"] == f"dags/sluice_hotels/runs/{RUN}"
    assert visitor.workshop.shard(SOUTH).status is ShardStatus.PENDING
    assert "Ann (pages) reset-shard south they have mended it" in text(visitor.get(f"runs/{RUN}"))


def test_a_run_is_cancelled(visitor: Visitor) -> None:
    """What waits for nobody any more is said to be over, and its page offers no more of that."""
    assert "Cancel the run" in text(visitor.get(f"runs/{RUN}"))
    done = visitor.post(f"runs/{RUN}/cancel", {"reason": "the wrong window"})
    assert done.json()["message"].startswith("The run is cancelled.")
    assert visitor.workshop.memory.runs[RUN].status is RunStatus.CANCELLED
    page = text(visitor.get(f"runs/{RUN}"))
    assert "Cancel the run" not in page
    assert "the wrong window" in page


@pytest.mark.parametrize(
    ("path", "form", "status", "said"),
    [
        ("shards", {"act": "skip", "shard": "north", "reason": "x"}, 409, "has come in"),
        ("shards", {"act": "skip", "shard": "nowhere", "reason": "x"}, 404, "there is no shard nowhere"),
        ("shards", {"act": "skip", "shard": "south", "reason": "  "}, 422, "reason"),
        ("shards", {"act": "skip", "shard": "so\0uth", "reason": "x"}, 422, "shard: A text may hold no NUL"),
        ("shards", {"act": "skip", "shard": "south", "reason": "x\0y"}, 422, "reason: A text may hold no NUL"),
        ("shards", {"act": "eat", "shard": "south", "reason": "x"}, 422, "act"),
        ("release", {"reason": "it is dead"}, 409, "has shown life"),
        ("cancel", {}, 422, "reason"),
    ],
)
def test_what_may_not_be_done_is_refused_in_a_sentence(
    visitor: Visitor, path: str, form: dict[str, str], status: int, said: str
) -> None:
    """Nothing is changed, nothing is noted."""
    answer = visitor.post(f"runs/{RUN}/{path}", form)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/json")
    assert said in answer.json()["message"]
    assert visitor.workshop.memory.audit == []


def test_who_may_only_read_is_offered_nothing_and_refused_everything(visitor: Visitor) -> None:
    """The forms are not there, and would do nothing."""
    visitor.changes = set()
    assert "<form" not in visitor.get(f"runs/{RUN}").text
    for path in ("shards", "cancel", "release"):
        form = {"act": "reset", "shard": SOUTH, "reason": "x"} if path == "shards" else {"reason": "x"}
        assert visitor.post(f"runs/{RUN}/{path}", form).status_code == 403
    visitor.reads, visitor.changes = {"sluice_other"}, {"sluice_other"}
    for path in (f"runs/{RUN}", f"runs/{RUN}/events"):
        assert visitor.get(path).status_code == 403
        assert visitor.get(path, dag="sluice_other").status_code == 404
    assert visitor.post(f"runs/{RUN}/cancel", {"reason": "x"}, dag="sluice_other").status_code == 404
    assert visitor.workshop.memory.runs[RUN].status is RunStatus.RUNNING


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-Sluice": "1"},
        {"Sec-Fetch-Site": "same-origin"},
        {"X-Sluice": "1", "Sec-Fetch-Site": "cross-site"},
        {"X-Sluice": "1", "Sec-Fetch-Site": "same-site", "Origin": "http://testserver"},
        {"X-Sluice": "1", "Sec-Fetch-Site": "none"},
        {"X-Sluice": "1", "Origin": "http://evil.example"},
        {"X-Sluice": "1", "Origin": "null"},
    ],
)
def test_what_another_site_makes_a_browser_send_is_refused(visitor: Visitor, headers: dict[str, str]) -> None:
    """Neither a form nor a script of another origin can send what ours sends."""
    assert visitor.post(f"runs/{RUN}/cancel", {"reason": "x"}, headers=headers).status_code == 403
    assert visitor.workshop.memory.runs[RUN].status is RunStatus.RUNNING


def test_an_old_browser_of_ours_is_let_in(visitor: Visitor) -> None:
    """One that does not say where a request comes from, yet names the page's own origin."""
    headers = {"X-Sluice": "1", "Origin": "http://testserver"}
    assert visitor.post(f"runs/{RUN}/cancel", {"reason": "x"}, headers=headers).status_code == 200
    assert [entry.act for entry in visitor.workshop.memory.audit] == [Act.CANCEL_RUN]


def test_a_run_of_another_s_dag_has_no_page(visitor: Visitor) -> None:
    """Airflow shows the tab on every DAG run there is: on those of others it says that they are none of ours."""
    visitor.reads = {"etl"}
    answer = visitor.client().get("/dags/etl/dagRuns/manual")
    assert answer.status_code == 404
    assert "etl is no DAG of Sluice" in answer.text


def test_what_has_succeeded_is_offered_no_acts(visitor: Visitor) -> None:
    """Nothing changes such a run any more: a button would only lead to a refusal."""
    run = a_run("run-done", status=RunStatus.SUCCEEDED)
    visitor.workshop.memory.runs[run.id] = run
    assert "By hand" not in visitor.get("runs/run-done").text
    visitor.workshop.memory.runs[run.id] = run.model_copy(update={"status": RunStatus.FAILED})
    assert "By hand" in visitor.get("runs/run-done").text
