"""The specs and the class that docs/sources.md shows for SQL and code: valid, short, and at work."""

import re
import sys
from pathlib import Path
from typing import Final

import pytest
import yaml

from sluice.adapters.sources.code_source import CodeSource
from sluice.adapters.spec_files import SpecFiles
from sluice.model.stage import StagePolicy
from sluice.ports import PageRequest
from tests.support.restraints import lone_restraint
from tests.support.scripted_supplier import answer, scripted

MANUAL: Final = Path(__file__).parents[4] / "docs/sources.md"


def shown(section: str, language: str) -> str:
    """Return the code in a section of the manual."""
    text = MANUAL.read_text(encoding="utf-8").partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    match = re.search(rf"```{language}\n(.*?)```", text, re.DOTALL)
    assert match, f"{section} shows no {language}"
    return match[1]


def project(folder: Path, section: str) -> SpecFiles:
    """Write a project with the spec of a section."""
    spec = shown(section, "yaml")
    name = yaml.safe_load(spec)["sync"]
    (folder / "syncs").mkdir()
    (folder / f"syncs/{name}.yaml").write_text(spec)
    (folder / "stages.yaml").write_text(f"stages: {{{yaml.safe_load(spec)['stage']}: {{}}}}")
    return SpecFiles(folder)


@pytest.mark.parametrize("section", ["SQL", "Code"])
def test_specs_are_valid_and_short(tmp_path: Path, section: str) -> None:
    """Fewer than 40 lines are a whole sync."""
    assert project(tmp_path, section).check() == []
    assert len(shown(section, "yaml").splitlines()) < 40


def test_the_class_brings_pages(tmp_path: Path) -> None:
    """It asks a supplier from the cursor on, until nothing follows."""
    spec = project(tmp_path, "Code").sync("hotels")
    (tmp_path / "suppliers.py").write_text(shown("Code", "python"))
    assert spec.source.kind == "code"
    request = PageRequest(shard={}, cursor=2, watermark=None, window_start=None, window_end=None)
    with scripted(answer({"hotels": [{"id": 2}], "next": 3}), answer({"hotels": [{"id": 3}], "next": None})) as supplier:
        policy = StagePolicy()
        info = supplier.connection()
        pages = list(CodeSource(spec.source, info, policy, lambda host: lone_restraint(policy, host), tmp_path).pages(request))
        assert supplier.asked == ["/hotels?page=2", "/hotels?page=3"]
    assert [(page.body, page.cursor) for page in pages] == [(b'[{"id":2}]', 3), (b'[{"id":3}]', None)]
    assert not list(tmp_path.rglob("*.pyc"))
    sys.modules.pop("suppliers")
