"""Webhooks over real HTTP: what a receiver gets, what its answers mean, and what becomes of a worker killed in the call."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml

from sluice.adapters.postgres import conninfo
from sluice.adapters.webhooks import HttpWebhook
from sluice.errors import RateLimited, ReceiverUnavailable, Retryable
from sluice.model.call import CallResult
from sluice.model.spec import WebhookSpec
from sluice.model.stage import StagePolicy, Timeouts
from sluice.ports import ConnectionInfo
from tests.support.command_line import CommandLineHere, copy_project
from tests.support.receiver import SILENCE, Receiver, Reply, receiving
from tests.support.servers import Supplier

HOOK = WebhookSpec(name="shop", connection="shop", path="/hooks/hotels")
POLICY = StagePolicy(timeouts=Timeouts(read=timedelta(milliseconds=200)))


def post(receiver: Receiver, **connection: Any) -> CallResult:
    """Tell it something."""
    return HttpWebhook(HOOK, receiver.connection(**connection), POLICY).post("the-key", {"sync": "hotels"})


def test_what_a_receiver_gets() -> None:
    """One POST below the connection's address, with its credentials and headers, the key, and a body of JSON."""
    with receiving() as receiver:
        result = post(receiver, login="ada", password="secret", extra={"headers": {"X-Team": "data", "Idempotency-Key": "no"}})
    assert result == CallResult(accepted=True, answer="200 OK")
    (delivery,) = receiver.deliveries
    assert (delivery.path, delivery.key, delivery.body) == ("/hooks/hotels", "the-key", {"sync": "hotels"})
    assert delivery.headers["content-type"] == "application/json"
    assert (delivery.headers["x-team"], delivery.headers["authorization"][:6]) == ("data", "Basic ")


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        (Reply(400, b"no such hotel"), "400 Bad Request: no such hotel"),
        (Reply(404, b""), "404 Not Found"),
        (Reply(403, b"another body came under this key"), "403 Forbidden: another body came under this key"),
        (Reply(301, b"", {"Location": "http://127.0.0.1:1/elsewhere"}), "301 Moved Permanently"),
        (Reply(799, b""), None),
    ],
)
def test_a_refusal_is_a_result(reply: Reply, answer: str | None) -> None:
    """Client errors and redirects, which are not followed, are final; what is above 499 is not."""
    with receiving(reply) as receiver:
        if answer is None:
            with pytest.raises(ReceiverUnavailable):
                post(receiver)
        else:
            assert post(receiver) == CallResult(accepted=False, answer=answer)
    assert len(receiver.deliveries) == 1


@pytest.mark.parametrize(
    ("reply", "error", "words"),
    [
        (Reply(500), ReceiverUnavailable, "500 Internal Server Error: thank you"),
        (Reply(408), ReceiverUnavailable, "408"),
        (Reply(409), ReceiverUnavailable, "409 Conflict"),
        (Reply(429, headers={"Retry-After": "7"}), RateLimited, "a pause of 7 s"),
        (Reply(503, headers={"Retry-After": "7"}), RateLimited, "a pause of 7 s"),
        (Reply(503), ReceiverUnavailable, "503"),
        (SILENCE, ReceiverUnavailable, "nothing was received for 0.2 s"),
    ],
)
def test_what_is_no_result(reply: Reply | None, error: type[Retryable], words: str) -> None:
    """Nobody knows whether a server that failed, or said nothing, has acted; and one that is busy will take it later."""
    with receiving(reply) as receiver, pytest.raises(error, match=words):
        post(receiver)


def test_a_receiver_that_is_not_there() -> None:
    """It is told with its address."""
    with receiving() as receiver:
        connection = receiver.connection()
    with pytest.raises(ReceiverUnavailable, match=r"POST http://127\.0\.0\.1:\d+/hooks/hotels: "):
        HttpWebhook(HOOK, connection, POLICY).post("the-key", {})


def test_secrets_stay_out_of_what_is_told() -> None:
    """A receiver that repeats what it was sent does not bring it into state or logs."""
    with receiving(Reply(403, b"wrong token s3cr3t for ada"), Reply(500, b"s3cr3t")) as receiver:
        extra = {"headers": {"X-Token": "s3cr3t"}}
        assert "s3cr3t" not in post(receiver, extra=extra).answer
        with pytest.raises(ReceiverUnavailable) as failed:
            post(receiver, extra=extra)
    assert "s3cr3t" not in failed.value.message


def test_of_a_huge_answer_only_a_beginning_is_read() -> None:
    """Be it accepted or refused."""
    with receiving(Reply(200, b"x" * 20_000_000), Reply(400, b"y" * 20_000_000)) as receiver:
        assert post(receiver).accepted
        assert len(post(receiver).answer) < 300


