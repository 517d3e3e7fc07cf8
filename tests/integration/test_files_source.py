"""FilesSource against real servers of files: HTTP with and without ranges, and S3."""

import gzip
import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sluice.adapters.sources.files.shards import FileFinder
from sluice.adapters.sources.files.source import FilesSource
from sluice.errors import (
    AnswerUnusable,
    ConnectionInvalid,
    CursorExpired,
    FileUnreadable,
    ShardsUnusable,
    SluiceError,
    StrayAddress,
    SupplierRefused,
    SupplierUnavailable,
)
from sluice.model.run import Mode
from sluice.model.source import FilesSource as FilesSpec
from sluice.model.stage import RetryPolicy, StagePolicy
from sluice.ports import ConnectionInfo, Page, PageRequest, ShardQuestion
from tests.support.bucket import Bucket
from tests.support.file_server import serving
from tests.support.restraints import lone_proofs, lone_restraint

LINES = b"".join(b'{"id": %d, "name": "%s"}\n' % (number, b"x" * 50) for number in range(3000))
POLICY = StagePolicy(retry=RetryPolicy(attempts=3, base=timedelta(milliseconds=1), cap=timedelta(milliseconds=2)))


def source_of(info: ConnectionInfo, policy: StagePolicy = POLICY, **changes: Any) -> FilesSource:
    """Return a source of one file of lines, unless told otherwise."""
    declared = {"kind": "files", "connection": "shop", "files": ["/hotels.jsonl"], "format": "jsonl", "size": 100}
    spec = FilesSpec.model_validate(declared | changes)
    proofs = lone_proofs()
    return FilesSource(
        spec,
        info,
        policy,
        lambda host: lone_restraint(policy, host),
        lambda endpoint: proofs.open(spec.auth, info, endpoint, policy),
    )


def asking(cursor: Any = None, watermark: str | None = None, **shard: str) -> PageRequest:
    """Return a request for the pages of a shard."""
    return PageRequest(shard=shard, cursor=cursor, watermark=watermark, window_start=None, window_end=None)


def numbers(pages: list[Page]) -> list[int]:
    """Return the ids of all records."""
    found = [record["id"] for page in pages for record in json.loads(page.body)]
    assert len(found) == sum(page.records for page in pages)
    return found


def question(mode: Mode = Mode.FULL, **marks: str) -> ShardQuestion:
    """Return a question for the shards of a run."""
    return ShardQuestion(mode=mode, window=None, begun_at=datetime(2026, 1, 1, tzinfo=UTC), marks=marks)  # type: ignore[arg-type]


def shards_of(source: FilesSource, split: int | None = None, asked: ShardQuestion | None = None) -> list[Any]:
    """Return the shards of a source."""
    return FileFinder(source, split).find(asked or question(), lambda: None)


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("has_ranges", [True, False], ids=["ranges", "no ranges"])
def test_pages_go_on_behind_any_of_them(has_ranges: bool, packed: bool) -> None:
    """Whoever goes on from a page's cursor gets the same pages as one who read on; a plain file is not read again."""
    content = gzip.compress(LINES) if packed else LINES
    with serving({"/hotels.jsonl": content}) as server:
        server.has_ranges = has_ranges
        source = source_of(server.connection())
        pages = list(source.pages(asking()))
        assert numbers(pages) == list(range(3000))
        assert [page.records for page in pages] == [100] * 30
        assert [page.cursor is None for page in pages] == [False] * 29 + [True]
        server.asked.clear()
        assert list(source.pages(asking(pages[19].cursor))) == pages[20:]
        end_of_page = len(b"".join(LINES.splitlines(keepends=True)[:2000])) - 1
        assert server.ranges() == [f"bytes={end_of_page}-" if has_ranges and not packed else None]


@pytest.mark.parametrize("has_ranges", [True, False], ids=["ranges", "no ranges"])
def test_a_connection_that_breaks_is_gone_on_with(has_ranges: bool) -> None:
    """Wherever it breaks, no record is lost or doubled; with ranges, no byte is sent twice."""
    content = gzip.compress(LINES)
    with serving({"/hotels.jsonl": content}) as server:
        server.has_ranges = has_ranges
        server.breaks = [1000, 1, 0, 500] if has_ranges else [1000, 2000, 3000]
        assert numbers(list(source_of(server.connection()).pages(asking()))) == list(range(3000))
        expected = ["bytes=1000-", "bytes=1001-", "bytes=1001-", "bytes=1501-"] if has_ranges else [None] * 3
        assert server.ranges() == [None, *expected]


