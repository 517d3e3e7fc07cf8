"""Arrow tables through Postgres' COPY: in as its own text format, out as CSV that tells null from the empty string."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, BinaryIO, Final

import psycopg
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from psycopg import sql

from sluice.adapters.targets.names import listed
from sluice.mapping.arrow import text_scalar
from sluice.mapping.columns import readable
from sluice.mapping.spelling import spelled

_TEXT: Final = pa.large_string()
_NULL: Final = r"\N"
_HEX: Final = text_scalar("\\x")
_NOTHING: Final = text_scalar("")
_ESCAPES: Final = {"\\": r"\\", "\n": r"\n", "\r": r"\r", "\t": r"\t"}
"""What COPY would take for something else, the backslash first."""
_AS_USUAL: Final = sql.SQL("")
_BATCH_ROWS: Final = 4_096
"""So many of some kilobytes each stay in the processor's caches; half or twice as many cost more."""
_BLOCK_BYTES: Final = 8_000_000
_BUFFER_BYTES: Final = 64 * 1024


def read_parquet(data: bytes, columns: Sequence[str] | None = None) -> pa.Table:
    """Return what a Parquet artifact holds, of these columns those that it has; raise `ArtifactCorrupt` if it is none."""
    with readable():
        return pq.ParquetFile(pa.BufferReader(data), pre_buffer=False).read(columns, use_threads=False)


def hex_column(hashes: pa.ChunkedArray) -> pa.Array:
    r"""Return binary values the way Postgres reads bytea: `\x…`."""
    # All digits in one go: one value after the other takes ten times as long.
    digits = pa.py_buffer(joined(hashes).hex().encode())
    spelled_out = pa.Array.from_buffers(pa.binary(2 * hashes.type.byte_width), len(hashes), [None, digits]).cast(pa.string())
    prefixed = pc.binary_join_element_wise(_HEX, spelled_out, _NOTHING)
    return pc.if_else(_whole(hashes).is_valid(), prefixed, text_scalar(None)) if hashes.null_count else prefixed


def joined(hashes: pa.ChunkedArray) -> bytes:
    """Return binary values, which are all of one width, one behind the other."""
    whole, width = _whole(hashes), hashes.type.byte_width
    _, data = whole.buffers()
    return bytes(memoryview(data)[whole.offset * width : (whole.offset + len(whole)) * width]) if data else b""


def _whole(values: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(values.chunks) if values.chunks else pa.array([], values.type)


def copy_in(cursor: psycopg.Cursor[Any], table: sql.Identifier, rows: pa.Table, *, is_new: bool = False) -> None:
    """Copy `rows` into the columns of the same names of a table; one that this transaction has made needs no vacuum then."""
    how = sql.SQL(" (freeze)" if is_new else "")
    _copy(cursor, table, rows.column_names, rows.to_batches(max_chunksize=_BATCH_ROWS), how)


def copy_parquet_in(cursor: psycopg.Cursor[Any], table: sql.Identifier, file: BinaryIO) -> None:
    """Copy a Parquet artifact into the columns of the same names, less a `_` in front, of a table.

    However many rows it has, few are in memory at a time. Raises `ArtifactCorrupt` if it is none.
    """
    with readable():
        # What is read ahead would be kept to the end.
        parquet = pq.ParquetFile(file, buffer_size=_BUFFER_BYTES, pre_buffer=False)
        names = [name.removeprefix("_") for name in parquet.schema_arrow.names]
        _copy(cursor, table, names, parquet.iter_batches(_BATCH_ROWS, use_threads=False))


def _copy(
    cursor: psycopg.Cursor[Any],
    table: sql.Identifier,
    names: Sequence[str],
    batches: Iterable[pa.RecordBatch],
    how: sql.Composable = _AS_USUAL,
) -> None:
    statement = sql.SQL("copy {} ({}) from stdin{}").format(table, listed(names), how)
    with cursor.copy(statement) as copy:
        for batch in batches:
            copy.write(_lines(batch))


def _lines(batch: pa.RecordBatch) -> memoryview:
    """Return rows as COPY reads them, made by Arrow alone: for both sides that is less work than CSV."""
    *columns, last = map(_escaped, batch.columns)
    ended = pc.binary_join_element_wise(last, pa.scalar("", _TEXT), pa.scalar("\n", _TEXT))
    return _letters(pc.binary_join_element_wise(*columns, ended, pa.scalar("\t", _TEXT)))


def _escaped(column: pa.Array) -> pa.Array:
    """Return the values of a column as COPY reads them."""
    texts = spelled(column).cast(_TEXT)
    # Most columns need none, and bytes are searched faster than values.
    letters = bytes(_letters(texts))
    for letter, escape in _ESCAPES.items():
        if letter.encode() in letters:
            texts = pc.replace_substring(texts, letter, escape)
    return texts.fill_null(_NULL)


def _letters(texts: pa.Array) -> memoryview:
    """Return all texts of an array, one behind the other."""
    _, offsets, letters = texts.buffers()
    if letters is None or not len(texts):
        return memoryview(b"")
    places = memoryview(offsets).cast("q")
    return memoryview(letters)[places[texts.offset] : places[texts.offset + len(texts)]]


def copy_to_parquet(
    cursor: psycopg.Cursor[Any], query: sql.Composable, types: Mapping[str, pa.DataType], file: BinaryIO
) -> int:
    """Write what a query yields as Parquet, in columns with these names and types; return the number of rows.

    The same rows always give the same bytes. Of what is not Parquet yet, some megabytes are in memory at a time.
    """
    number, block = 0, bytearray()
    with (
        # Most of it is keys, hashes and rows, of which none comes twice.
        pq.ParquetWriter(file, pa.schema(list(types.items())), compression="zstd", use_dictionary=False) as writer,
        cursor.copy(sql.SQL("copy ({}) to stdout (format csv)").format(query)) as copy,
    ):
        for line in copy:  # the server sends one row after the other
            block += line
            if len(block) >= _BLOCK_BYTES:
                number += _write(writer, block, types)
                block = bytearray()
        if block:
            number += _write(writer, block, types)
    return number


def _write(writer: pq.ParquetWriter, block: bytearray, types: Mapping[str, pa.DataType]) -> int:
    """Write whole rows, and return how many; nothing of them is left in memory."""
    rows = _read_csv(block, types)
    writer.write_table(rows)
    return int(rows.num_rows)


def _read_csv(data: bytearray, types: Mapping[str, pa.DataType]) -> pa.Table:
    return pa_csv.read_csv(
        # What is read through Python's own files is copied first.
        pa.BufferReader(pa.py_buffer(data)),
        # A row has to fit into a block, however long it is; and of one block, many threads take more memory than time.
        read_options=pa_csv.ReadOptions(column_names=list(types), block_size=len(data) + 1, use_threads=False),
        parse_options=pa_csv.ParseOptions(newlines_in_values=True),
        convert_options=pa_csv.ConvertOptions(
            column_types=dict(types), null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False
        ),
    )
