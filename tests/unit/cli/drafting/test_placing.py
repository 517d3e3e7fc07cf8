"""Files that are put where they belong together."""

from pathlib import Path

import pytest

from sluice.cli.drafting import placing


def test_all_files_or_none(tmp_path: Path) -> None:
    """Where one cannot be written, the others are as they were."""
    (tmp_path / "stages.yaml").write_text("before", encoding="utf-8")
    (tmp_path / "dags").write_text("a file, where a folder should be", encoding="utf-8")
    texts = {tmp_path / "stages.yaml": "after", tmp_path / "a.yaml": "new", tmp_path / "dags/a.py": "new"}
    with pytest.raises(OSError, match="dags"):
        placing.place(texts)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dags", "stages.yaml"]
    assert (tmp_path / "stages.yaml").read_text(encoding="utf-8") == "before"