@pytest.fixture
def sluice(tmp_path: Path, database: ConnectionInfo, artifacts: ConnectionInfo, supplier: Supplier) -> CommandLineHere:
    """Return a command line in a project whose sync has a webhook, and whose leases are short."""
    project = copy_project(tmp_path)
    spec = project / "include/syncs/hotels.yaml"
    declared = yaml.safe_load(spec.read_text())
    declared["webhooks"] = [{"name": "shop", "connection": "shop", "path": "/hooks/hotels"}]
    declared["shards"]["values"] = ["brittany"]
    spec.write_text(yaml.safe_dump(declared, sort_keys=False))
    stages = project / "include/stages.yaml"
    policies = yaml.safe_load(stages.read_text())
    policies["defaults"] |= {"lease_ttl": "2s", "heartbeat": "0.5s", "retry": {"attempts": 2, "base": "0s", "cap": "0s"}}
    stages.write_text(yaml.safe_dump(policies, sort_keys=False))
    known = {
        "sluice_state": database,
        "sluice_target": database,
        "sluice_artifacts": artifacts,
        "demo_supplier": supplier.connection,
    }
    return CommandLineHere(project, known)


def test_a_worker_killed_in_the_call_has_it_repeated_under_the_same_key(sluice: CommandLineHere) -> None:
    """SIGKILL after the receiver has it and before the result is committed: the next run repeats it, and then nobody does."""
    with receiving(SILENCE) as receiver:
        sluice.define("shop", receiver.connection())
        with sluice.start("run", "hotels", "--inline") as process:
            receiver.arrivals.get(timeout=60)
            process.kill()
        done = sluice.ask("run", "hotels", "--inline")
        assert (done["run"]["status"], done["publication"]) == ("succeeded", None)
        first, second = receiver.deliveries
        assert (first.key, first.body) == (second.key, second.body)
        assert len(receiver.effects) == 1

        sluice.ask("run", "hotels", "--inline", "--mode", "full")
        assert len(receiver.deliveries) == 2
    (call,) = sluice.ask("show", first.body["run"])["calls"]
    assert (call["standing"], call["begun"], call["key"]) == ("accepted", 2, first.key)


def test_an_answer_that_is_lost_is_asked_for_again(sluice: CommandLineHere, database: ConnectionInfo) -> None:
    """A receiver that fails once is told again at once, under the same key; the run knows nothing but success."""
    with receiving(Reply(502)) as receiver:
        sluice.define("shop", receiver.connection())
        done = sluice.ask("run", "hotels", "--inline")
    assert [delivery.key for delivery in receiver.deliveries] == [receiver.deliveries[0].key] * 2
    body = receiver.deliveries[0].body
    publication = done["publication"]
    assert body == {
        "sync": "hotels",
        "run": done["run"]["id"],
        "review": done["review"]["id"],
        "publication": publication["id"],
        "counts": publication["counts"],
        "applied_at": publication["applied_at"].replace("Z", "+00:00"),
    }
    assert journal(database, done["run"]["id"]) == [("shop", "answer", "accepted")]


def test_a_refusal_does_not_undo_the_publication(sluice: CommandLineHere, database: ConnectionInfo) -> None:
    """The run succeeds; what the receiver said is in its account, its journal and on stderr."""
    with receiving(Reply(410, b"gone for good")) as receiver:
        sluice.define("shop", receiver.connection())
        said = sluice.call("run", "hotels", "--inline", "--json")
        again = sluice.ask("run", "hotels", "--inline", "--mode", "full")
    done = json.loads(said.stdout)
    assert done["run"]["status"] == again["run"]["status"] == "succeeded"
    (call,) = done["calls"]
    assert (call["standing"], call["result"]["answer"]) == ("refused", "410 Gone: gone for good")
    assert "gone for good" in said.stderr
    assert "gone for good" in sluice.call("show", done["run"]["id"]).stdout
    assert journal(database, done["run"]["id"]) == [("shop", "answer", "refused")]
    assert len(receiver.deliveries) == 1


def test_a_receiver_that_is_down_hears_of_it_from_the_next_run(sluice: CommandLineHere, database: ConnectionInfo) -> None:
    """Even if what was wrong is its connection, which nobody had defined."""
    done = sluice.ask("run", "hotels", "--inline")
    (call,) = done["calls"]
    assert (done["run"]["status"], call["standing"]) == ("succeeded", "unconfirmed")
    assert "shop" in call["trouble"]
    with receiving() as receiver:
        sluice.define("shop", receiver.connection())
        sluice.ask("run", "hotels", "--inline")
    assert [delivery.body["run"] for delivery in receiver.deliveries] == [done["run"]["id"]]
    assert journal(database, done["run"]["id"]) == [("shop", "leave", "unconfirmed"), ("shop", "answer", "accepted")]


def journal(database: ConnectionInfo, run: str) -> list[tuple[Any, ...]]:
    """Return what the run's journal tells of its calls."""
    query = "select name, event, status from sluice_state.event where run = %s and subject = 'call' order by seq"
    with psycopg.connect(conninfo(database)) as connection:
        return connection.execute(query, (run,)).fetchall()
