"""The one place for settings of a deployment: `SLUICE_…` environment variables in, a frozen `Settings` out."""

import os
import tempfile
from pathlib import Path
from typing import Final

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from sluice.errors import UsageInvalid

PREFIX: Final = "SLUICE_"


def _cache_folder() -> Path:
    """Return the user's folder for what may be lost at any time; a user without a home has the system's."""
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "sluice"
    except RuntimeError:
        return Path(tempfile.gettempdir()) / "sluice"


class Settings(BaseSettings):
    """Where this deployment keeps what a team edits, and what its workers may lose. Connections and secrets are Airflow's."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="forbid")

    include: Path = Path("include")
    """The folder with `syncs/` and `stages.yaml`; set by `SLUICE_INCLUDE`."""

    cache: Path = Field(default_factory=_cache_folder)
    """The folder of the local caches of artifacts, one for each user of the machine; set by `SLUICE_CACHE`."""


def load_settings() -> Settings:
    """Read the environment; raise `UsageInvalid` naming every `SLUICE_` variable that means nothing."""
    known = {PREFIX + name.upper() for name in Settings.model_fields}
    if unknown := sorted(name for name in os.environ if name.startswith(PREFIX) and name not in known):
        raise UsageInvalid(f"unknown settings {', '.join(unknown)}; known: {', '.join(sorted(known))}")
    return Settings()
