"""Cases that are easy to get wrong, each with the right value."""

from datetime import UTC, datetime

from sluice import log_events
from sluice.model.base import ShardKey
from sluice.model.connections import STATE, TARGET
from sluice.model.run import Mode, Origin, RunRequest, Window
from tests.chaos.lab import Experiment, Lab
from tests.chaos.proxies import CopyHeld, PostgresProxy, serving
from tests.chaos.shop import Asked
from tests.chaos.story import SYNC, World, thing
from tests.chaos.worker import Mark

NOTHING: World = {"east": [], "north": [], "west": []}
LETTERS = ["a", "b", "c", "d", "e"]


def test_a_row_that_fails_once_is_delivered_by_the_restart(lab: Lab) -> None:
    """A chunk holds 1659 and 1661; the database fails at 1661 and rolls both back; the restart delivers 1661."""
    world = {**NOTHING, "east": [thing(1659), thing(1661)]}
    with lab.another_story(world) as experiment:
        experiment.sql(
            TARGET,
            """create table public.things (id bigint primary key, name text not null, price numeric(12,4), rank integer,
                extra jsonb, updated_at timestamptz not null, _sluice_deleted_at timestamptz);
            create sequence chaos.tries;
            create function chaos.fail_once() returns trigger language plpgsql as $$
            begin
                if nextval('chaos.tries') = 1 then
                    raise exception 'no space for 1661' using errcode = 'disk_full';
                end if;
                return new;
            end
            $$;
            create trigger fails before insert on public.things for each row when (new.id = 1661)
                execute function chaos.fail_once()""",
        )
        failed = experiment.start().end()
        experiment.faults.append("a row that fails once")
        assert failed.error == "TargetUnavailable", failed
        assert _ids(experiment) == []
        with experiment.counted():
            experiment.go_on()
            assert _ids(experiment) == [1659, 1661]
            assert _events(experiment) == [("1659", "created"), ("1661", "created")]
            assert experiment.shop.pages_asked() == {"east": 1, "north": 1, "west": 1}
            experiment.check_soundness()


def test_data_is_written_and_the_state_store_denies_what_follows(lab: Lab) -> None:
    """The run is red; the next one publishes nothing again, and finishes what was left: watermarks, dead letters."""
    with lab.experiment(lab.story[1]) as experiment:
        worker = experiment.start(Mark(1, log_events.PUBLICATION_COMMITTED))
        worker.held()
        experiment.sql(
            STATE,
            """create function chaos.deny() returns trigger language plpgsql as $$
            begin
                raise exception 'denied' using errcode = 'read_only_sql_transaction';
            end
            $$;
            create trigger denied before insert or update on sluice_state.watermark execute function chaos.deny();
            create trigger denied before update on sluice_state.dead_letter execute function chaos.deny()""",
        )
        experiment.faults.append("state denied behind a publication")
        worker.go_on()
        ended = worker.end()
        assert ended.error == "StateUnavailable", ended
        assert not experiment.succeeded()
        experiment.sql(STATE, "drop trigger denied on sluice_state.watermark; drop trigger denied on sluice_state.dead_letter")
        experiment.go_on()
        experiment.check()


def test_two_runs_with_different_windows_overlap(lab: Lab) -> None:
    """The second stages and publishes while the first stages: neither truncates nor merges what the other has staged."""
    held = CopyHeld("staged")
    query = {"region": "{{ shard.region }}", "since": "{{ window.start }}", "until": "{{ window.end }}"}
    world = {region: [thing(10 * place + n, hour=24 * n) for n in range(4)] for place, region in enumerate(NOTHING)}
    with lab.another_story(world) as experiment, serving(PostgresProxy(experiment.place.target, lambda: held)) as proxy:
        experiment.include = lab.project(sync={"source": {**SYNC["source"], "query": query, "watermark": None}})
        first = experiment.start(work=_window(1, 3), connections={TARGET: proxy.connection})
        assert held.reached.wait(20), first.end()
        second = experiment.start(work=_window(3, 5)).end()
        held.may_go_on.set()
        experiment.faults.append("two windows at once")
        assert [first.end().status, second.status] == ["succeeded", "succeeded"]
        with experiment.counted():
            assert _ids(experiment) == [0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23]
            counts = experiment.sql(TARGET, "select counts from sluice_ledger.publication order by id")
            assert counts == [({"created": 6},), ({"created": 6},)]
            published = experiment.sql(
                TARGET, "select publication, array_agg(key order by key) from sluice_ledger.object group by 1 order by 1"
            )
            assert [keys for _, keys in published] == [["12", "13", "2", "22", "23", "3"], ["0", "1", "10", "11", "20", "21"]]
            experiment.check_soundness()


