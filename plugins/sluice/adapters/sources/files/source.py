"""Files as a source: which records are wanted in, pages of them out, each a JSON array of records as they stood there."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from pydantic import JsonValue

from sluice.adapters.sources.files.in_s3 import S3Files
from sluice.adapters.sources.files.over_http import HttpFiles
from sluice.adapters.sources.files.reading import Reading, Span, Start
from sluice.adapters.sources.files.record_pages import page_of
from sluice.adapters.sources.files.storage import Handle, Storage, StoredFile
from sluice.adapters.sources.rest.templates import PathTemplate, TextTemplate, values_of
from sluice.adapters.sources.transport.auth import Auth
from sluice.adapters.sources.transport.client import HttpClient
from sluice.adapters.sources.transport.endpoint import Endpoint
from sluice.errors import AnswerUnusable, ConnectionInvalid, CursorExpired, FileUnreadable, SpecInvalid, SupplierRefused
from sluice.guard.restraint import Restraint
from sluice.model import source as declared
from sluice.model.shard import ShardPlan
from sluice.model.stage import StagePolicy
from sluice.ports import ConnectionInfo, Page, PageRequest

PAGE_BYTES: Final = 8 * 1024 * 1024
"""A page has no more than this, whatever `size` says, unless it is of a single record."""


class FilesSource:
    """Reads the records of files one after the other."""

    def __init__(
        self,
        source: declared.FilesSource,
        info: ConnectionInfo,
        policy: StagePolicy,
        restraint_of: Callable[[str], Restraint],
        auth_of: Callable[[Endpoint], Auth],
    ) -> None:
        """Check spec and connection; nothing is asked for yet."""
        if (source.bucket is None) is (info.conn_type == "aws"):
            kind = "http, but source.bucket names a bucket" if source.bucket else "aws, but source.bucket names none"
            raise ConnectionInvalid(f"connection {info.conn_id} is taken for one of type {kind}")
        self.spec = source
        self._info = info
        self._policy = policy
        self._restraint_of = restraint_of
        self._auth_of = auth_of
        self._reading = Reading(source, policy.max_body)
        self._page_bytes = min(PAGE_BYTES, policy.chunk_bytes)
        problems: list[str] = []
        template = TextTemplate if source.bucket else PathTemplate
        self._names = [template(f"source.files[{number}]", text, problems) for number, text in enumerate(source.files)]
        if problems:
            raise SpecInvalid(problems)

    def now(self) -> datetime | None:
        """Return None: what is new of files no time tells."""
        return None

    def pages(self, request: PageRequest) -> Iterator[Page]:
        """Yield the pages behind `request.cursor`; none if the files are those that were published already.

        Raises `CursorExpired` if they are not those that were begun with.
        """
        with self.storage() as storage:
            part = Part.of(request)
            files = [storage.look(part.name)] if part else self.files(storage, request)
            mark = _mark_of(files)
            if part and part.mark is not None and part.mark != mark:
                why = f"{part.name} has changed since it was cut into shards: run the sync anew, with force"
                raise FileUnreadable(why, file=part.name)
            if request.cursor is None:
                if mark is not None and mark == request.watermark:
                    return
                place = _Place(mark, files[0].name, Start())
            else:
                place = _Place.of(request.cursor)
                if mark is None or place.mark != mark or place.file not in [file.name for file in files]:
                    raise CursorExpired(f"the files are not those any more that were begun with: {self.spec}")
            yield from self._pages(storage, files, part.span if part else None, place)

    @contextmanager
    def storage(self) -> Iterator[Storage]:
        """Open what the files lie in."""
        if self.spec.bucket is not None:
            with closing(S3Files(self._info, self.spec.bucket, self._policy, self._restraint_of)) as files:
                yield files
            return
        endpoint = Endpoint.of(self._info)
        auth, restraint = self._auth_of(endpoint), self._restraint_of(endpoint.host)
        with HttpClient(endpoint, self._policy, restraint, auth, self.spec.allow_hosts) as client:
            yield HttpFiles(client)

    def files(self, storage: Storage, request: PageRequest) -> list[StoredFile]:
        """Return the files the spec names, each once, by name; raise `SupplierRefused` if there is none of some name."""
        found: dict[str, StoredFile] = {}
        for template in self._names:
            name = template.render(values_of(request))
            files = storage.matching(name)
            if not files:
                raise SupplierRefused(f"{template.place}: no file is named {name!r} ({self.spec})")
            found |= {file.name: file for file in files}
        return [found[name] for name in sorted(found)]

    def _pages(self, storage: Storage, files: Sequence[StoredFile], span: Span | None, place: "_Place") -> Iterator[Page]:
        batch: list[bytes] = []
        size = 0
        behind = place
        for file in files:
            if file.name < place.file:
                continue
            start = place.start if file.name == place.file else Start()
            handle = Handle(storage, file, self._policy.retry.attempts)
            for number, record in enumerate(self._reading.records(handle, span, start), start.records + 1):
                # A page goes out when another record is seen to follow: the last one has no cursor.
                if batch and (len(batch) >= self.spec.size or size + len(record.raw) > self._page_bytes):
                    yield Page(page_of(batch), len(batch), behind.cursor(), mark=place.mark)
                    batch, size = [], 0
                batch.append(record.raw)
                size += len(record.raw)
                behind = _Place(place.mark, file.name, Start(number, record.end))
        yield Page(page_of(batch), len(batch), None, mark=place.mark)


@dataclass(frozen=True)
class Part:
    """The file, or the bytes of one, that are a shard."""

    name: str
    span: Span | None
    mark: str | None
    """What the file has to be, so that all its parts are of one and the same; None: that does not matter."""

    @classmethod
    def of(cls, request: PageRequest) -> "Part | None":
        """Return the part a request is for; None: the shard is none of a file."""
        if not {"file", "bytes"} <= set(request.shard):
            return None
        start, _, end = request.shard["bytes"].partition("-")
        return cls(request.shard["file"], (int(start), int(end)) if end else None, request.shard.get("etag"))

    def plan(self, key: str) -> ShardPlan:
        """Return the shard."""
        span = "" if self.span is None else f"{self.span[0]}-{self.span[1]}"
        etag = {} if self.mark is None else {"etag": self.mark}
        return ShardPlan(key=key, params={"file": self.name, "bytes": span, **etag})


@dataclass(frozen=True)
class _Place:
    """Where in the files of a shard reading goes on, and which state of theirs that is of."""

    mark: str | None
    file: str
    start: Start

    @classmethod
    def of(cls, cursor: JsonValue) -> "_Place":
        match cursor:
            case {"mark": str() | None as mark, "file": str(file), "records": int(records), "byte": int() | None as byte}:
                return cls(mark, file, Start(records, byte))
            case _:
                raise AnswerUnusable("the shard's stored cursor is none of files: it was written for another kind of source")

    def cursor(self) -> dict[str, Any]:
        return {"mark": self.mark, "file": self.file, "records": self.start.records, "byte": self.start.byte}


def _mark_of(files: Sequence[StoredFile]) -> str | None:
    """Return what tells the state of these files from any other; None if one of them has nothing that does."""
    marks = [file.mark for file in files]
    if len(marks) == 1:
        return marks[0]
    known = [f"{file.name}\0{mark}" for file, mark in zip(files, marks, strict=True) if mark is not None]
    return hashlib.sha256("\0".join(known).encode()).hexdigest() if len(known) == len(marks) else None