def test_a_connection_that_always_breaks_is_given_up() -> None:
    """Where nothing more comes, the tries of the policy are all there are; what has come is kept."""
    with serving({"/hotels.jsonl": LINES}) as server:
        server.breaks = [100_000] + [0] * 10
        pages = []
        with pytest.raises(SupplierUnavailable):
            pages.extend(source_of(server.connection()).pages(asking()))
        assert server.ranges() == [None, *["bytes=100000-"] * 2]


@pytest.mark.parametrize("has_ranges", [True, False], ids=["ranges", "no ranges"])
def test_a_file_that_changes_meanwhile_is_begun_again(has_ranges: bool) -> None:
    """In mid-connection or between two tries: what was begun with is gone, and the shard has to begin again."""
    with serving({"/hotels.jsonl": LINES}) as server:
        server.has_ranges = has_ranges
        source = source_of(server.connection())
        pages = source.pages(asking())
        first = next(pages)
        server.files["/hotels.jsonl"] = LINES.replace(b"x", b"y")
        with pytest.raises(CursorExpired):
            next(source.pages(asking(first.cursor)))
        server.files["/hotels.jsonl"] = LINES
        server.breaks = [1000]
        server.at_break = lambda: server.files.update({"/hotels.jsonl": LINES[:1000]})
        with pytest.raises(CursorExpired):
            next(source.pages(asking()))


def test_where_nothing_tells_a_file_from_a_later_one_it_is_begun_again() -> None:
    """Without ETag and time, no broken connection and no earlier try is gone on from: the rest might be of another file."""
    with serving({"/hotels.jsonl": LINES}) as server:
        server.has_etags = False
        source = source_of(server.connection())
        pages = list(source.pages(asking()))
        assert numbers(pages) == list(range(3000))
        with pytest.raises(CursorExpired):
            next(source.pages(asking(pages[0].cursor)))
        server.breaks = [100_000]
        with pytest.raises(SupplierUnavailable, match="still the same: the next try begins again"):
            list(source.pages(asking()))


def test_what_was_published_is_not_fetched_again() -> None:
    """A shard whose file is still the same has no pages; one whose file has changed has all of them."""
    with serving({"/hotels.jsonl": LINES}) as server:
        source = source_of(server.connection())
        mark = next(source.pages(asking())).mark
        assert list(source.pages(asking(watermark=mark))) == []
        assert len(list(source.pages(asking(watermark='"other"')))) == 30


def test_empty_files_have_a_page_without_records() -> None:
    """So it is known that they were read, and which state of them."""
    with serving({"/hotels.jsonl": b"", "/two.jsonl": b"\n"}) as server:
        [page] = source_of(server.connection()).pages(asking())
        assert (page.body, page.records, page.cursor) == (b"[]", 0, None)
        assert page.mark
        [page] = source_of(server.connection(), files=["/hotels.jsonl", "/two.jsonl"]).pages(asking())
        assert (page.body, page.records, page.cursor) == (b"[]", 0, None)


def test_several_files_are_read_one_behind_the_other() -> None:
    """Pages do not end with a file, a cursor says where in which, and any change to any file begins anew."""
    files = {f"/{name}.jsonl": b"".join(b'{"id": %d}\n' % (base + n) for n in range(5)) for name, base in (("a", 0), ("b", 10))}
    with serving(files) as server:
        source = source_of(server.connection(), files=["/b.jsonl", "/{{ shard.first }}.jsonl", "/a.jsonl"], size=3)
        pages = list(source.pages(asking(first="a")))
        assert [numbers([page]) for page in pages] == [[0, 1, 2], [3, 4, 10], [11, 12, 13], [14]]
        for number, page in enumerate(pages[:-1], 1):
            assert list(source.pages(asking(page.cursor, first="a"))) == pages[number:]
        server.files["/a.jsonl"] = b'{"id": 7}\n'
        with pytest.raises(CursorExpired):
            next(source.pages(asking(pages[1].cursor, first="a")))
        assert next(source.pages(asking(first="a"))).mark != pages[0].mark


def test_a_page_is_bounded_in_bytes() -> None:
    """However many records a page may have, it does not grow beyond what a chunk may."""
    policy = POLICY.model_copy(update={"chunk_bytes": 1000})
    with serving({"/hotels.jsonl": LINES}) as server:
        pages = list(source_of(server.connection(), policy, size=100_000).pages(asking()))
        assert numbers(pages) == list(range(3000))
        assert max(len(page.body) for page in pages) < 1100


def test_an_encoding_of_the_way_is_unpacked_like_that_of_a_file() -> None:
    """A server that sends a compressed file as such a body is understood; another encoding is named."""
    with serving({"/hotels.jsonl": gzip.compress(LINES)}) as server:
        server.headers = {"Content-Encoding": "gzip"}
        assert numbers(list(source_of(server.connection()).pages(asking()))) == list(range(3000))
        server.headers = {"Content-Encoding": "compress"}
        with pytest.raises(FileUnreadable, match="compress"):
            list(source_of(server.connection()).pages(asking()))


