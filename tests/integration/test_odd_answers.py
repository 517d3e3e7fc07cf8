"""Odd answers through whole runs: what the table holds in the end is what the supplier meant, or the run says what is wrong."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml

from sluice.adapters.metrics import LoggedMetrics
from sluice.adapters.postgres import conninfo
from sluice.flow.inline import run_inline
from sluice.model.lifecycle import RunStatus
from sluice.model.run import Mode, Origin, Redrive, Run, RunRequest
from sluice.ports import ConnectionInfo, Services
from sluice.settings import Settings
from sluice.wiring import open_services
from tests.support.catalogue import catalogue
from tests.support.scripted_supplier import answer, scripted

SYNC: dict[str, Any] = {
    "sync": "places",
    "stage": "content",
    "source": {
        "kind": "rest",
        "connection": "shop",
        "path": "/places",
        "records": "places",
        "error": "error",
        "cursor": {"path": "next", "parameter": "cursor"},
    },
    "object": {"key": ["id"]},
    "fields": [{"name": "id", "type": "text"}, {"name": "name", "type": "text", "required": True}],
    "review": {"first_load": "auto-approve", "auto_approve": {"rejected": "100%"}},
    "target": {"table": "places"},
}
POLICY = {"retry": {"attempts": 3, "base": "0s", "cap": "0s"}, "result_ttl": "0s"}

Project = Callable[..., Any]


class Sync:
    """One sync and its table."""

    def __init__(self, services: Services, target: ConnectionInfo) -> None:
        self.services = services
        self._target = target

    def run(self) -> Run:
        """Run it once, in full."""
        return run_inline(self.services, RunRequest(sync="places", mode=Mode.FULL, window=None, origin=Origin()))

    def failure_of(self, run: Run) -> str:
        """Return why its shard failed."""
        (shard,) = self.services.shards.of(run.id)
        assert shard.failure is not None
        return f"{shard.failure.error}: {shard.failure.message}"

    def dead_letters(self) -> list[str]:
        """Return the error of each object that could not be taken in."""
        return [letter.reject.error for letter in self.services.letter_desk.selected("places", Redrive(), 100)]

    def table(self) -> dict[str, str]:
        """Return what the table holds."""
        with psycopg.connect(conninfo(self._target)) as connection:
            return dict(connection.execute("select id, name from places where _sluice_deleted_at is null").fetchall())


@pytest.fixture
def project(tmp_path: Path, database: ConnectionInfo, artifacts: ConnectionInfo) -> Project:
    """Return what opens the sync for a supplier; keys of the source may be others."""

    @contextmanager
    def opened(shop: ConnectionInfo, **source: Any) -> Iterator[Sync]:
        (tmp_path / "include/syncs").mkdir(parents=True)
        spec = SYNC | {"source": SYNC["source"] | source}
        (tmp_path / "include/syncs/places.yaml").write_text(yaml.safe_dump(spec))
        (tmp_path / "include/stages.yaml").write_text(yaml.safe_dump({"defaults": POLICY, "stages": {"content": {}}}))

        class Known:
            def get(self, conn_id: str) -> ConnectionInfo:
                return {"sluice_artifacts": artifacts, "shop": shop}.get(conn_id, database)

        settings = Settings(include=tmp_path / "include", cache=tmp_path / "cache")
        with open_services(settings, Known(), LoggedMetrics()) as services:
            yield Sync(services, database)

    return opened


def page(*places: tuple[str, str], following: str | None = None) -> str:
    """The text of a page."""
    listed = [{"id": key, "name": name} for key, name in places]
    return json.dumps({"places": listed, "next": following}, ensure_ascii=False)


def test_texts_arrive_whatever_they_came_in(project: Project) -> None:
    """A page in each charset, declared or told by its bytes, with and without a byte order mark."""
    ways = [
        ("utf-8-sig", "application/json"),
        ("latin-1", "application/json; charset=ISO-8859-1"),
        ("utf-16", "application/json; charset=utf-16"),
        ("utf-8", "application/json; charset=iso-8859-1"),
        ("utf-16-le", "application/json"),
    ]
    answers = []
    for number, (charset, content_type) in enumerate(ways):
        following = str(number) if number < len(ways) - 1 else None
        answers.append(answer(page((str(number), "Café Öl ñ"), following=following).encode(charset), Content_Type=content_type))
    with scripted(*answers) as shop, project(shop.connection()) as sync:
        assert sync.run().status is RunStatus.SUCCEEDED
        assert sync.table() == {str(number): "Café Öl ñ" for number in range(len(ways))}


def test_bytes_of_another_charset_damage_only_their_record(project: Project) -> None:
    """Declared as nothing else, what is no UTF-8 is rejected object by object, and the others arrive."""
    body = b'{"places": [{"id": "a", "name": "A"}, {"id": "b", "name": "Caf\xe9"}, {"id": "c", "name": "C"}], "next": null}'
    with scripted(answer(body)) as shop, project(shop.connection()) as sync:
        sync.run()
        assert sync.table() == {"a": "A", "c": "C"}
        assert sync.dead_letters() == ["encoding"]


def test_an_error_under_status_200_that_passes(project: Project) -> None:
    """It costs a retry, and the page arrives."""
    busy = answer({"error": {"code": 7, "message": "busy"}, "places": []})
    with scripted(busy, busy, answer(page(("a", "A")).encode())) as shop, project(shop.connection()) as sync:
        assert sync.run().status is RunStatus.SUCCEEDED
        assert sync.table() == {"a": "A"}
        assert len(shop.asked) == 3


@pytest.mark.parametrize(
    ("answers", "source", "failure"),
    [
        ([answer({"error": "quota", "places": []})] * 3, {}, r"AnswerFailed: .*\(source\.error `error`\): \"quota\""),
        ([answer({"error": "quota"})], {"error": None}, r"RecordsMissing: .*quota"),
        (
            [answer(b"<html><title>Sign in</title><form><input type='password'>", Content_Type="text/html")],
            {},
            r"AnswerNotJson: .*looks like a login page: check source\.auth .* connection shop",
        ),
        (
            [answer(page(("a", "A"), ("b", "B")).encode()[:-20])],
            {},
            r"AnswerNotJson: .*is not whole JSON: it ends after \d+ bytes",
        ),
    ],
    ids=["error body", "error body without the key", "login page", "cut JSON"],
)
def test_what_is_no_page_fails_the_shard_by_name(
    project: Project, answers: list[bytes], source: dict[str, Any], failure: str
) -> None:
    """Nothing of it reaches the table, and whoever looks reads what it was."""
    with scripted(*answers) as shop, project(shop.connection(), **source) as sync:
        run = sync.run()
        assert run.status is RunStatus.FAILED
        assert re.match(failure, sync.failure_of(run))
        assert len(shop.asked) == len(answers)


def test_details_arrive_and_what_is_gone_is_deleted_by_review_alone(project: Project) -> None:
    """Listed records are mapped from their details; one that has no id is a dead letter; one that is gone has vanished."""
    records: dict[str, Any] = {f"p{number}": {"place": {"id": f"p{number}", "name": f"P {number}"}} for number in range(6)}
    with catalogue(records) as shop:
        detail = {"path": "/records/{{ record.id }}", "record": "place", "at_once": 3}
        with project(shop.connection, path="/list", records="items", detail=detail) as sync:
            shop.listed.insert(2, {"name": "nameless"})
            assert sync.run().status is RunStatus.SUCCEEDED
            assert sync.table() == {f"p{number}": f"P {number}" for number in range(6)}
            assert sync.dead_letters() == ["not-an-object"]
            shop.listed.pop(2)
            del shop.records["p3"]
            review = sync.services.reviews.latest(sync.run().id)
            assert review is not None
            assert review.figures.vanished == 1
            assert "p3" in sync.table()
