"""Spec files: what is read, and how every mistake is told."""
# ruff: noqa: E501 - the tables of mistakes read better with one on each line

import shutil
from pathlib import Path

import pytest

from sluice.adapters.spec_files import SpecFiles
from sluice.adapters.spec_problems import suggest
from sluice.errors import SpecInvalid
from sluice.model.fields import TypeName

PROJECT = Path(__file__).parents[3]
HOTELS = (PROJECT / "include/syncs/hotels.yaml").read_text()

SPEC = """\
sync: demo
stage: hotel-content
source:
  kind: rest
  connection: supplier
  path: /items
  query:
    region: "{{ shard.region }}"
    since: "{{ watermark }}"
  records: items
  cursor: {path: next, parameter: cursor}
  watermark: changed
shards:
  kind: values
  name: region
  values: [a, b]
object:
  key: [id]
  version: changed
fields:
  - {name: id, type: text}
  - {name: note, type: json}
  - {name: score, type: double precision}
  - {name: changed, type: timestamptz}
target: {table: items}
"""


@pytest.fixture
def include(tmp_path: Path) -> Path:
    """Return an `include` folder with the stages of the project and no sync."""
    folder = tmp_path / "include"
    (folder / "syncs").mkdir(parents=True)
    shutil.copy(PROJECT / "include/stages.yaml", folder)
    return folder


def problems(include: Path, text: str | bytes) -> list[str]:
    """Return what is wrong with a sync, without the file's name in front."""
    data = text.encode() if isinstance(text, str) else text
    (include / "syncs/demo.yaml").write_bytes(data)
    found = SpecFiles(include).check("demo")
    assert all(line.startswith("include/syncs/demo.yaml:") for line in found)
    return [line.removeprefix("include/syncs/demo.yaml:") for line in found]


def change(old: str, new: str) -> str:
    """Return the sound spec with one passage changed."""
    assert SPEC.count(old) == 1, old
    return SPEC.replace(old, new)


def test_the_projects_own_files_are_sound() -> None:
    """Nothing is wrong with the files this repository ships, and they say what they should."""
    files = SpecFiles(PROJECT / "include")
    assert files.check() == []
    spec = files.sync("hotels")
    assert spec.target.table == "public.hotels"
    assert spec.field("latitude").paths == (("location", "lat"),)
    assert spec.field("longitude").type.sql == "numeric(10,7)"
    assert spec.field("rooms").type.name is TypeName.INTEGER
    assert spec.review.first_load == "auto-approve"


def test_the_sound_spec_is_sound(include: Path) -> None:
    """The spec that the other tests break is in order before they do."""
    assert problems(include, SPEC) == []


