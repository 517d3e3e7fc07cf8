"""What the fields of a sync say that contradicts itself: each mistake told with its line and its mend."""

import subprocess
import sys
from pathlib import Path

import pytest

from sluice.adapters.spec_files import SpecFiles
from sluice.errors import SpecInvalid
from tests.support.servers import PROJECT

SPEC = """\
sync: demo
stage: content
source:
  kind: rest
  connection: supplier
  path: /items
  query: {since: "{{ watermark }}"}
  cursor: {kind: none}
  watermark: at
object: {key: [KEY]}
fields:
  - {name: id, type: text}
  - {name: at, type: timestamptz}
  - FIELD
target: {table: items}
"""


def problems(tmp_path: Path, field: str, key: str = "id", more: str = "") -> list[str]:
    """Return what is wrong with a sync that has this field, from the line on."""
    (tmp_path / "syncs").mkdir(exist_ok=True)
    (tmp_path / "stages.yaml").write_text("stages: {content: {}}")
    (tmp_path / "syncs" / "demo.yaml").write_text(SPEC.replace("FIELD", field).replace("KEY]", f"{key}]{more}"))
    return [line.split(":", 1)[1].replace("14: fields[2]", "") for line in SpecFiles(tmp_path).check("demo")]


SOUND = [
    "{name: a, type: text, path: 'rooms[0].code'}",
    "{name: a, type: 'text[]', path: 'rooms[*].code', min_length: 1, max_length: 9}",
    "{name: a, type: json, path: [x.y, 0, '[*]', z]}",
    "{name: a, type: json, rest: true}",
    "{name: a, type: 'numeric(5,2)', default: 1.5, minimum: 0, maximum: 99.25}",
    "{name: a, type: numeric, default: '0.12345678901234567890'}",
    "{name: a, type: bigint, minimum: 9223372036854775806}",
    "{name: a, type: date, format: '%d.%m.%Y', minimum: '2000-01-01'}",
    "{name: a, type: timestamptz, format: '%d.%m.%Y %H:%M', zone: Europe/Berlin}",
    "{name: a, type: timestamptz, zone: Europe/Berlin, default: '2024-01-01T00:00:00Z'}",
    "{name: a, type: boolean, lower: true, map: {yes: true, 'no': false, unknown: null}}",
    "{name: a, type: integer, lower: true, map: {one: 1}}",
    "{name: a, type: text, coalesce: [b, 'c.d'], default: none, allowed: [none, some]}",
    "{name: a, type: text, concat: [b, {text: ', '}, 'c[0]'], pattern: '[a-z, ]*'}",
    "{name: a, type: text, constant: x, description: of all}",
    "{name: a, type: 'integer[]', default: []}",
    "{name: a, type: boolean, constant: false}",
]


@pytest.mark.parametrize("field", SOUND)
def test_sound(tmp_path: Path, field: str) -> None:
    """Nothing is wrong with what makes sense."""
    assert problems(tmp_path, field) == []