def test_a_part_that_is_not_the_one_asked_for_is_refused() -> None:
    """Bytes of another place would pass for records of this one."""
    with serving({"/hotels.jsonl": LINES}) as server:
        source = source_of(server.connection())
        first = next(source.pages(asking()))
        server.headers = {"Content-Range": f"bytes 0-{len(LINES) - 1}/{len(LINES)}"}
        with pytest.raises(FileUnreadable, match="other bytes"):
            next(source.pages(asking(first.cursor)))


def test_says_what_is_missing() -> None:
    """No such file, a cursor of something else, a redirect to another host, a connection of another type."""
    with serving({"/hotels.jsonl": LINES}) as server:
        with pytest.raises(SupplierRefused, match="404"):
            list(source_of(server.connection(), files=["/other.jsonl"]).pages(asking()))
        with pytest.raises(AnswerUnusable, match="another kind"):
            list(source_of(server.connection()).pages(asking(7)))
        with pytest.raises(ConnectionInvalid, match="aws"):
            source_of(ConnectionInfo("shop", "aws", None, None, None, None, None, {}))


@pytest.mark.parametrize("form", ["jsonl", {"kind": "csv", "quote": None}])
def test_parts_of_a_file_are_shards(form: Any) -> None:
    """Each has what begins in its bytes, and asks for no more than it needs; a compressed file is one shard."""
    content = LINES if form == "jsonl" else b"id,name\n" + b"".join(b"%d,x\n" % number for number in range(3000))
    with serving({"/hotels.jsonl": content, "/packed": gzip.compress(content)}) as server:
        source = source_of(server.connection(), format=form)
        split = len(content) // 3
        shards = shards_of(source, split)
        assert [shard.key for shard in shards][:2] == [f"/hotels.jsonl#0-{split}", f"/hotels.jsonl#{split}-{2 * split}"]
        found = [
            int(record["id"])
            for shard in shards
            for page in source.pages(asking(**shard.params))
            for record in json.loads(page.body)
        ]
        assert found == list(range(3000))
        pages = list(source.pages(asking(**shards[1].params)))
        assert list(source.pages(asking(pages[2].cursor, **shards[1].params))) == pages[3:]
        assert [shard.key for shard in shards_of(source_of(server.connection(), files=["/packed"]), split)] == ["/packed"]
        server.files["/hotels.jsonl"] = content + content
        with pytest.raises(FileUnreadable, match="has changed since"):
            list(source.pages(asking(**shards[1].params)))
        server.has_ranges = False
        assert [shard.key for shard in shards_of(source, split)] == ["/hotels.jsonl"]


