"""`sluice new`: what it writes is valid as it is, and it overwrites nothing."""

import ast
import io
import json
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml

from sluice.adapters.spec_files import SpecFiles
from sluice.cli.drafting import placing
from sluice.cli.drafting.asking import drafted_by
from sluice.cli.drafting.choices import FORMATS, MEANINGS, Kind, Paging, Shards
from sluice.cli.drafting.look import drafted
from sluice.cli.drafting.stages_file import with_stage
from sluice.errors import SpecInvalid, UsageInvalid
from sluice.mapping.proposals import proposals
from tests.unit.cli.conftest import Invoke

STAGES = "stages:\n  hotel-content: {}\n"


def kinds() -> list[Any]:
    """Return each kind of source with each way of paging or format, and each kind of sharding."""
    ways = [("rest", "paging", way) for way in get_args(Paging)] + [("files", "format", way) for way in FORMATS]
    ways += [("sql", "table", "Guest List"), ("code", "code", "suppliers.Hotels")]
    return [
        pytest.param(kind, option, way, shards, id=f"{kind}-{way}-{shards}")
        for (kind, option, way), shards in product(ways, get_args(Shards))
        if kind != "files" or shards == "none"
    ]


@pytest.mark.parametrize(("kind", "option", "way", "shards"), kinds())
def test_what_is_written_is_valid_as_it_is(kind: Kind, option: str, way: str, shards: str) -> None:
    """Every kind of source goes with every way of paging and every kind of sharding, as far as they go together at all."""
    is_files = kind == "files"
    can_increment = not is_files and shards != "windows"
    options = {
        "kind": kind,
        option: way,
        "shards": None if is_files else shards,
        "stage": "hotel-content",
        "key": ["id", "rate.code"],
        "version": "updatedAt",
        "watermark": "updatedAt" if can_increment else None,
        "schedule": "@daily",
    }
    draft = drafted_by("guests", options, [], is_there=False)
    with drafted(draft, STAGES) as include:
        spec = SpecFiles(include).sync("guests")
    assert spec.source.kind == kind
    assert (spec.shards.kind if spec.shards else "none") == shards
    assert spec.object.key == ("id", "code")
    assert (spec.object.version, spec.schedule) == ("updated_at", "@daily")
    assert (spec.watermark is not None) is can_increment
    assert getattr(getattr(spec.source, "cursor", None), "kind", None) == (way if kind == "rest" else None)
    if query := getattr(spec.source, "query", None) if kind == "sql" else None:
        assert 'select * from "Guest List"\n' in query


def test_the_least_that_can_be_said(invoke: Invoke, project: Path) -> None:
    """A name is enough; the files stand where they belong, and what was there stands as it was."""
    before = (project / "include/stages.yaml").read_text(encoding="utf-8")
    done = invoke("new", "room_rates", "--no-look")
    assert done.exit_code == 0, done.stderr
    assert "wrote include/syncs/room_rates.yaml, dags/room_rates.py, include/stages.yaml" in done.stdout
    assert "export AIRFLOW_CONN_ROOM_RATES_SUPPLIER=" in done.stdout
    assert "sluice try room_rates" in done.stdout
    assert invoke("validate").exit_code == 0

    after = (project / "include/stages.yaml").read_text(encoding="utf-8")
    assert after.startswith(before.rstrip("\n"))
    assert "room-rates" in SpecFiles(project / "include").stages()
    tree = ast.parse((project / "dags/room_rates.py").read_text(encoding="utf-8"))
    assert ast.unparse(tree.body[-1]) == "dag = sync_dag('room_rates')"
    assert not list(project.rglob(".*.new"))

    again = invoke("new", "room_rates", "--no-look")
    assert (again.exit_code, "include/syncs/room_rates.yaml is already there" in again.stderr) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["Hotels"], "'Hotels' is no name for a sync"),
        (["import"], "'import' is no name for a sync"),
        (["a", "--kind", "ftp"], "--kind 'ftp' is not one of rest, sql, files, code"),
        (["a", "--kind", "sql", "--paging", "link"], "--paging is for --kind rest, not for sql"),
        (["a", "--kind", "files", "--watermark", "x"], "--watermark is for --kind rest or sql or code, not for files"),
        (["a", "--path", "hotels?x=1"], "has to begin with /"),
        (["a", "--kind", "files", "--shards", "ranges"], "--shards is for --kind rest or sql or code, not for files"),
        (["a", "--schedule", "daily"], "'daily' is no cron expression"),
        (["a", "--target", "Some Table"], "in lower case"),
        (["a", "--stage", "Not A Stage"], "'Not A Stage'"),
    ],
)
def test_what_does_not_go_together_is_refused(invoke: Invoke, project: Path, arguments: list[str], message: str) -> None:
    """Nothing is written then."""
    before = sorted(project.rglob("*"))
    done = invoke("new", *arguments, "--no-look")
    assert (done.exit_code, message in done.stderr) == (2, True), done.stderr
    assert sorted(project.rglob("*")) == before


