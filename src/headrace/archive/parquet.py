"""A month's rows as a Parquet file, and back: every value exactly as it was.

Instants are kept in microseconds and dates in days, by integers that PostgreSQL computes; whatever has no exact
counterpart, jsonb among them, is kept as the text that PostgreSQL writes for it, which reads back to the same value.
Which type each column had stands in the file's own metadata, so that a file explains itself without the database.
"""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

import asyncpg
import orjson

from headrace.archive.errors import ArchiveDamaged
from headrace.archive.model import Archived, Summary
from headrace.database import Tx
from headrace.extras import load

JsonFields: TypeAlias = tuple[str, Sequence[str]]  # a jsonb column, and fields of it
Connection: TypeAlias = "asyncpg.Connection[Any] | asyncpg.pool.PoolConnectionProxy[Any]"

_BATCH = 500  # rows at once: whatever else this process does waits for no more than a few milliseconds
_ROW_GROUP = 100_000  # rows that a reader can skip by their minimum and maximum
_METADATA = b"headrace"
_TIME_COLUMN = "created_at"

_MICROS = "(extract(epoch FROM {column}) * 1000000)::bigint"
_DAYS = "({column} - date '1970-01-01')"
# PostgreSQL's type: how it is read, and Arrow's name for the stored one. Everything else is text.
_EXACT = {
    "bigint": ("{column}", "int64"),
    "integer": ("{column}", "int32"),
    "smallint": ("{column}", "int16"),
    "boolean": ("{column}", "bool_"),
    "timestamp with time zone": (_MICROS, "instant"),
    "date": (_DAYS, "date32"),
}
_TEXT = ("{column}::text", "string")
_RESTORED = {"instant": "timestamptz", "date32": "date", "int64": "bigint", "int32": "integer", "int16": "smallint"}


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: str  # PostgreSQL's, with its length

    @property
    def _kept(self) -> tuple[str, str]:
        return _EXACT.get(self.type, _TEXT)

    @property
    def reading(self) -> str:
        expression, _ = self._kept
        return f"{expression.format(column=self.quoted)} AS {self.quoted}"

    @property
    def quoted(self) -> str:
        return '"' + self.name.replace('"', '""') + '"'

    def arrow_type(self, pa: Any) -> Any:
        _, kind = self._kept
        return pa.timestamp("us", tz="UTC") if kind == "instant" else getattr(pa, kind)()

    @property
    def parameter(self) -> str:
        """The type of the array that its values are handed back to PostgreSQL in."""
        _, kind = self._kept
        return "boolean[]" if kind == "bool_" else f"{_RESTORED.get(kind, 'text')}[]"


LIST_COLUMNS = """
SELECT attname AS name, format_type(atttypid, atttypmod) AS type
FROM pg_attribute WHERE attrelid = ('headrace.' || $1)::regclass AND attnum > 0 AND NOT attisdropped
ORDER BY attnum
"""


async def list_columns(connection: Connection, table: str) -> list[Column]:
    return [Column(**row) for row in await connection.fetch(LIST_COLUMNS, table)]


def _schema(pa: Any, table: Archived, columns: Sequence[Column]) -> Any:
    described = orjson.dumps({"table": table.name, "columns": [asdict(column) for column in columns]})
    fields = [pa.field(column.name, column.arrow_type(pa)) for column in columns]
    return pa.schema(fields, metadata={_METADATA: described})


async def _batches(
    connection: Connection,
    table: Archived,
    name: str,
    columns: Sequence[Column],
    schema: Any,
    only: Sequence[object] | None = None,
    without: JsonFields | None = None,
) -> AsyncGenerator[Any, None]:
    """The rows of a table, or ``only`` those with these keys, in the order of their key, as Arrow batches.

    A caller that may leave before the end closes it: until then the connection is in its transaction.
    """
    pa = load("pyarrow", extra="archive")
    json_column, fields = without or ("", ())
    arguments = [each for each in (only, list(fields) or None) if each is not None]
    reading = ", ".join(
        f"({column.quoted} - ${len(arguments)}::text[])::text AS {column.quoted}"
        if column.name == json_column
        else column.reading
        for column in columns
    )
    which = "" if only is None else f"WHERE {table.key[0]} = ANY ($1)"
    sql = f"SELECT {reading} FROM headrace.{name} {which} ORDER BY {', '.join(table.key)}"

    def convert(rows: Sequence[Any]) -> Any:
        arrays = [
            pa.array([row[place] for row in rows], _number_of(pa, field.type)).cast(field.type)
            for place, field in enumerate(schema)
        ]
        return pa.record_batch(arrays, schema=schema)

    # A cursor lives in a transaction, and sees one snapshot from its first row to its last.
    async with nullcontext() if connection.is_in_transaction() else connection.transaction():
        cursor = await connection.cursor(sql, *arguments)
        while rows := await cursor.fetch(_BATCH):
            yield await asyncio.to_thread(convert, rows)


async def read_table(connection: Connection, table: Archived, name: str) -> AsyncGenerator[Any, None]:
    """The rows of a table as they would be in a file, as Arrow batches; close it as ``_batches``."""
    columns = await list_columns(connection, name)
    schema = _schema(load("pyarrow", extra="archive"), table, columns)
    async with aclosing(_batches(connection, table, name, columns, schema)) as batches:
        async for batch in batches:
            yield batch


def _number_of(pa: Any, kept: Any) -> Any:
    """The type in which PostgreSQL hands a value over: instants and days come as plain numbers."""
    if pa.types.is_timestamp(kept):
        return pa.int64()
    return pa.int32() if pa.types.is_date32(kept) else kept