SCALARS = "text, integer, bigint, numeric, double precision, boolean, date, timestamptz, uuid"
ORDERED = "integer, bigint, numeric, double precision, date, timestamptz"
LENGTHY = "text, bigint[], boolean[], date[], double precision[], integer[], numeric[], text[], timestamptz[], uuid[]"
LONG = "0.1000000000000000055511151231257827"
MISTAKES = [
    (
        "type: text, constant: x, path: b",
        [".path: a value comes from one place, and constant says which: leave one of the two out"],
    ),
    (
        "type: text, path: b, coalesce: [c]",
        [".coalesce: a value comes from one place, and path says which: leave one of the two out"],
    ),
    ("type: text, constant: x, required: true", [".required: says nothing beside constant: leave this line out"]),
    ("type: text, constant: null", [".constant: is null: leave this line out"]),
    ("type: json, rest: true, default: {}", [".default: says nothing beside rest: leave this line out"]),
    ("type: text, rest: true", [".rest: is not of text; allowed: of json"]),
    (
        "type: text, default: x, required: true",
        [".required: never rejects, since default stands in where there is no value: leave one out"],
    ),
    ("type: json, map: {a: b}", [f".map: is not of json; allowed: of {SCALARS}"]),
    ("type: json, concat: [b, c]", [f".concat: is not of json; allowed: of {SCALARS}"]),
    ("type: integer, lower: true", [".lower: is not of integer; allowed: of text, boolean"]),
    ("type: integer, max_length: 0", [f".max_length: is not of integer; allowed: of {LENGTHY}"]),
    ("type: json, minimum: 0", [f".minimum: is not of json; allowed: of {ORDERED}"]),
    ("type: text, pattern: a, default: b", ['.default: breaks a rule of the field\'s own: "b" does not match pattern: a']),
    (
        "type: text, pattern: a, allowed: [b]",
        ['.allowed[0]: breaks a rule of the field\'s own: "b" does not match pattern: a'],
    ),
    (
        "type: text, lower: true, map: {ΟΔΟΣ: street}",
        [".map.ΟΔΟΣ: 'ΟΔΟΣ' never comes, since lower: true is done before: write 'οδοσ'"],
    ),
    ("type: integer, pattern: '[0-9]+'", [".pattern: is not of integer; allowed: of text"]),
    ("type: text, minimum: a", [f".minimum: is not of text; allowed: of {ORDERED}"]),
    ("type: integer, minimum: 5, maximum: 4", [".minimum: 5 is above maximum: 4"]),
    ("type: 'numeric(5,2)', minimum: 0.001", ['.minimum: "0.001" has more than 2 fractional digits']),
    ("type: date, maximum: soon", ['.maximum: "soon" is no date (YYYY-MM-DD)']),
    ("type: text, min_length: 5, max_length: 4", [".min_length: 5 is above max_length: 4"]),
    ("type: text, pattern: '('", [".pattern: is no regular expression of RE2: missing ): ("]),
    ("type: text, pattern: 'a)|(b'", [".pattern: is no regular expression of RE2: unexpected ): a)|(b"]),
    ("type: text, pattern: '(?=a)'", [".pattern: is no regular expression of RE2: invalid perl operator: (?="]),
    ("type: text, allowed: [1]", [".allowed[0]: 1 is a number, and text is written in quotes"]),
    ("type: integer, allowed: [1, x]", ['.allowed[1]: "x" is no integer']),
    ("type: integer, allowed: [1, null]", [".allowed[1]: is null, which needs no rule: leave it out"]),
    ("type: integer, allowed: [1, 9], maximum: 5", [".allowed[1]: breaks a rule of the field's own: 9 is above maximum: 5"]),
    ("type: 'text[]', allowed: [a]", [f".allowed: is not of text[]; allowed: of {SCALARS}"]),
    ("type: integer, default: x", ['.default: "x" is no integer']),
    ("type: integer, default: 1.5", ['.default: "1.5" is not a whole number']),
    ("type: text, default: 007", [".default: 7 is a number, and text is written in quotes"]),
    ("type: text, default: true", [".default: true is a truth value, which text is not: write a text in quotes"]),
    (
        "type: text, default: abc, max_length: 2",
        ['.default: breaks a rule of the field\'s own: "abc" is longer than max_length: 2'],
    ),
    (
        f"type: numeric, default: {LONG}",
        [f".default: {LONG} has more digits than YAML keeps of a number: write '{LONG}' in quotes"],
    ),
    ("type: boolean, map: {a: maybe}", ['.map.a: "maybe" is neither true nor false']),
    ("type: text, map: {a: 1}", [".map.a: 1 is a number, and text is written in quotes"]),
    ("type: text, lower: true, map: {A: x}", [".map.A: 'A' never comes, since lower: true is done before: write 'a'"]),
    ("type: text, path: 'b[*]'", [".path: [*] yields a list, and text is none; allowed: of json and of arrays"]),
    (
        "type: text, path: 'b[x]'",
        [".path: 'b[x]' has a bracket that is neither [number] nor [*]: write a list of steps, each in quotes"],
    ),
    ("type: text, path: '[0].b'", [".path: has to begin with a key: a record is an object"]),
    (
        "type: text, path: [b, 1.5]",
        [".path[1]: 1.5 is no step: a key, the number of an array's item, or '[*]' for all its items"],
    ),
    ("type: text, path: [b, -1]", [".path[1]: is -1, but has to be a number from 0 to 999999"]),
    ("type: text, concat: [b, {txt: x}]", ['.concat[1]: has to be a path, or a text of its own: { text: ", " }']),
    ("type: text, concat: [b, c..d]", [".concat[1]: may not be empty"]),
    ("type: text, concat: [{text: x}]", [".concat: has no path: what is the same for all records is a constant"]),
    ("type: text, concat: [b, []]", [".concat[1]: may not be empty"]),
    ("type: text, coalesce: [b, []]", [".coalesce[1]: may not be empty"]),
    ("type: text, coalesce: []", [".coalesce: may not be empty"]),
    ("type: text, map: {}", [".map: may not be empty"]),
    ("type: text, map: {a: [b]}", [".map.a: has to be a text, a number, true, false, or null"]),
    ("type: date, format: soon", [": format: unknown value 'soon'; allowed: epoch_s, epoch_ms, or a pattern such as %d.%m.%Y"]),
    ("type: date, format: '%d.%m'", [": format: %d.%m tells no year (%Y)"]),
    ("type: date, format: '%m.%Y'", [": format: %m.%Y does not tell year, month and day"]),
    ("type: date, format: '%d.%m.%Y %z'", [": format: %d.%m.%Y %z has an offset (%z), and a date has none"]),
    ("type: date, format: '%x'", [": format: %x uses %x, which means something else on other machines: write out its parts"]),
    (
        "type: date, format: '%Y-%m-%d %q'",
        [": format: %Y-%m-%d %q is no pattern: 'q' is a bad directive in format '%Y-%m-%d %q'"],
    ),
    ("type: integer, format: '%Y'", [": format: %Y is of date and timestamptz fields, and this one is integer"]),
    ("type: timestamptz, format: '%d.%m.%Y %H:%M'", [": zone: missing: %d.%m.%Y %H:%M tells no offset (%z)"]),
    ("type: timestamptz, format: '%Y-%m-%d %z', zone: Europe/Berlin", [": zone: what is written as %Y-%m-%d %z needs none"]),
    ("type: timestamptz, format: epoch_s, zone: Europe/Berlin", [": zone: what is written as epoch_s needs none"]),
    (
        "type: timestamptz, format: '%Y-%m-%d %I:%M', zone: Europe/Berlin",
        [
            ": format: %Y-%m-%d %I:%M does not tell the time of day: %H before %M before %S before %f, and %p beside %I",
        ],
    ),
    ("type: timestamptz, zone: Berlin", [".zone: 'Berlin' is no time zone such as Europe/Berlin"]),
    ("type: text, zone: Europe/Berlin", [": zone: is of timestamptz fields, and this one is text"]),
    ("type: text, min_length: 0", [".min_length: is 0, but has to be at least 1"]),
]