def test_a_file_that_changes_while_it_is_cut_is_looked_at_again_later() -> None:
    """There is no shard yet that could begin again, so the step is tried again."""
    with serving({"/hotels.jsonl": LINES}) as server:

        def change() -> None:
            server.files["/hotels.jsonl"] = LINES + LINES

        with pytest.raises(SupplierUnavailable, match="changes just now"):
            FileFinder(source_of(server.connection()), len(LINES) // 3).find(question(), change)


def test_only_new_files_are_shards_of_an_incremental_run() -> None:
    """By name and ETag; where the server has no ETag nor time, a file is always new."""
    with serving({"/a": LINES, "/b": LINES + LINES}) as server:
        source = source_of(server.connection(), files=["/a", "/b"])
        marks = {shard.key: next(source.pages(asking(**shard.params))).mark or "" for shard in shards_of(source)}
        assert list(marks) == ["/a", "/b"]
        assert shards_of(source, asked=question(Mode.INCREMENTAL, **marks)) == []
        assert len(shards_of(source, asked=question(Mode.FULL, **marks))) == 2
        server.files["/b"] = LINES
        assert [shard.key for shard in shards_of(source, asked=question(Mode.INCREMENTAL, **marks))] == ["/b"]
        server.has_etags = False
        assert len(shards_of(source, asked=question(Mode.INCREMENTAL, **marks))) == 2
        server.headers = {"Last-Modified": "Wed, 01 Jan 2025 00:00:00 GMT"}
        marks = {shard.key: next(source.pages(asking(**shard.params))).mark or "" for shard in shards_of(source)}
        assert shards_of(source, asked=question(Mode.INCREMENTAL, **marks)) == []
    with serving({}) as server, pytest.raises(ShardsUnusable, match="404"):
        shards_of(source_of(server.connection()))


def objects(bucket: Bucket, *files: str) -> FilesSource:
    """Return a source of objects."""
    return source_of(bucket.info, bucket=bucket.name, files=files)


@pytest.fixture
def bucket(artifacts: ConnectionInfo) -> Bucket:
    return Bucket(artifacts)


def test_objects_by_key_prefix_and_pattern(bucket: Bucket) -> None:
    """Keys are found by what they are, whatever signs they have; a pattern's * goes across slashes, brackets are themselves."""
    keys = ["in/a b.jsonl", "in/[x]?.jsonl", "in/deep/é+%.jsonl", "in/deep/", "in/note.txt", "other/a.jsonl"]
    for number, key in enumerate(keys):
        bucket.put(key, b"" if key.endswith("/") else b'{"id": %d}\n' % number)

    def found(*files: str) -> list[str]:
        return [shard.key for shard in shards_of(objects(bucket, *files))]

    assert found("in/*.jsonl") == sorted(["in/a b.jsonl", "in/[x]?.jsonl", "in/deep/é+%.jsonl"])
    assert found("in/") == sorted(["in/a b.jsonl", "in/[x]?.jsonl", "in/deep/é+%.jsonl", "in/note.txt"])
    assert found("in/[x]?*") == ["in/[x]?.jsonl"]
    assert found("in/a b.jsonl", "in/a*") == ["in/a b.jsonl"]
    for shard in shards_of(objects(bucket, "in/*.jsonl")):
        [page] = objects(bucket, "in/*.jsonl").pages(asking(**shard.params))
        assert numbers([page]) == [keys.index(shard.key)]
    with pytest.raises(ShardsUnusable, match="no file"):
        found("in/*.csv")
    with pytest.raises(ShardsUnusable, match="404"):
        found("in/none")


def test_a_listing_of_many_pages_is_read_to_its_end(bucket: Bucket) -> None:
    """S3 lists a thousand keys at a time."""
    keys = [f"in/{number:05d}.jsonl" for number in range(1050)]
    with ThreadPoolExecutor(8) as executor:
        list(executor.map(lambda key: bucket.put(key, b"{}"), keys))
    assert [shard.key for shard in shards_of(objects(bucket, "in/*.jsonl"))] == keys


def test_objects_are_read_from_their_middle_and_not_when_they_change(bucket: Bucket) -> None:
    """A cursor leads on within the object; another object under the same key begins anew."""
    bucket.put("hotels.jsonl", LINES)
    source = objects(bucket, "hotels.jsonl")
    pages = list(source.pages(asking()))
    assert numbers(pages) == list(range(3000))
    assert list(source.pages(asking(pages[3].cursor))) == pages[4:]
    split = shards_of(source, len(LINES) // 2 + 1)
    assert len(split) == 2
    assert [n for shard in split for n in numbers(list(source.pages(asking(**shard.params))))] == list(range(3000))
    bucket.put("hotels.jsonl", LINES.replace(b"x", b"y"))
    with pytest.raises(CursorExpired):
        next(source.pages(asking(pages[3].cursor)))
    reading = source.pages(asking())
    next(reading)
    storage_error: list[SluiceError] = []
    with source.storage() as storage:
        file = storage.look("hotels.jsonl")
        bucket.put("hotels.jsonl", LINES)
        try:
            with storage.open(file, 10, None) as parts:
                list(parts)
        except CursorExpired as error:
            storage_error.append(error)
    assert storage_error


def test_a_store_that_refuses_says_why_without_its_secrets(bucket: Bucket, artifacts: ConnectionInfo) -> None:
    """Wrong credentials, no such bucket, nobody there: each by its name, and no message has the secret."""
    secret = "canary-5cb1"
    wrong = ConnectionInfo("shop", "aws", None, None, artifacts.login, secret, None, artifacts.extra)
    nobody = ConnectionInfo("shop", "aws", None, None, "x", secret, None, {"endpoint_url": "http://127.0.0.1:9"})
    for info, name, kind in (
        (wrong, bucket.name, SupplierRefused),
        (bucket.info, "no-such-bucket-5cb1", SluiceError),
        (nobody, "bucket", SupplierUnavailable),
    ):
        with pytest.raises(kind) as raised:
            list(source_of(info, bucket=name, files=["in/*"]).pages(asking()))
        assert secret not in str(raised.value)


def test_a_redirect_leads_nowhere_else() -> None:
    """Another host gets no request unless the spec allows it."""
    with serving({"/hotels.jsonl": LINES}) as other, serving({}) as server:
        host = f"127.0.0.1:{other.server_address[1]}"
        server.redirect = f"http://{host}/hotels.jsonl"
        with pytest.raises(StrayAddress):
            list(source_of(server.connection()).pages(asking()))
        assert other.asked == []
        allowed = source_of(server.connection(), allow_hosts=[host])
        assert numbers(list(allowed.pages(asking()))) == list(range(3000))