ONE_MISTAKE = {
    "unknown key": ("  records: items", "  recrods: items", ["10: source.recrods: unknown key; did you mean 'records'? allowed: watermark, kind, connection, method, path, query, headers, body, records, error, cursor, detail, auth, allow_hosts"]),
    "missing key": ("  path: /items\n", "", ["3: source.path: missing: path below the connection's host"]),
    "query in the path": ("path: /items", "path: /items?x=1", ["6: source.path: '/items?x=1' has to begin with / and hold no ?, # or control sign: parameters belong under query"]),
    "missing key of an item": ("{name: note, type: json}", "{name: note}", ["22: fields[1].type: missing: the column's type in Postgres"]),
    "missing section": ("target: {table: items}\n", "", ["1: target: missing"]),
    "unknown type": ("type: json", "type: txt", ["22: fields[1].type: unknown type 'txt'; allowed: text, integer, bigint, numeric, double precision, boolean, date, timestamptz, uuid, json, numeric(precision,scale), and arrays of all but json, such as text[]"]),
    "scale beyond precision": ("type: json", 'type: "numeric(2,3)"', ["22: fields[1].type: the scale of a numeric may not exceed its precision"]),
    "precision out of range": ("type: json", "type: numeric(1001)", ["22: fields[1].type.precision: is 1001, but has to be at most 1000"]),
    "no value": ("target:", "review: {block: {deleted: null}}\ntarget:", ["25: review.block.deleted: null is no limit: a whole number of objects, a share up to 100%, or both: 0, 500, 0.5% or { count: 500, share: 5% }"]),
    "number for text": ('"{{ shard.region }}"', "5\n    x: '{{ shard.region }}'", ["8: source.query.region: has to be text, not the number 5: write '5' in quotes"]),
    "text for a list": ("key: [id]", "key: id", ["18: object.key: has to be a list, not the text 'id'"]),
    "empty list": ("values: [a, b]", "values: []", ["16: shards.values: may not be empty"]),
    "value twice": ("values: [a, b]", "values: [a, a]", ["13: shards: each value may stand only once"]),
    "nothing for a mapping": ("target: {table: items}", "target:", ["25: target: has to be a mapping with the keys connection, table, form, deletes, evolution, not nothing"]),
    "enum": ("{table: items}", "{table: items, deletes: sof}", ["25: target.deletes: unknown value 'sof'; did you mean 'soft'? allowed: soft, hard, ignore"]),
    "table": ("table: items", "table: Items", ["25: target.table: a table is `name` or `schema.name`, in lower case"]),
    "own schema": ("table: items", "table: sluice_ledger.items", ["25: target.table: the schema sluice_ledger is not for published tables"]),
    "undeclared stage": ("hotel-content", "hotel-contents", ["2: stage: no stage 'hotel-contents' in include/stages.yaml; did you mean 'hotel-content'? declared: hotel-content, hotel-rates"]),
    "undeclared key field": ("key: [id]", "key: [idd]", ["18: object.key[0]: no field is named 'idd'; did you mean 'id'? declared: id, note, score, changed"]),
    "key field twice": ("key: [id]", "key: [id, id]", ["18: object.key[1]: 'id' stands twice"]),
    "json key": ("key: [id]", "key: [note]", ["18: object.key[0]: 'note' is json, which cannot identify an object; allowed: text, integer, bigint, numeric, boolean, date, timestamptz, uuid"]),
    "array for a key": ("key: [id]\n  version: changed\nfields:\n  - {name: id, type: text}", "key: [id]\n  version: changed\nfields:\n  - {name: id, type: 'text[]'}", ["18: object.key[0]: 'id' is text[], which cannot identify an object; allowed: text, integer, bigint, numeric, boolean, date, timestamptz, uuid"]),
    "array that orders": ("type: timestamptz", "type: 'timestamptz[]'", ["12: source.watermark: 'changed' is timestamptz[], which does not order; allowed: bigint, date, integer, text, timestamptz", "19: object.version: 'changed' is timestamptz[], which does not order; allowed: bigint, date, integer, timestamptz"]),
    "array that tells of a deletion": ("version: changed\nfields:\n  - {name: id, type: text}\n  - {name: note, type: json}", "deleted: note\nfields:\n  - {name: id, type: text}\n  - {name: note, type: 'boolean[]'}", ["19: object.deleted: 'note' is boolean[], which does not say whether an object is gone; allowed: boolean"]),
    "array of json": ("type: json", "type: 'json[]'", ["22: fields[1].type: unknown type 'json[]'; allowed: text, integer, bigint, numeric, double precision, boolean, date, timestamptz, uuid, json, numeric(precision,scale), and arrays of all but json, such as text[]"]),
    "double key": ("key: [id]", "key: [score]", ["18: object.key[0]: 'score' is double precision, which cannot identify an object; allowed: text, integer, bigint, numeric, boolean, date, timestamptz, uuid"]),
    "optional key": ("{name: id, type: text}", "{name: id, type: text, required: false}", ["21: fields[0].required: is part of object.key, so it is always required: leave this line out"]),
    "undeclared version": ("version: changed", "version: change", ["19: object.version: no field is named 'change'; did you mean 'changed'? declared: id, note, score, changed"]),
    "version that does not order": ("version: changed", "version: id", ["19: object.version: 'id' is text, which does not order; allowed: bigint, date, integer, timestamptz"]),
    "watermark that does not order": ("watermark: changed", "watermark: note", ["12: source.watermark: 'note' is json, which does not order; allowed: bigint, date, integer, text, timestamptz"]),
    "undeclared deletion": ("version: changed", "version: changed\n  deleted: gone", ["20: object.deleted: no field is named 'gone'; declared: id, note, score, changed"]),
    "deletion that is no truth": ("version: changed", "version: changed\n  deleted: note", ["20: object.deleted: 'note' is json, which does not say whether an object is gone; allowed: boolean"]),
    "deletion that is the key": ("  version: changed\nfields:\n  - {name: id, type: text}", "  deleted: id\nfields:\n  - {name: id, type: boolean}", ["19: object.deleted: 'id' is part of object.key: an object would become another one by being deleted"]),
    "hard deletes of a history": ("{table: items}", "{table: items, form: history, deletes: hard}", ["25: target.deletes: nothing is ever removed from a history; allowed: soft (ends the version), ignore"]),
    "undeclared watermark": ("watermark: changed", "watermark: x", ["12: source.watermark: no field is named 'x'; declared: id, note, score, changed"]),
    "field twice": ("{name: note, type: json}", "{name: id, type: json}", ["22: fields[1].name: 'id' stands twice; the first is fields[0]"]),
    "file name": ("sync: demo", "sync: other", ["1: sync: is 'other', but the file is demo.yaml: the two have to be the same"]),
    "unknown template name": ("{{ watermark }}", "{{ watermark }}{{ now }}", ["9: source.query.since: uses the unknown name 'now'; known: shard.region, window.start, window.end, watermark, until"]),
    "unknown part of the shard": ("shard.region", "shard.country", ["8: source.query.region: uses the unknown name 'shard.country'; known: shard.region, window.start, window.end, watermark, until"]),
    "part of what has none": ("{{ watermark }}", "{{ watermark.day }}", ["9: source.query.since: uses the unknown name 'watermark.day'; known: shard.region, window.start, window.end, watermark, until"]),
    "the shard as a whole": ("{{ shard.region }}", "{{ shard }}", ["8: source.query.region: uses the unknown name 'shard'; known: shard.region, window.start, window.end, watermark, until"]),
    "a global of Jinja": ("{{ watermark }}", "{{ watermark }}{{ range(9) }}", ["9: source.query.since: uses the unknown name 'range'; known: shard.region, window.start, window.end, watermark, until"]),
    "unknown filter": ("{{ watermark }}", "{{ watermark | nope }}", ["9: source.query.since: is no valid template: No filter named 'nope'."]),
    "template for no Python": ("{{ watermark }}", "{{ watermark.format(a=1, a=2) }}", ["9: source.query.since: is no valid template: keyword argument repeated: a"]),
    "broken template": ("{{ watermark }}", "{{ watermark", ["9: source.query.since: is no valid template: unexpected end of template, expected 'end of print statement'."]),
    "cursor parameter set twice": ("    since:", "    cursor: '1'\n    since:", ["9: source.query.cursor: is set by source.cursor.parameter: leave it out here"]),
    "watermark not used": ('    since: "{{ watermark }}"\n', "", ["11: source.watermark: no template of the source uses {{ watermark }}: every run would fetch all"]),
    "watermark not declared": ("  watermark: changed\n", "", ["9: source.query.since: uses {{ watermark }}, but source.watermark does not say which field that is"]),
    "shard not used": ("{{ shard.region }}", "x", ["14: shards.kind: no template of the source uses {{ shard.region }}: all shards are alike"]),
    "preset": ("stage: hotel-content", "stage: hotel-content\nschedule: '@dayly'", ["3: schedule: unknown preset '@dayly'; did you mean '@daily'? allowed: @hourly, @daily, @weekly, @monthly, @quarterly, @yearly, or a cron expression"]),
    "cron": ("stage: hotel-content", "stage: hotel-content\nschedule: 61 * * * *", ["3: schedule: '61 * * * *' is no cron expression: five parts (minute hour day month weekday), or one of @hourly, @daily, @weekly, @monthly, @quarterly, @yearly"]),
    "cron with seconds": ("stage: hotel-content", "stage: hotel-content\nschedule: '* * * * * *'", ["3: schedule: '* * * * * *' is no cron expression: five parts (minute hour day month weekday), or one of @hourly, @daily, @weekly, @monthly, @quarterly, @yearly"]),
    "version of the transformation": ("stage: hotel-content", "stage: hotel-content\nversion: 0", ["3: version: is 0, but has to be at least 1"]),
    "version beyond what is kept": ("stage: hotel-content", "stage: hotel-content\nversion: 2147483648", ["3: version: is 2147483648, but has to be at most 2147483647"]),
    "truth for a number": ("stage: hotel-content", "stage: hotel-content\nversion: true", ["3: version: has to be a whole number, not the truth value true"]),
    "duration": ("target:", "review: {timeout: 1 day}\ntarget:", ["25: review.timeout: '1 day' is no duration: a number and a unit, at most 36500d: 90s, 15m, 24h or 7d"]),
    "expectation": ("target:", "review: {block: {expect: [{field: prise, nulls_at_most: 1%}]}}\ntarget:", ["25: review.block.expect[0].field: no field is named 'prise'; declared: id, note, score, changed"]),
    "limit": ("target:", "review: {block: {deleted: 101%}}\ntarget:", ["25: review.block.deleted: '101%' is no limit: a whole number of objects, a share up to 100%, or both: 0, 500, 0.5% or { count: 500, share: 5% }"]),
    "empty path part": ("{name: note, type: json}", "{name: note, type: json, path: a..b}", ["22: fields[1].path[1]: may not be empty"]),
    "webhook twice": ("target:", "webhooks:\n  - {name: shop, connection: a, path: /x}\n  - {name: shop, connection: b, path: /y}\ntarget:", ["27: webhooks[1].name: 'shop' stands twice; the first is webhooks[0]"]),
    "webhook with a query": ("target:", "webhooks: [{name: shop, connection: a, path: '/x?y'}]\ntarget:", ["25: webhooks[0].path: '/x?y' has to begin with / and hold no ?, # or control sign: parameters belong under query"]),
    "unknown key of a webhook": ("target:", "webhooks: [{name: shop, connection: a, path: /x, on: published}]\ntarget:", ["25: webhooks[0].on: unknown key; allowed: name, connection, path"]),
    "empty part of records": ("records: items", "records: .items", ["10: source.records: '.items' has to be keys joined by single dots, and have no quotes, backslashes or control signs, or empty"]),
    "quote in records": ("records: items", "records: 'a.\"items'", ["10: source.records: 'a.\"items' has to be keys joined by single dots, and have no quotes, backslashes or control signs, or empty"]),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), ONE_MISTAKE.values(), ids=ONE_MISTAKE.keys())
