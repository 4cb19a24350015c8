"""What pending migrations would do to a database in use: locks, duration on tables of its size, and for whom it stays
usable. Reads only."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from headrace.database import DatabaseConfig, connect_alone
from headrace.migrations.files import Migration, statements
from headrace.migrations.schema_status import Status, read_status

# benchmarks/migration_rates.py measured 1,800 to 4,200 MB/s, 127 to 231 MB/s and 72,000 to 105,000 rows/s on a table in
# memory; tables on disks take longer.
SCAN_BYTES_PER_SECOND = 400e6
INDEX_BYTES_PER_SECOND = 100e6
BACKFILL_ROWS_PER_SECOND = 50_000


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of statement: the lock that it takes on its table, and what it does for how long."""

    pattern: "re.Pattern[str]"
    lock: str
    work: str = "catalog"  # catalog, scan, index or rows: what its duration is proportional to


def _kind(pattern: str, lock: str, work: str = "catalog") -> Kind:
    return Kind(re.compile(pattern, re.IGNORECASE | re.DOTALL), lock, work)


_TABLE = r"(?:ONLY )?headrace\.(?P<table>\w+)"
# The first that fits counts.
KINDS = (
    _kind(rf"ALTER TABLE {_TABLE}.*\bVALIDATE CONSTRAINT\b", "SHARE UPDATE EXCLUSIVE", "scan"),
    _kind(rf"ALTER TABLE {_TABLE}.*\bADD CONSTRAINT\b.*\bNOT VALID\b", "ACCESS EXCLUSIVE"),
    _kind(rf"ALTER TABLE {_TABLE}.*\bADD CONSTRAINT\b.*\bUSING INDEX\b", "ACCESS EXCLUSIVE"),
    _kind(rf"ALTER TABLE {_TABLE}.*\bADD CONSTRAINT\b", "ACCESS EXCLUSIVE", "scan"),
    _kind(rf"ALTER TABLE {_TABLE}.*\bALTER COLUMN \w+ (?:SET DATA )?TYPE\b", "ACCESS EXCLUSIVE", "index"),
    _kind(rf"ALTER TABLE {_TABLE}", "ACCESS EXCLUSIVE"),
    _kind(rf"CREATE (?:UNIQUE )?INDEX CONCURRENTLY .*?\bON {_TABLE}", "SHARE UPDATE EXCLUSIVE", "index"),
    _kind(rf"CREATE (?:UNIQUE )?INDEX .*?\bON {_TABLE}", "SHARE", "index"),
    _kind(rf"CREATE (?:OR REPLACE )?TRIGGER .*?\bON {_TABLE}", "SHARE ROW EXCLUSIVE"),
    _kind(r"DROP INDEX CONCURRENTLY", "SHARE UPDATE EXCLUSIVE"),
    _kind(r"DROP (?:INDEX|TRIGGER)", "ACCESS EXCLUSIVE"),
    _kind(rf"DROP TABLE (?:IF EXISTS )?{_TABLE}", "ACCESS EXCLUSIVE"),
    _kind(r"CALL headrace\.backfill\(\s*'headrace\.(?P<table>\w+)'", "ROW EXCLUSIVE", "rows"),
    _kind(rf"(?:UPDATE|DELETE FROM|INSERT INTO) {_TABLE}", "ROW EXCLUSIVE", "rows"),
)
_CREATED = re.compile(rf"CREATE TABLE (?:IF NOT EXISTS )?{_TABLE}", re.IGNORECASE)
_COMMENT = re.compile(r"^\s*--.*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Effect:
    """One statement of a migration, on an existing table."""

    statement: str
    table: str | None
    lock: str
    seconds: float  # roughly, on a table of this size; 0 for a change of the catalog


@dataclass(frozen=True, slots=True)
class Check:
    """One pending migration."""

    migration: Migration
    effects: Sequence[Effect]

    @property
    def seconds(self) -> float:
        return sum(effect.seconds for effect in self.effects)

    @property
    def expands(self) -> bool:
        """Whether running processes of the present release go on."""
        return self.migration.needs == 0


SIZES = """
SELECT c.relname::text AS name, pg_table_size(c.oid) + coalesce((
         SELECT sum(pg_table_size(inhrelid)) FROM pg_inherits WHERE inhparent = c.oid
       ), 0) AS bytes,
       greatest(c.reltuples, 0) + coalesce((
         SELECT sum(greatest(month.reltuples, 0)) FROM pg_inherits JOIN pg_class AS month ON month.oid = inhrelid
         WHERE inhparent = c.oid
       ), 0) AS rows
FROM pg_class AS c
WHERE c.relnamespace = to_regnamespace('headrace') AND c.relkind IN ('r', 'p') AND NOT c.relispartition
"""


async def check(config: DatabaseConfig) -> tuple[Status, list[Check]]:
    """The pending migrations with their effects on this database."""
    async with connect_alone(config) as connection:
        found = await read_status(connection)
        sizes = {row["name"]: (float(row["bytes"]), float(row["rows"])) for row in await connection.fetch(SIZES)}
    return found, [Check(each, list(_effects(each, sizes))) for each in found.pending]


def _effects(migration: Migration, sizes: dict[str, tuple[float, float]]) -> Iterator[Effect]:
    made: set[str] = set()
    for text in statements(migration.up):
        statement = " ".join(_COMMENT.sub("", text).split())
        if created := _CREATED.match(statement):
            made.add(created["table"])
            continue
        for kind in KINDS:
            if match := kind.pattern.match(statement):
                table = match.groupdict().get("table")
                if table not in made:  # a table that is being made has no users yet
                    yield Effect(_short(statement), table, kind.lock, _seconds(kind, *sizes.get(table or "", (0, 0))))
                break


def _seconds(kind: Kind, size: float, rows: float) -> float:
    match kind.work:
        case "scan":
            return size / SCAN_BYTES_PER_SECOND
        case "index":
            return size / INDEX_BYTES_PER_SECOND
        case "rows":
            return rows / BACKFILL_ROWS_PER_SECOND
        case _:
            return 0.0


def _short(statement: str) -> str:
    return statement if len(statement) <= 70 else statement[:69] + "…"


def as_json(checks: Sequence[Check]) -> list[dict[str, Any]]:
    return [
        {
            "number": check.migration.number,
            "name": check.migration.name,
            "expands": check.expands,
            "needs": check.migration.needs,
            "seconds": round(check.seconds, 1),
            "effects": [
                {
                    "statement": effect.statement,
                    "table": effect.table,
                    "lock": effect.lock,
                    "seconds": round(effect.seconds, 1),
                }
                for effect in check.effects
            ],
        }
        for check in checks
    ]