@pytest.mark.parametrize(("keys", "told"), MISTAKES)
def test_mistakes(tmp_path: Path, keys: str, told: list[str]) -> None:
    """Each is told with its key, and how it is mended."""
    assert problems(tmp_path, f"{{name: a, {keys}}}") == told


@pytest.mark.parametrize(
    ("field", "told"),
    [
        ("{name: a, type: text, default: x}", ".default: 'a' is part of object.key: all objects without one would be the same"),
        (
            "{name: a, type: text, constant: x}",
            ".constant: 'a' is part of object.key: all objects without one would be the same",
        ),
    ],
)
def test_a_key_is_the_suppliers_own(tmp_path: Path, field: str, told: str) -> None:
    """Nothing stands in for what tells objects apart; it may well be put together of parts."""
    assert problems(tmp_path, field, key="a") == [told]
    assert problems(tmp_path, "{name: a, type: text, concat: [b, {text: /}, c]}", key="a") == []


@pytest.mark.parametrize("key", ["constant", "default"])
def test_what_says_that_objects_are_gone_is_the_suppliers_own(tmp_path: Path, key: str) -> None:
    """Nothing stands in for it: without its word, an object would be gone that is there."""
    field = f"{{name: gone, type: boolean, {key}: true}}"
    told = f".{key}: 'gone' is object.deleted: an object is gone only if its record says so"
    assert problems(tmp_path, field, more=", deleted: gone") == [told]


