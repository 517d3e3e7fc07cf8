"""The one place for settings of a deployment: `SLUICE_…` environment variables in, a frozen `Settings` out."""

import os
from pathlib import Path
from typing import Final

from pydantic_settings import BaseSettings, SettingsConfigDict

from sluice.errors import UsageInvalid

PREFIX: Final = "SLUICE_"


class Settings(BaseSettings):
    """Where this deployment keeps what a team edits. Connections and secrets are Airflow's business."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="forbid")

    include: Path = Path("include")
    """The folder with `syncs/` and `stages.yaml`; set by `SLUICE_INCLUDE`."""


def load_settings() -> Settings:
    """Read the environment; raise `UsageInvalid` naming every `SLUICE_` variable that means nothing."""
    known = {PREFIX + name.upper() for name in Settings.model_fields}
    if unknown := sorted(name for name in os.environ if name.startswith(PREFIX) and name not in known):
        raise UsageInvalid(f"unknown settings {', '.join(unknown)}; known: {', '.join(sorted(known))}")
    return Settings()