def test_a_mistake_is_told_with_line_key_and_mend(include: Path, old: str, new: str, expected: list[str]) -> None:
    """One mistake gives one line: where it is, what is wrong, what is allowed."""
    assert problems(include, change(old, new)) == expected


def test_reserved_field_names_are_refused(include: Path) -> None:
    """A field cannot be named like Sluice's own columns."""
    found = problems(include, change("name: note", "name: _sluice_note"))
    assert "22: fields[1].name: '_sluice_note': names that begin with _sluice are Sluice's own" in found


@pytest.mark.parametrize("name", ["cmax", "cmin", "ctid", "tableoid", "xmax", "xmin"])
def test_names_of_system_columns_are_refused(include: Path, name: str) -> None:
    """No table could be made with such a column; what is called so at the supplier can be had under another name."""
    said = f"22: fields[1].name: {name!r} is a column that Postgres gives to every table: choose another name"
    assert problems(include, change("name: note", f"name: {name}")) == [f"{said}, and path: {name}"]
    assert problems(include, change("name: note", f"name: {name}, path: note")) == [said]
    assert problems(include, change("name: note", f"name: note, path: {name}")) == []


def test_all_mistakes_of_a_file_are_told_at_once(include: Path) -> None:
    """Mistakes in form, in single values and between the parts come together, in the order of their lines."""
    text = change("key: [id]", "key: [ident]").replace("type: json", "type: txt").replace("hotel-content", "nope")
    text = text.replace("  records: items\n", "  records: items\n  records: again\n")
    assert [line.split(": ")[0:2] for line in problems(include, text)] == [
        ["2", "stage"],
        ["11", "source.records"],
        ["19", "object.key[0]"],
        ["23", "fields[1].type"],
    ]


