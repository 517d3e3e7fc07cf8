"""New texts of files come in; all of them stand in their places afterwards, or none."""

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path


def place(texts: Mapping[Path, str]) -> None:
    """Write files, each at once; raises `OSError`, and leaves all as it was, if one of them cannot be written."""
    before = {path: path.read_bytes() if path.exists() else None for path in texts}
    drafts = {path: path.with_name(f".{path.name}.{os.getpid()}.new") for path in texts}
    placed: list[Path] = []
    try:
        for path, draft in drafts.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            draft.write_text(texts[path], encoding="utf-8")
        for path, draft in drafts.items():
            draft.replace(path)
            placed.append(path)
    except BaseException:
        for path in placed:
            _restore(path, before[path])
        raise
    finally:
        for draft in drafts.values():
            draft.unlink(missing_ok=True)


def _restore(path: Path, content: bytes | None) -> None:
    with contextlib.suppress(OSError):
        if content is None:
            path.unlink(missing_ok=True)
        else:
            path.write_bytes(content)
