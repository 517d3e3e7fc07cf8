"""The laboratory as a fixture, how much of it is asked for, and the line that counts faults at the end of the session."""

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from sluice.cli.local.postgres import PostgresServer
from sluice.cli.local.s3 import S3Server
from tests.chaos.lab import Lab
from tests.chaos.story import write_project
from tests.chaos.workers import open_nursery
from tests.support import servers
from tests.support.summary import summary_of


@pytest.fixture(scope="session")
def is_full() -> bool:
    """Whether all experiments are asked for, as `make chaos` does, and not the sample that fits among the other tests."""
    return os.environ.get("CHAOS") == "full"


@pytest.fixture(scope="session")
def lab(
    request: pytest.FixtureRequest, postgres: PostgresServer, migrated_template: str, s3: S3Server, session_folder: Path
) -> Iterator[Lab]:
    """The laboratory."""
    include = write_project(session_folder / "chaos" / "include")
    bucket = servers.new_bucket(s3, f"chaos-{uuid.uuid4().hex}")
    with open_nursery() as nursery:
        made = Lab(postgres, migrated_template, bucket, nursery, include)
        yield made
        made.close()
        summary_of(request.config).extend(made.tally.lines())