FORM = {
    "duplicate key": ("sync: demo\nsync: other\n", "2: sync: stands twice; the first is on line 1"),
    "tab": ("sync: demo\nsource:\n\tkind: rest\n", "3: a tab cannot indent YAML: use spaces"),
    "two documents": ("sync: demo\n---\nsync: demo\n", "2: a second document begins here; a file holds one"),
    "empty": ("# nothing\n", "1: the file has to hold a mapping (`key: value` lines), not nothing"),
    "list": ("- sync: demo\n", "1: the file has to hold a mapping (`key: value` lines), not a list"),
    "scalar": ("demo", "1: the file has to hold a mapping (`key: value` lines), not the text 'demo'"),
    "number as key": ("sync: demo\n1: x\n", "2: a key has to be text: write '1' in quotes"),
    "truth as key": ("true: x\n", "1: a key has to be text: write 'true' in quotes"),
    "list as key": ("? [a]\n: x\n", "1: a list cannot be a key"),
    "template without quotes": ("source:\n  path: {{ shard.x }}\n", "2: source.path: a mapping cannot be a key; a template has to stand in quotes: '{{ … }}'"),
    "alias": ("a: &x [1]\nb: *x\n", "2: b: aliases (*x) are not supported: write the value out"),
    "alias bomb": ("a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]\n", "2: b[0]: aliases (*a) are not supported: write the value out"),
    "merge key": ("a: &x {b: 1}\nc:\n  <<: *x\n", "3: c: aliases and merge keys are not supported: write the keys out"),
    "tag": ("a: !!python/object:os.system x\n", "1: a: tags (tag:yaml.org,2002:python/object:os.system) are not supported"),
    "preset without quotes": ("sync: demo\nschedule: @daily\n", "2: a value cannot begin with @: put it in quotes"),
    "open bracket": ("a: [1,\nb: 2\n", "3: not valid YAML: while parsing a flow sequence did not find expected ',' or ']', begun on line 1"),
    "control character": ("a: b\nc: \x07\n", "2: character U+0007 is not allowed in YAML"),
    "latin-1": ("a: b\nc: caf\xe9\n".encode("latin-1"), "2: byte 0xe9 is not UTF-8: save the file as UTF-8"),
    "too deep": ("a: " + "[" * 30 + "]" * 30, "1: a[0][0]: nested more than 20 levels deep"),
    "too large": ("a: " + "x" * 1_000_000, "1: the file has 1000003 bytes; at most 1000000 are read"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), FORM.values(), ids=FORM.keys())