def test_whoever_sits_at_a_terminal_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty answer takes what is proposed, a wrong one is asked for again; what an option says is not asked for."""
    said = ["ftp", "rest", "", "/v1/hotels", "page", "data.items", "id, chain", "", "thirds", "values", "hotel-content", "", ""]
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in said)))
    draft = drafted_by("hotels", {"version": "rev"}, ["hotel-content"], is_there=True)
    assert (draft.kind, draft.connection, draft.path, draft.paging) == ("rest", "hotels_supplier", "/v1/hotels", "page")
    assert (draft.records, draft.key, draft.version, draft.watermark) == ("data.items", ("id", "chain"), "rev", None)
    assert (draft.shards, draft.stage, draft.target, draft.schedule) == ("values", "hotel-content", "public.hotels", None)
    assert {"kind": get_args(Kind), "paging": get_args(Paging), "shards": get_args(Shards)} == {
        name: tuple(words) for name, words in MEANINGS.items()
    }


def test_a_supplier_that_cannot_be_asked_hinders_nothing(invoke: Invoke, project: Path) -> None:
    """Without its connection the fields are left to the person, and it is said why."""
    done = invoke("new", "rates", "--json")
    assert done.exit_code == 0, done.stderr
    document = json.loads(done.stdout)
    assert (document["records_seen"], "rates_supplier" in document["not_looked"]) == (0, True)
    assert (project / "include/syncs/rates.yaml").exists()


def test_all_files_or_none(tmp_path: Path) -> None:
    """Where one cannot be written, the others are as they were."""
    (tmp_path / "stages.yaml").write_text("before", encoding="utf-8")
    (tmp_path / "dags").write_text("a file, where a folder should be", encoding="utf-8")
    texts = {tmp_path / "stages.yaml": "after", tmp_path / "a.yaml": "new", tmp_path / "dags/a.py": "new"}
    with pytest.raises(OSError, match="dags"):
        placing.place(texts)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dags", "stages.yaml"]
    assert (tmp_path / "stages.yaml").read_text(encoding="utf-8") == "before"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, ["new"]),
        ("stages:\n  a: {}", ["a", "new"]),
        ("stages:\n    a:\n        retry:\n            attempts: 3\n\n# of the defaults\ndefaults: {}\n", ["a", "new"]),
        ("defaults: {}\nstages:\n  a: # the first\n", ["a", "new"]),
    ],
)
def test_a_stage_is_added_behind_the_others(text: str | None, expected: list[str]) -> None:
    """All else stands as it stood, comments included."""
    after = with_stage(text, "new", "of the new sync")
    assert after is not None
    assert list(yaml.safe_load(after)["stages"]) == expected
    lines = iter(after.splitlines())
    assert all(line in lines for line in (text or "").splitlines())


def test_a_stage_that_is_there_or_cannot_be_added() -> None:
    """It is not written twice, nor into a file that is not in lines."""
    assert with_stage("stages:\n  a: {}\n", "a", "") is None
    for text in ("stages: {a: {}}\n", "defaults: {}\n", "[1, 2", "stages:\n"):
        with pytest.raises(UsageInvalid, match="declare the stage new there by hand"):
            with_stage(text, "new", "")


def test_what_was_seen_cannot_break_out_of_its_line() -> None:
    """A supplier's keys stand in quotes, what was found in comments."""
    record = json.dumps({"id": "a\nb: \u2028c", 'a.b": [': "# x", "évil: {": 1}, ensure_ascii=False).encode()
    plain = drafted_by("hotels", {"stage": "hotel-content"}, [], is_there=False)
    draft = replace(plain, seen=tuple(proposals([record])), notes=("a\nb: c",))
    with drafted(draft, STAGES) as include:
        spec = SpecFiles(include).sync("hotels")
    assert {field.keys for field in spec.fields} == {("id",), ('a.b": [',), ("évil: {",)}


def test_no_value_of_a_supplier_is_written() -> None:
    """A spec is committed, and values may be personal: only how often a field has one is told."""
    records = [b'{"id": 4711, "name": "Ada Canary", "vat": null}', b'{"id": 4712, "name": null, "vat": null}']
    plain = drafted_by("hotels", {"stage": "hotel-content"}, [], is_there=False)
    text = replace(plain, seen=tuple(proposals(records))).spec_text
    assert [line.strip() for line in text.splitlines() if line.startswith("  - {")] == [
        "- { name: id, type: integer } # what identifies an object",
        "- { name: name, type: text } # in 1 of 2 records",
        "- { name: vat, type: text } # check: null in all records looked at",
    ]
    assert not any(value in text for value in ("4711", "4712", "Canary"))


def test_keys_that_yaml_or_fields_do_not_take() -> None:
    """A word that YAML reads as something else is quoted; what has no name, as the first column of many a CSV, is left out."""
    record = json.dumps({"no": 1, "on": 2, "null": 3, "": 4, "below": {"": 5, "true": 6}}).encode()
    plain = drafted_by("hotels", {"stage": "hotel-content", "key": ["no"], "version": "on"}, [], is_there=False)
    with drafted(replace(plain, seen=tuple(proposals([record]))), STAGES) as include:
        spec = SpecFiles(include).sync("hotels")
    assert [field.keys for field in spec.fields] == [("no",), ("on",), ("null",), ("below", "true")]
    assert (spec.object.key, spec.object.version) == (("no",), "on")


def test_an_invalid_draft_is_told_by_line() -> None:
    """What cannot be known before the files are read is told as `sluice validate` tells it."""
    draft = drafted_by("hotels", {"stage": "unknown"}, [], is_there=False)
    with pytest.raises(SpecInvalid, match=r"include/syncs/hotels.yaml:\d+: stage: no stage 'unknown'"), drafted(draft, STAGES):
        pass