async def write(
    connection: Connection,
    table: Archived,
    name: str,
    file: Path,
    *,
    only: Sequence[object] | None = None,
    without: JsonFields | None = None,
) -> Summary:
    """Write all rows of the table ``name``, or ``only`` those with these keys, into ``file``; gives its summary.

    Of a jsonb column, fields may be left out: ``without``."""
    pa, pq = load("pyarrow", extra="archive"), load("pyarrow.parquet", extra="archive")
    columns = await list_columns(connection, name)
    schema = _schema(pa, table, columns)
    extremes = _Extremes(table)
    async with aclosing(_batches(connection, table, name, columns, schema, only, without)) as batches:
        with pq.ParquetWriter(file, schema, compression="zstd", compression_level=9) as writer:
            waiting: list[Any] = []
            async for batch in batches:
                extremes.see(batch)
                waiting.append(batch)
                if sum(map(len, waiting)) >= _ROW_GROUP:
                    await asyncio.to_thread(writer.write_table, pa.Table.from_batches(waiting))
                    waiting = []
            if waiting:
                await asyncio.to_thread(writer.write_table, pa.Table.from_batches(waiting))
    size, digest = await asyncio.to_thread(_measure, file)
    return extremes.summary(size, digest)


class _Extremes:
    """How many rows went by, and the least and greatest of their ids and times."""

    def __init__(self, table: Archived) -> None:
        self._names = (table.id_column, _TIME_COLUMN)
        self._compute = load("pyarrow.compute", extra="archive")
        self._seen: dict[str, list[Any]] = {name: [] for name in self._names}
        self._rows = 0

    def see(self, batch: Any) -> None:
        self._rows += len(batch)
        for name in self._names:
            bounds = self._compute.min_max(batch.column(name)).as_py()
            self._seen[name] += [bounds["min"], bounds["max"]]
            self._seen[name] = [min(self._seen[name]), max(self._seen[name])]

    def summary(self, size: int, digest: str) -> Summary:
        (min_id, max_id), (min_at, max_at) = (self._seen[name] or [None, None] for name in self._names)
        return Summary(self._rows, min_id, max_id, min_at, max_at, size, digest)


def _measure(file: Path) -> tuple[int, str]:
    with file.open("rb") as stream:
        return file.stat().st_size, hashlib.file_digest(stream, "sha256").hexdigest()


# -- reading


class ParquetFile:
    """A file of ours, opened."""

    def __init__(self, file: Path) -> None:
        pq = load("pyarrow.parquet", extra="archive")
        try:
            self._file = pq.ParquetFile(file)
            described = orjson.loads(self._file.schema_arrow.metadata[_METADATA])
        except (load("pyarrow", extra="archive").ArrowException, OSError, KeyError, TypeError, ValueError) as exc:
            raise ArchiveDamaged(f"This is not a Parquet file that Headrace wrote: {exc}") from exc
        self.table: str = described["table"]
        self.columns = [Column(**column) for column in described["columns"]]

    @property
    def row_count(self) -> int:
        count: int = self._file.metadata.num_rows
        return count

    @property
    def schema(self) -> Any:
        return self._file.schema_arrow

    def batches(self, size: int = _BATCH) -> Iterator[Any]:
        """The rows in the order they were written, as Arrow batches."""
        yield from self._file.iter_batches(size)

    def close(self) -> None:
        self._file.close()


async def find_difference(connection: Connection, table: Archived, name: str, file: ParquetFile) -> str | None:
    """What differs between a table and a file, row by row and value by value; None when nothing does."""
    columns = await list_columns(connection, name)
    if columns != file.columns:
        return "the columns are not the same"
    pa = load("pyarrow", extra="archive")
    theirs = _Portions(file)
    count = 0
    async with aclosing(_batches(connection, table, name, columns, _schema(pa, table, columns))) as batches:
        async for batch in batches:
            wanted = await asyncio.to_thread(theirs.take, len(batch))
            if wanted is None or not wanted.equals(pa.Table.from_batches([batch]).replace_schema_metadata()):
                return f"the rows from number {count + 1} on are not the same"
            count += len(batch)
    if count != file.row_count:
        return f"the table has {count} rows and the file {file.row_count}"
    return None


class _Portions:
    """Rows of a file in portions of any size, however they were grouped."""

    def __init__(self, file: ParquetFile) -> None:
        self._pa = load("pyarrow", extra="archive")
        self._batches = file.batches()
        self._left: Any = None

    def take(self, count: int) -> Any:
        """The next ``count`` rows; None when there are fewer."""
        parts, missing = [], count
        while missing:
            if self._left is None or not len(self._left):
                self._left = next(self._batches, None)
                if self._left is None:
                    return None
            part = self._left.slice(0, missing)
            self._left = self._left.slice(len(part))
            parts.append(part)
            missing -= len(part)
        return self._pa.Table.from_batches(parts).combine_chunks().replace_schema_metadata()


async def load_rows(tx: Tx, name: str, file: ParquetFile) -> int:
    """Put the file's rows into an empty table of the same columns."""
    parameters = ", ".join(f"${number}::{column.parameter}" for number, column in enumerate(file.columns, 1))
    names = ", ".join(column.quoted for column in file.columns)
    values = ", ".join(f"{column.quoted}::{column.type}" for column in file.columns)
    sql = f"INSERT INTO headrace.{name} ({names}) SELECT {values} FROM unnest({parameters}) AS restored ({names})"
    count = 0
    for batch in file.batches():
        count += await tx.count(sql, *await asyncio.to_thread(_values, batch))
    return count


def _values(batch: Any) -> list[list[Any]]:
    return [column.to_pylist() for column in batch.columns]