def test_a_mistake_of_form_is_told(include: Path, text: str | bytes, expected: str) -> None:
    """What is not the YAML of one mapping is refused with its line."""
    assert expected in problems(include, text)


def test_values_are_read_as_yaml_1_2_reads_them(include: Path) -> None:
    """The country code `no` is text, and neither is 12:30 a number nor 2026-01-01 a date; a byte order mark is no matter."""
    assert problems(include, "\ufeff" + change("[a, b]", "[no, on, 12:30, 2026-01-01]")) == []
    spec = SpecFiles(include).sync("demo")
    assert spec.shards is not None
    assert spec.shards.values == ("no", "on", "12:30", "2026-01-01")


def test_a_sync_that_does_not_exist_names_those_that_do(include: Path) -> None:
    """Asking for an unknown name, or for a path outside the folder, lists the known names."""
    (include / "syncs/hotels.yaml").write_text(HOTELS)
    for name in ("hotel", "../stages", ""):
        with pytest.raises(SpecInvalid) as caught:
            SpecFiles(include).sync(name)
        assert caught.value.problems[0].startswith(f"include/syncs: no sync {name!r}; ")
        assert caught.value.problems[0].endswith("there are: hotels")


def test_one_bad_file_hinders_no_other(include: Path) -> None:
    """A sync can be read while another, and a stage it does not use, are broken; all names are listed."""
    (include / "syncs/demo.yaml").write_text(SPEC)
    (include / "syncs/bad.yaml").write_text("\t")
    (include / "stages.yaml").write_text("stages:\n  hotel-content:\n  other: {nope: 1}\n")
    files = SpecFiles(include)
    assert files.names() == ["bad", "demo"]
    assert files.sync("demo").sync == "demo"
    assert files.policy("hotel-content").groups == 32
    assert files.check("demo") == []
    with pytest.raises(SpecInvalid, match=r"stages\.yaml:3: stages\.other\.nope: unknown key"):
        files.policy("other")
    assert [line.split(": ")[0] for line in files.check()] == ["include/stages.yaml:3", "include/syncs/bad.yaml:1"]


def test_a_file_that_would_not_be_read_is_told(include: Path) -> None:
    """A sync in a .yml file is not passed over in silence."""
    (include / "syncs/demo.yml").write_text(SPEC)
    assert SpecFiles(include).check() == ["include/syncs/demo.yml:1: name it demo.yaml, or it is not read"]


