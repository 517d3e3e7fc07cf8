"""A draft in; the same with what its supplier's first records tell of fields, or why nobody could look, out."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from sluice.adapters.spec_files import STAGES_FILE, SYNCS_FOLDER, SpecFiles
from sluice.cli.drafting.draft import Draft
from sluice.errors import ConnectionInvalid, RecordsMissing, SluiceError, SpecInvalid
from sluice.mapping.pages import PageSplitter
from sluice.mapping.proposals import proposals
from sluice.model.run import Mode
from sluice.ports import Connections, PageRequest, ShardQuestion
from sluice.settings import Settings

_ENOUGH: Final = 100
"""Records that tell enough of their fields."""


@dataclass(frozen=True)
class Seen:
    """What came of looking."""

    draft: Draft
    records: int
    trouble: str | None = None
    """Why there are no records to conclude from."""
    is_connected: bool = True
    """Whether the connection to the supplier is defined."""


@contextmanager
def drafted(draft: Draft, stages: str) -> Iterator[Path]:
    """Write spec and stages into an include folder of their own, which is gone in the end; raise `SpecInvalid` if need be."""
    with TemporaryDirectory(prefix="sluice-new-") as folder:
        include = Path(folder) / "include"
        (include / SYNCS_FOLDER).mkdir(parents=True)
        (include / STAGES_FILE).write_text(stages, encoding="utf-8")
        files = SpecFiles(include)
        files.sync_path(draft.name).write_text(draft.spec_text, encoding="utf-8")
        if problems := files.check(draft.name):
            raise SpecInvalid(problems)
        yield include


def look(draft: Draft, stages: str, settings: Settings, connections: Connections, *, finds_records: bool) -> Seen:
    """Ask the supplier for one page; with `finds_records`, the only list in an answer is taken for that of the records."""
    try:
        records = _first_records(draft, stages, settings, connections)
    except RecordsMissing as error:
        lists = error.facts.get("lists", ())
        if not finds_records or len(lists) != 1 or not lists[0]:
            return Seen(draft, 0, error.message)
        note = f"source.records: the only list in the first answer stands at {lists[0]}"
        found = replace(draft, records=lists[0], notes=(note,))
        return look(found, stages, settings, connections, finds_records=False)
    except ConnectionInvalid as error:
        return Seen(draft, 0, error.message, is_connected=error.facts.get("conn_id") != draft.connection)
    except SluiceError as error:
        return Seen(draft, 0, error.message)
    if not records:
        return Seen(draft, 0, "the first page has no records")
    note = f"fields: proposed from the first {len(records):,} records; leave out what nobody needs"
    return Seen(replace(draft, seen=tuple(proposals(records)), notes=(*draft.notes, note)), len(records))


def _first_records(draft: Draft, stages: str, settings: Settings, connections: Connections) -> list[bytes]:
    """Return the records of the first page that has any, up to enough."""
    from sluice.flow.shard_plans import all_shards
    from sluice.wiring import open_services

    connections.get(draft.connection)
    with drafted(draft, stages) as include, open_services(settings, connections) as opened:
        files = SpecFiles(include)
        services = replace(opened, spec=files.sync, policy=files.policy)
        spec = services.spec(draft.name)
        question = ShardQuestion(mode=Mode.FULL, window=None, begun_at=services.clock.now(), marks={})
        shard = all_shards(services, spec, question)[0]
        asked = PageRequest(shard=shard.params, cursor=None, watermark=None, window_start=None, window_end=None)
        splitter = PageSplitter(spec.source.stored_records)
        for page in services.source(spec, services.policy(spec.stage)).pages(asked):
            if records := splitter.split(page.body).records:
                return [bytes(raw) for raw in records[:_ENOUGH]]
    return []
