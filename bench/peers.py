"""Sluice beside what people use today for paged JSON over HTTP into Postgres: the same hotels for all, one table of costs.

    make bench [ARGS="--hotels 1000000 --rounds 3 --only Sluice --only dlt"]

In each round every contender has its turn, on a database of its own: it loads all hotels, and then once more, when of 1,000 ten
have changed, one is new and one is gone. Shown are medians, as CPU of the contender's whole process tree and of Postgres. The
supplier and S3 are not counted: neither would be on the worker. Each table is counted and summed up afterwards. Peers are built
from pinned versions on first use; one that cannot be is shown as absent. Wall-clock time says little where anything else runs.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any, Final

import psycopg
from contenders import FLOOR, SLUICE, Contender, Place, contenders, environment, installed
from costs import Cost, Failed, Meter
from hotels import STATES, Hotels

from sluice.cli.local.postgres import PostgresServer
from sluice.cli.local.s3 import S3Server

PROJECT: Final = Path(__file__).parents[1]
HOME: Final = PROJECT / ".bench"
SCENARIOS: Final = {"first": "first load", "second": "second sync: 1% changed, 0.1% new, 0.1% gone"}
BARS: Final = (("first", "dlt", 2.75), ("second", "dlt", 6.0))
"""How many times as fast Sluice has to be: docs/adr/020."""
FLOORS: Final = (("first", FLOOR, 1.75), ("second", FLOOR, 3.0))
"""How many times as much as the least that can be done Sluice may take."""
FEWEST_WAL: Final = 50
"""Bytes of write-ahead log a record that a second sync may write."""
_HEADS: Final = ("µs a record", "client", "Postgres", "wall s", "MB RSS", "MB PSS", "WAL B")
_MICRO: Final = 1e6
_MEGABYTE: Final = 1e6

Costs = dict[tuple[str, str], list[Cost]]


def main() -> int:
    """Measure all, print the table; return 1 if a bar does not hold."""
    asked = _arguments()
    hotels = Hotels.made(HOME / "data", asked.hotels)
    names = [contender.name for contender in contenders(HOME)]
    taking_part, absent = _present([each for each in contenders(HOME) if not asked.only or each.name in asked.only])
    print(f"{hotels.facts('first').hotels:,} hotels, {asked.rounds} rounds; of {', '.join(names)}", flush=True)
    costs, wrong = defaultdict(list), {}
    with _servers() as (postgres, s3, folder), _supplier(hotels) as port:
        meter = Meter(postgres, folder)
        for turn in range(asked.rounds):
            for number, contender in enumerate(taking_part):
                if contender.name in wrong:
                    continue
                place = Place(hotels, folder / f"{turn}-{number}", f"peer_{turn}_{number}", postgres, s3, port)
                for state, cost in _turn(contender, place, meter, wrong):
                    costs[contender.name, state].append(cost)
                    print(f"  {turn + 1}: {_line(contender.name, state, cost, hotels)}", flush=True)
    if asked.json:
        asked.json.write_text(
            json.dumps([{"who": k[0], "state": k[1], **asdict(c)} for k, all_ in costs.items() for c in all_])
        )
    _show(costs, hotels)
    for name, why in {**absent, **wrong}.items():
        print(f"{name}: {why}")
    return int(not _hold(costs, hotels) or bool(wrong))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Sluice beside its peers.")
    parser.add_argument("--hotels", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="as in the table; may be repeated")
    parser.add_argument("--json", type=Path, help="a file for every single measurement")
    return parser.parse_args()


def _present(wanted: list[Contender]) -> tuple[list[Contender], dict[str, str]]:
    """Return those that are installed by now, and why others are not."""
    present, absent = [], {}
    for contender in wanted:
        try:
            if contender.lock:
                installed(HOME, contender.lock)
            present.append(contender)
        except (subprocess.CalledProcessError, OSError) as error:
            absent[contender.name] = f"absent: {str(getattr(error, 'stderr', '') or error).strip()[-300:]}"
    return present, absent


@contextmanager
def _servers() -> Iterator[tuple[PostgresServer, S3Server, Path]]:
    """Start Postgres and S3 in a folder that is thrown away at the end."""
    folder = Path(tempfile.mkdtemp(prefix="sluice-bench-"))
    folder.chmod(0o711)
    postgres, s3 = PostgresServer(folder / "postgres"), S3Server(folder / "s3", "bench")
    try:
        postgres.start()
        s3.start()
        yield postgres, s3, folder
    finally:
        s3.stop()
        postgres.stop()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _supplier(hotels: Hotels) -> Iterator[int]:
    """Serve the hotels; give the port."""
    command = [sys.executable, Path(__file__).parent / "page_server.py", hotels.folder]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            yield int(process.stdout.readline() if process.stdout else b"")
        finally:
            process.terminate()


def _turn(contender: Contender, place: Place, meter: Meter, wrong: dict[str, str]) -> Iterator[tuple[str, Cost]]:
    """Let a contender take in both states, and yield what each took; note in `wrong` what went wrong."""
    place.folder.mkdir()
    place.postgres.ensure_database(place.database)
    try:
        contender.prepare(place)
        for state in STATES:
            done = meter.run(contender.command(place, state), environment(contender, place, state), place.folder)
            if problem := contender.problem(place, place.hotels.facts(state)):
                wrong[contender.name] = f"{SCENARIOS[state]}: {problem}"
                return
            yield state, done.cost
            meter.settle(place.database)
    except Failed as error:
        wrong[contender.name] = f"failed: {error}"
    finally:
        with psycopg.connect(place.postgres.uri("postgres"), autocommit=True) as session:
            session.execute(f"drop database {place.database} with (force)")  # type: ignore[arg-type] # our own name
        shutil.rmtree(place.folder, ignore_errors=True)


def _show(costs: Costs, hotels: Hotels) -> None:
    for state, what in SCENARIOS.items():
        print(f"\n{what}\n{'':29}{''.join(f'{head:>12}' for head in _HEADS)}")
        for (name, of), measured in costs.items():
            if of == state:
                print(_line(name, "", _middle(measured), hotels, state))
    print()


def _line(name: str, state: str, cost: Cost, hotels: Hotels, of: str = "") -> str:
    """Return a row of the table: µs of CPU a record, of both and of each, and so on."""
    each = _MICRO / hotels.facts(state or of).hotels
    micros = [cost.cpu * each, cost.client * each, cost.postgres * each, cost.wall]
    others = [cost.rss / _MEGABYTE, cost.pss / _MEGABYTE, cost.wal * each / _MICRO]
    figures = [*(f"{figure:12.1f}" for figure in micros), *(f"{figure:12.0f}" for figure in others)]
    return f"{name + (', ' + state if state else ''):29}{''.join(figures)}"


def _middle(measured: list[Cost]) -> Cost:
    """Return the median of each figure by itself."""
    figures: list[dict[str, Any]] = [asdict(cost) for cost in measured]
    return Cost(**{name: median(figure[name] for figure in figures) for name in figures[0]})


def _hold(costs: Costs, hotels: Hotels) -> bool:
    """Print each bar that there are figures for; return whether all of them hold."""
    all_hold = True
    for state, name, times in BARS:
        if (SLUICE, state) in costs and (name, state) in costs:
            ratio = _middle(costs[name, state]).cpu / _middle(costs[SLUICE, state]).cpu
            all_hold &= ratio >= times
            print(f"{SCENARIOS[state]}: {ratio:.1f} times as fast as {name}; at least {times} {_verdict(ratio >= times)}")
    for state, name, times in FLOORS:
        if (SLUICE, state) in costs and (name, state) in costs:
            ratio = _middle(costs[SLUICE, state]).cpu / _middle(costs[name, state]).cpu
            all_hold &= ratio <= times
            print(f"{SCENARIOS[state]}: {ratio:.1f} times as much as {name}; at most {times} {_verdict(ratio <= times)}")
    if (SLUICE, "second") in costs:
        wal = _middle(costs[SLUICE, "second"]).wal / hotels.facts("second").hotels
        all_hold &= wal < FEWEST_WAL
        print(f"write-ahead log of a second sync: {wal:.0f} bytes a record; below {FEWEST_WAL} {_verdict(wal < FEWEST_WAL)}")
    return all_hold


def _verdict(holds: bool) -> str:
    return "holds" if holds else "DOES NOT HOLD"


if __name__ == "__main__":
    sys.exit(main())
