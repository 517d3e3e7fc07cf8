"""The rules between a spec and its canary: each mistake told with its line and its mend."""
# ruff: noqa: E501 - a mistake reads better on one line

from pathlib import Path

import pytest

from sluice.adapters.spec_files import SpecFiles

SPEC = """\
sync: demo
stage: content
version: 4
source:
  kind: rest
  connection: supplier
  path: /items
  query: {since: "{{ watermark }}"}
  records: items
  cursor: {path: next, parameter: cursor}
  watermark: changed
object: {key: [id], version: revision}
fields:
  - {name: id, type: text}
  - {name: revision, type: bigint}
  - {name: changed, type: timestamptz}
  - {name: note, type: text}
canary:
  version: 5
  share: 10%
  fields:
    - {name: id, type: text}
    - {name: note, type: text, path: remark}
    - {name: changed, type: timestamptz}
    - {name: revision, type: bigint, description: another word for it}
target: {table: items}
"""


def problems(tmp_path: Path, old: str = "", new: str = "") -> list[str]:
    """Return what is wrong with the sync, from the line on, once something of it is replaced."""
    (tmp_path / "syncs").mkdir(exist_ok=True)
    (tmp_path / "stages.yaml").write_text("stages: {content: {}}")
    head, canary = SPEC.split("canary:")
    (tmp_path / "syncs" / "demo.yaml").write_text(f"{head}canary:{canary.replace(old, new) if old else canary}")
    return [line.split(":", 1)[1] for line in SpecFiles(tmp_path).check("demo")]


def test_a_sound_one(tmp_path: Path) -> None:
    """Other paths, in another order, with other descriptions."""
    assert problems(tmp_path) == []


def test_fields_may_be_left_out(tmp_path: Path) -> None:
    """Then they are the spec's."""
    assert problems(tmp_path, SPEC[SPEC.index("  fields:\n    -") : SPEC.index("target")], "") == []


MISTAKES = {
    "the version of the spec": ("version: 5", "version: 4", "19: canary.version: is the version of the spec itself: a canary is another one"),
    "no share": ("share: 10%", "share: 1", "20: canary.share: 1 is no share: a number and a percent sign, above 0% and up to 100%: 50% or 2.5%"),
    "a field too few": ("    - {name: note, type: text, path: remark}\n", "", "21: canary.fields: note: missing; both versions fill one table, so a canary has all fields"),
    "a field too many": ("target:", "    - {name: more, type: text}\ntarget:", "26: canary.fields[4].name: no field is named 'more'; declared: id, revision, changed, note"),
    "a field twice": ("target:", "    - {name: note, type: text}\ntarget:", "26: canary.fields[4].name: 'note' stands twice; the first is fields[1] of the canary"),
    "another type": ("note, type: text", "note, type: json", "23: canary.fields[1].type: 'note' is jsonb here and text in fields: both versions fill one table"),
    "another key": ("{name: id, type: text}", "{name: id, type: text, path: code}", "22: canary.fields[0]: 'id' says which object it is, or how old it is, and that is the same in all versions: write it as in fields"),
    "another version of objects": ("revision, type: bigint", "revision, type: bigint, path: rev", "25: canary.fields[3]: 'revision' says which object it is, or how old it is, and that is the same in all versions: write it as in fields"),
    "another watermark": ("changed, type: timestamptz", "changed, type: timestamptz, format: epoch_s", "24: canary.fields[2]: 'changed' says which object it is, or how old it is, and that is the same in all versions: write it as in fields"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_each_mistake_is_told(tmp_path: Path, mistake: str) -> None:
    """Each with its line."""
    old, new, told = MISTAKES[mistake]
    assert problems(tmp_path, old, new) == [told]