def test_results_pair_by_shard_key(lab: Lab) -> None:
    """Of five shards the third is skipped and the fourth is done again later: each keeps its own rows, counts and mark."""
    world = {letter: [thing(10 * place + n, hour=place) for n in range(place + 1)] for place, letter in enumerate(LETTERS)}
    with lab.another_story(world) as experiment:
        experiment.include = lab.project(sync={"shards": {"kind": "values", "name": "region", "values": LETTERS}})
        experiment.shop.trouble = lambda asked: 403 if asked.region == "d" else None
        worker = experiment.start(Mark(1, log_events.SHARDS_PLANNED))
        worker.held()
        experiment.sql(STATE, "update sluice_state.shard set status = 'skipped' where key = 'c'")
        experiment.faults += ["a shard skipped", "a shard refused"]
        worker.go_on()
        partial = worker.end()
        assert partial.status == "partial", partial
        assert _shards(experiment) == [("a", 1, "0"), ("b", 2, "1"), ("e", 5, "4")]

        experiment.shop.trouble = lambda _: None
        with experiment.counted():
            ended = experiment.start(work=_request("d")).end()
            assert ended.status == "succeeded", ended
            assert _shards(experiment) == [("a", 1, "0"), ("b", 2, "1"), ("d", 4, "3"), ("e", 5, "4")]
            experiment.check_soundness()


def test_a_shard_that_lags_and_one_that_is_new(lab: Lab) -> None:
    """Each goes on from its own mark; the new one begins at the beginning, as the definition says."""
    world: World = {letter: [thing(10 * place + 1, hour=place)] for place, letter in enumerate(["a", "b"])}
    incremental = RunRequest(sync="things", mode=Mode.INCREMENTAL, origin=Origin())
    with lab.another_story(world) as experiment:
        experiment.include = lab.project(sync={"shards": {"kind": "values", "name": "region", "values": ["a", "b"]}})
        experiment.start().end()
        experiment.shop.things["a"].append(thing(2, hour=30))
        experiment.shop.things["b"].append(thing(12, hour=40))
        experiment.shop.trouble = lambda asked: 403 if asked.region == "b" else None
        assert experiment.start(work=incremental).end().status == "partial"
        experiment.faults.append("a shard lags")

        experiment.shop.trouble = lambda _: None
        experiment.include = lab.project(sync={"shards": {"kind": "values", "name": "region", "values": ["a", "b", "c"]}})
        experiment.shop.things["c"] = [thing(21), thing(22, hour=50)]
        del experiment.shop.asked[:]
        with experiment.counted():
            ended = experiment.start(work=incremental).end()
            assert ended.status == "succeeded", ended
            assert experiment.shop.asked == [
                Asked("a", "2026-01-02T06:02:00Z", None, 0),
                Asked("b", "2026-01-01T01:11:00Z", None, 0),
                Asked("c", None, None, 0),
            ]
            assert _ids(experiment) == [1, 2, 11, 12, 21, 22]
            experiment.check_soundness()


def _request(*shards: str) -> RunRequest:
    return RunRequest(sync="things", mode=Mode.FULL, shards=tuple(map(ShardKey, shards)), origin=Origin())


def _window(first: int, end: int) -> RunRequest:
    """Return a request for some days of January."""
    window = Window(start=datetime(2026, 1, first, tzinfo=UTC), end=datetime(2026, 1, end, tzinfo=UTC))
    return RunRequest(sync="things", mode=Mode.FULL, window=window, origin=Origin())


def _ids(experiment: Experiment) -> list[int]:
    if experiment.sql(TARGET, "select to_regclass('public.things') is null")[0][0]:
        return []
    return [
        row[0] for row in experiment.sql(TARGET, "select id from public.things where _sluice_deleted_at is null order by id")
    ]


def _events(experiment: Experiment) -> list[tuple[str, str]]:
    return [
        (key, what) for key, what in experiment.sql(TARGET, "select key, outcome from sluice_ledger.object_event order by 1")
    ]


def _shards(experiment: Experiment) -> list[tuple[str, int, str]]:
    """Return what the ledger and the marks say of each shard: its key, how many things, the hour of its mark."""
    numbers = experiment.sql(TARGET, "select shard, count(*) from sluice_ledger.object group by 1 order by 1")
    marks = dict(experiment.sql(STATE, "select shard, value from sluice_state.watermark"))
    assert set(marks) == {shard for shard, _ in numbers}
    return [(shard, number, str(int(marks[shard][11:13]))) for shard, number in numbers]