@pytest.mark.parametrize(
    "more", ["default: '2024-01-01T00:00:00Z'", "coalesce: [a, b]", "lower: true, map: {x: y}", "constant: x", "default: 0"]
)
def test_a_watermark_is_the_suppliers_own(tmp_path: Path, more: str) -> None:
    """It goes back to the supplier, who has to know it again."""
    text = SPEC.replace("{name: at, type: timestamptz}", f"{{name: at, type: text, {more}}}").replace(
        "FIELD", "{name: b, type: text}"
    )
    (tmp_path / "syncs").mkdir()
    (tmp_path / "stages.yaml").write_text("stages: {content: {}}")
    (tmp_path / "syncs" / "demo.yaml").write_text(text.replace("KEY", "id"))
    key = more.partition(":")[0]
    told = f"13: fields[1].{key}: 'at' is the watermark, whose values go back to the supplier as they came"
    assert told in [line.split(":", 1)[1] for line in SpecFiles(tmp_path).check("demo")]


def test_a_watermark_goes_back_on_the_suppliers_clocks(tmp_path: Path) -> None:
    """What is stored in UTC would, to a supplier that goes by its own clocks, be hours later."""
    (tmp_path / "syncs").mkdir()
    (tmp_path / "stages.yaml").write_text("stages: {content: {}}")
    text = SPEC.replace("  - FIELD\n", "").replace("KEY", "id").replace("timestamptz}", "timestamptz, zone: America/New_York}")
    (tmp_path / "syncs" / "demo.yaml").write_text(text)
    mend = "let it be text, with source.watermark type: instant and zone: America/New_York"
    (told,) = SpecFiles(tmp_path).check("demo")
    assert told.split(":", 1)[1] == f"13: fields[1].zone: 'at' is the watermark: {mend}"
    mended = text.replace("timestamptz, zone: America/New_York", "text").replace(
        "watermark: at", "watermark: {fields: [at], type: instant, zone: America/New_York}"
    )
    (tmp_path / "syncs" / "demo.yaml").write_text(mended)
    assert SpecFiles(tmp_path).check("demo") == []


def test_one_rest(tmp_path: Path) -> None:
    """Two would hold the same."""
    told = problems(tmp_path, "{name: a, type: json, rest: true}\n  - {name: b, type: json, rest: true}")
    assert told == ["15: fields[3].rest: stands twice; the first is fields[2]"]


def test_the_documented_fields_are_sound(tmp_path: Path) -> None:
    """What `docs/fields.md` shows can be used as it stands."""
    shown = (PROJECT / "docs" / "fields.md").read_text().partition("```yaml\n")[2].partition("```")[0]
    text = (
        SPEC.partition("fields:")[0].replace("KEY", "id")
        + shown
        + "  - { name: at, type: timestamptz }\ntarget: {table: items}\n"
    )
    (tmp_path / "syncs").mkdir()
    (tmp_path / "stages.yaml").write_text("stages: {content: {}}")
    (tmp_path / "syncs" / "demo.yaml").write_text(text)
    assert SpecFiles(tmp_path).check("demo") == []


LIGHT = """
import sys
from pathlib import Path
from sluice.adapters.spec_files import SpecFiles
assert SpecFiles(Path(sys.argv[1])).sync("demo", tries_patterns=False).fields[2].default == "x"
print(sorted({"pandas", "pyarrow", "numpy"} & set(sys.modules)))
"""


def test_rules_are_checked_without_what_is_heavy(tmp_path: Path) -> None:
    """A DAG file reads its spec, too, each time it is parsed; that a pattern is none is told by all others who do."""
    field = "{name: a, type: text, lower: true, map: {b: x}, default: x, allowed: [x], max_length: 9, pattern: '('}"
    assert problems(tmp_path, field) == [".pattern: is no regular expression of RE2: missing ): ("]
    told = subprocess.run([sys.executable, "-c", LIGHT, tmp_path], check=True, capture_output=True, text=True).stdout
    assert told == "[]\n"
    with pytest.raises(SpecInvalid, match="pattern: is no regular expression"):
        SpecFiles(tmp_path).sync("demo")
