"""The rules of what makes a sync incremental: each mistake told with its line and its mend."""

from pathlib import Path

import pytest

from sluice.adapters.spec_files import SpecFiles

SPEC = """\
sync: demo
stage: content
source:
  kind: rest
  connection: supplier
  path: /items
  query: {since: "{{ watermark }}"}
  cursor: {kind: none}
  watermark: WATERMARK
object: {key: [id]}
fields:
  - {name: id, type: text}
  - {name: at, type: timestamptz}
  - {name: at2, type: timestamptz}
  - {name: epoch, type: timestamptz, format: epoch_s}
  - {name: day, type: date}
  - {name: seq, type: bigint}
  - {name: words, type: text}
  - {name: more, type: json}
target: {table: items}
"""


def problems(tmp_path: Path, watermark: str) -> list[str]:
    """Return what is wrong with a sync of this watermark, from the line on."""
    (tmp_path / "syncs").mkdir(exist_ok=True)
    (tmp_path / "stages.yaml").write_text("stages: {content: {}}")
    (tmp_path / "syncs" / "demo.yaml").write_text(SPEC.replace("WATERMARK", watermark))
    return [line.split(":", 1)[1] for line in SpecFiles(tmp_path).check("demo")]


SOUND = [
    "at",
    "{fields: [at, at2], lookback: 1h, margin: 5m}",
    "{fields: [epoch], lookback: 1h}",
    "{fields: [day], zone: Asia/Tokyo, lookback: 1d}",
    "{fields: [seq], lookback: 100}",
    "{fields: [words], type: instant, zone: Europe/London, lookback: 1h, margin: 1m}",
    "{fields: [words], type: integer, lookback: 7}",
    "{fields: [words], collation: numeric}",
    "{fields: [words], type: date}",
]


@pytest.mark.parametrize("watermark", SOUND)
def test_sound(tmp_path: Path, watermark: str) -> None:
    """Nothing is wrong with what makes sense."""
    assert problems(tmp_path, watermark) == []


MISTAKES = [
    ("more", "9: source.watermark: 'more' is json, which does not order; allowed: bigint, date, integer, text, timestamptz"),
    ("{fields: [at, day]}", "9: source.watermark: 'day' is not of the type and format of 'at': their values do not compare"),
    (
        "{fields: [at, epoch]}",
        "9: source.watermark: 'epoch' is not of the type and format of 'at': their values do not compare",
    ),
    (
        "{fields: [at], type: integer}",
        "9: source.watermark.type: 'at' is timestamptz, whose values are of type instant: leave this line out",
    ),
    (
        "{fields: [seq], collation: numeric}",
        "9: source.watermark.collation: the values are of type integer, and only texts have a collation: leave this line out",
    ),
    (
        "{fields: [at], zone: Europe/London}",
        "9: source.watermark.zone: the values of 'at' come with their offset: leave this line out",
    ),
    ("{fields: [seq], zone: Europe/London}", "9: source.watermark.zone: the values of 'seq' tell no time: leave this line out"),
    (
        "{fields: [seq], margin: 5m}",
        "9: source.watermark.margin: the values are of type integer, which tell no time: leave this line out",
    ),
    ("{fields: [words], lookback: 5m}", "9: source.watermark.lookback: nothing can be taken off a text: leave this line out"),
    (
        "{fields: [at], lookback: 5}",
        "9: source.watermark.lookback: the values are of type instant, so this has to be a duration such as 15m",
    ),
    (
        "{fields: [seq], lookback: 5m}",
        "9: source.watermark.lookback: the values are of type integer, so this has to be a whole number",
    ),
]


@pytest.mark.parametrize(("watermark", "told"), MISTAKES)
def test_mistakes(tmp_path: Path, watermark: str, told: str) -> None:
    """What cannot be meant is refused, with where it stands."""
    assert problems(tmp_path, watermark) == [told]


def test_a_format_is_of_instants_alone(tmp_path: Path) -> None:
    """A number that counts since 1970 becomes an instant, and nothing else."""
    text = SPEC.replace("{name: seq, type: bigint}", "{name: seq, type: bigint, format: epoch_s}").replace("WATERMARK", "at")
    (tmp_path / "syncs").mkdir()
    (tmp_path / "stages.yaml").write_text("stages: {content: {}}")
    (tmp_path / "syncs" / "demo.yaml").write_text(text)
    (told,) = SpecFiles(tmp_path).check("demo")
    assert "17: fields[5]: format: epoch_s is of timestamptz fields, and this one is bigint" in told
