"""The working directory in; the project folder around it, and the environment its local stack left behind, out."""

import os
from collections.abc import Iterable, MutableMapping
from pathlib import Path
from typing import Final

from sluice.errors import UsageInvalid
from sluice.settings import Settings, load_settings

ENVIRONMENT_FILE: Final = Path(".sluice/env")
_MARKS: Final = (Path("include/syncs"), Path("include/stages.yaml"))


def find_project(start: Path) -> Path | None:
    """Return the nearest folder, from `start` upwards, whose `include/` is one of ours."""
    return next((folder for folder in (start, *start.parents) if any((folder / mark).exists() for mark in _MARKS)), None)


def project_folder() -> Path:
    """Return the project folder around the working directory; raise `UsageInvalid` if there is none."""
    found = find_project(Path.cwd())
    if found is None:
        raise UsageInvalid(
            f"{Path.cwd()} is in no Sluice project (a folder with include/syncs): go to one, or set SLUICE_INCLUDE"
        )
    return found


def project_settings() -> Settings:
    """Return the settings; the include folder is `SLUICE_INCLUDE`, or that of the project around the working directory."""
    settings = load_settings()
    if "include" in settings.model_fields_set:
        return settings
    return settings.model_copy(update={"include": project_folder() / "include"})


def load_environment(project: Path, environ: MutableMapping[str, str] = os.environ) -> None:
    """Take from the local stack's environment file what is not set already."""
    try:
        text = (project / ENVIRONMENT_FILE).read_text(encoding="utf-8")
    except FileNotFoundError:
        return
    for name, value in _entries(text.splitlines()):
        environ.setdefault(name, value)


def _entries(lines: Iterable[str]) -> Iterable[tuple[str, str]]:
    """Yield `NAME=VALUE` lines; a value is all that follows the first `=`, quotes included."""
    for line in lines:
        name, equals, value = line.partition("=")
        if equals and name.strip() and not name.lstrip().startswith("#"):
            yield name.strip(), value