def test_stages_inherit_the_defaults_key_by_key(include: Path) -> None:
    """A stage overrides single keys at any depth and keeps the others of `defaults`."""
    (include / "stages.yaml").write_text(
        "defaults:\n  retry: {attempts: 7, base: 2s}\n  groups: 5\nstages:\n  a:\n    retry: {base: 3s}\n  b:\n"
    )
    files = SpecFiles(include)
    assert files.policy("a").retry.model_dump(mode="json") == {"attempts": 7, "base": "3s", "cap": "1m"}
    assert files.policy("b").retry.model_dump(mode="json") == {"attempts": 7, "base": "2s", "cap": "1m"}
    assert files.policy("b").groups == 5


STAGES = {
    "in defaults, told once": ("defaults:\n  groups: 0\nstages:\n  a:\n  b:\n", ["2: defaults.groups: is 0, but has to be at least 1"]),
    "in a stage": ("defaults:\n  groups: 3\nstages:\n  a:\n    groups: many\n", ["5: stages.a.groups: has to be a whole number, not the text 'many'"]),
    "nothing for a timeout": ("stages:\n  a:\n    timeouts:\n      read: 0s\n", ["4: stages.a.timeouts.read: has to be more than 0s"]),
    "base over the default cap": ("defaults:\n  retry: {cap: 5s}\nstages:\n  a:\n    retry:\n      base: 10s\n", ["6: stages.a.retry.base: base is 10s, longer than cap, which is 5s"]),
    "cap under the default base": ("defaults:\n  retry: {base: 10s}\nstages:\n  a:\n    retry:\n      cap: 5s\n", ["6: stages.a.retry.cap: base is 10s, longer than cap, which is 5s"]),
    "both in defaults, told once": ("defaults:\n  retry: {base: 10s, cap: 5s}\nstages:\n  a:\n  b:\n", ["2: defaults.retry.base: base is 10s, longer than cap, which is 5s"]),
    "heartbeat against the lease": ("defaults:\n  lease_ttl: 30s\nstages:\n  a:\n    heartbeat: 10s\n", ["5: stages.a.heartbeat: heartbeat is 10s: it has to be below a third of lease_ttl, which is 30s, so that a lease outlives two heartbeats that got lost"]),
    "lease against the default heartbeat": ("stages:\n  a:\n    lease_ttl: 45s\n", ["3: stages.a.lease_ttl: heartbeat is 15s: it has to be below a third of lease_ttl, which is 45s, so that a lease outlives two heartbeats that got lost"]),
    "no progress against a slow answer": ("stages:\n  a:\n    no_progress_timeout: 70s\n", ["3: stages.a.no_progress_timeout: no_progress_timeout is 70s: it has to be longer than timeouts.read and chunk_age together, 70s, since one slow answer is no standstill"]),
    "a wait against the lease": ("stages:\n  a:\n    wait_timeout: 60s\n", ["3: stages.a.wait_timeout: wait_timeout is 1m: it has to be longer than lease_ttl, 1m, since who waits has to outlive the lease of a run that died"]),
    "idempotency against the longest run": ("stages:\n  a:\n    timeouts: {step: 3d}\n", ["3: stages.a.timeouts.step: idempotency_ttl is 7d: it has to last for the longest run, 9d ((task_retries + 1) x timeouts.step), and its retry window, 1m (task_retries x task_retry_delay), so that no call is repeated as if it were new"]),
    "state against artifacts": ("stages:\n  a:\n    state_ttl: 30d\n", ["3: stages.a.state_ttl: state_ttl is 30d, shorter than artifact_ttl, which is 90d: what points to artifacts has to outlive them"]),
    "alerts in order": ("stages:\n  a:\n    alerts: {warn: 5}\n", ["3: stages.a.alerts.warn: warn is 5, later than page, which is 3"]),
    "a share without its sign": ("stages:\n  a:\n    breaker: {failure_rate: 0.5}\n", ["3: stages.a.breaker.failure_rate: 0.5 is no share: a number and a percent sign, above 0% and up to 100%: 50% or 2.5%"]),
    "a wrong key hides no broken rule": ("stages:\n  a:\n    groups: 0\n    lease_ttl: 45s\n", ["3: stages.a.groups: is 0, but has to be at least 1", "4: stages.a.lease_ttl: heartbeat is 15s: it has to be below a third of lease_ttl, which is 45s, so that a lease outlives two heartbeats that got lost"]),
    "unknown key at the root": ("default:\n  groups: 3\nstages: {a: }\n", ["1: default: unknown key; did you mean 'defaults'? allowed: defaults, stages"]),
    "stage of the wrong shape": ("stages:\n  a: 5\n", ["2: stages.a: has to be a mapping with the keys lease_ttl, heartbeat, no_progress_timeout, wait_timeout, result_ttl, takeover, groups, max_parallel_shards, requests_per_second, task_retries, task_retry_delay, retry, breaker, timeouts, chunk_bytes, chunk_age, max_body, compression, local_cache, artifact_ttl, state_ttl, session_ttl, idempotency_ttl, log_level, alerts, not the number 5"]),
    "name of a stage": ("stages:\n  Hotel_Content:\n", ["2: stages.Hotel_Content: 'Hotel_Content' is no name for a stage: lower-case letters, digits and -"]),
    "no stages": ("defaults:\n  groups: 3\n", ["1: stages: missing"]),
    "stages as a list": ("stages: [a]\n", ["1: stages: has to be a mapping, not a list"]),
    "defaults as a list": ("defaults: [a]\nstages: {a: }\n", None),
    "size": ("stages:\n  a:\n    chunk_bytes: 16MiB\n", ["3: stages.a.chunk_bytes: '16MiB' is no size: a whole number of bytes, or one with a unit: 512kB, 16MB or 1GB"]),
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), STAGES.values(), ids=STAGES.keys())
def test_mistakes_of_stages_are_told_where_they_were_written(include: Path, text: str, expected: list[str] | None) -> None:
    """A wrong value is told once, at the line it stands on, be it in `defaults` or in a stage."""
    (include / "stages.yaml").write_text(text)
    found = [line.removeprefix("include/stages.yaml:") for line in SpecFiles(include).check()]
    if expected is None:
        assert found
        assert found[0].startswith("1: defaults: has to be a mapping with the keys ")
    else:
        assert found == expected


def test_a_stage_that_is_not_declared_names_those_that_are(include: Path) -> None:
    """Asking for the policy of an unknown stage lists the declared ones."""
    with pytest.raises(SpecInvalid, match=r"no stage 'hotel'; did you mean .*declared: hotel-content, hotel-rates"):
        SpecFiles(include).policy("hotel")


def test_no_stages_file_is_told(include: Path) -> None:
    """Without stages.yaml nothing can run, and that is what is said."""
    (include / "stages.yaml").unlink()
    assert problems_of_policy(include) == ["include/stages.yaml:1: there is no such file"]


def problems_of_policy(include: Path) -> list[str]:
    """Return what is wrong with the policy of a stage."""
    with pytest.raises(SpecInvalid) as caught:
        SpecFiles(include).policy("hotel-content")
    return caught.value.problems


def test_one_sync_is_checked_together_with_its_stage(tmp_path: Path) -> None:
    """Mistakes of a sync do not hide those of its stage: all are told at once."""
    include = tmp_path / "include"
    (include / "syncs").mkdir(parents=True)
    (include / "syncs/rooms.yaml").write_text("sync: rooms\nstage: hotel-content\nnonsense: 1\n", encoding="utf-8")
    (include / "stages.yaml").write_text("stages:\n  hotel-content:\n    lease_ttl: soon\n", encoding="utf-8")
    problems = SpecFiles(include).check("rooms")
    assert any(problem.startswith("include/syncs/rooms.yaml:3: nonsense") for problem in problems)
    assert any(problem.startswith("include/stages.yaml:3: stages.hotel-content.lease_ttl") for problem in problems)


def test_a_wrong_kind_is_told_alone(include: Path) -> None:
    """What may stand in a source depends on its kind, so nothing else is said of it before that is mended."""
    assert problems(include, SPEC.replace("kind: rest", "kind: rets")) == [
        "4: source.kind: unknown value 'rets'; did you mean 'rest'? allowed: rest, sql, files, code"
    ]


def test_a_name_is_never_suggested_for_itself(include: Path) -> None:
    """A file whose name is none says what is wrong with it."""
    (include / "syncs" / "UP per.yaml").write_text(SPEC)
    (problem,) = SpecFiles(include).check("UP per")
    assert "'UP per' is no name for a sync" in problem
    assert "did you mean" not in problem
    assert suggest("a", ["a"], "allowed") == "allowed: a"
