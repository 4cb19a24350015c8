"""Functions, triggers and views: a file each beside the migrations, and re-created when its text has changed.

``functions/NAME.sql`` and ``views/NAME.sql`` hold one definition each, ``triggers/TABLE.sql`` those of one table. So a
changed function is a diff of that function. Tables change by numbered migrations alone.

All of them together have a revision, a number in the file ``revision`` that grows with every change: by it an older
program knows that it must not put its own back. The book keeps the texts that were replaced, by the newest migration of
that time, so that definitions go back with their migrations.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import asyncpg

from headrace.database import Tx

_KINDS = ("functions", "triggers", "views")  # in the order in which they are made


@dataclass(frozen=True, slots=True)
class Definition:
    kind: str
    name: str  # of the function or the view; for triggers, of their table
    text: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Stale:
    """What a database lacks of the definitions that this program has."""

    new_functions: tuple[Definition, ...] = ()  # made before the migrations: CHECKs and partitions rest on them
    others: tuple[Definition, ...] = ()  # made after them: a changed function may need a new column
    revision: int = 0  # of those that the database has

    def __bool__(self) -> bool:
        return bool(self.new_functions or self.others)

    def __iter__(self) -> Iterator[Definition]:
        yield from self.new_functions
        yield from self.others


@cache
def known() -> tuple[Definition, ...]:
    """Every definition of this program; functions after those that they call."""
    by_kind = {kind: tuple(_read(kind)) for kind in _KINDS}
    return (*_callees_first(by_kind["functions"]), *by_kind["triggers"], *by_kind["views"])


def revision() -> int:
    """The number of this program's definitions."""
    return int((files(__package__) / "revision").read_text("utf-8").split()[0])


def numbered() -> str:
    """The text of the file ``revision`` as it should be: the next number if a definition has changed since."""
    number, _, checksum = (files(__package__) / "revision").read_text("utf-8").strip().partition(" ")
    now = hashlib.sha256("".join(one.checksum for one in sorted(known(), key=str)).encode()).hexdigest()
    return f"{number if checksum == now else int(number) + 1} {now}\n"


def _read(kind: str) -> Iterator[Definition]:
    for entry in sorted((files(__package__) / kind).iterdir(), key=lambda entry: entry.name):
        if entry.name.endswith(".sql"):
            yield Definition(kind, entry.name.removesuffix(".sql"), entry.read_text("utf-8"))


def _callees_first(functions: Iterable[Definition]) -> list[Definition]:
    """A body in SQL is bound when it is created, so what it calls must be there."""
    left = {function.name: function for function in functions}
    ordered: list[Definition] = []

    def place(function: Definition) -> None:
        for callee in re.findall(r"headrace\.(\w+)\(", function.text):
            if (found := left.pop(callee, None)) is not None:
                place(found)
        ordered.append(function)

    while left:
        place(left.pop(next(iter(left))))
    return ordered


FIND_BOOK = "SELECT to_regclass('headrace.schema_definitions') IS NOT NULL"
# A book that an earlier program has begun has no revisions.
LIST_BOOKED = """
SELECT kind, name, checksum, coalesce((to_jsonb(booked) ->> 'revision')::integer, 0) AS revision
FROM headrace.schema_definitions AS booked
"""


async def read_stale(connection: "asyncpg.Connection[Any] | Tx") -> Stale:
    """What this database lacks, or has in another version."""
    rows = await connection.fetch(LIST_BOOKED) if await connection.fetchval(FIND_BOOK) else []
    booked = {(row["kind"], row["name"]): row["checksum"] for row in rows}
    stale = [one for one in known() if booked.get((one.kind, one.name)) != one.checksum]
    new = tuple(one for one in stale if one.kind == "functions" and (one.kind, one.name) not in booked)
    others = tuple(one for one in stale if one not in new)
    return Stale(new, others, revision=max((row["revision"] for row in rows), default=0))


# `former` has one text for each level, the newest migration while it was in force: of several, the first.
BOOK = """
INSERT INTO headrace.schema_definitions AS booked (kind, name, checksum, text)
VALUES ('{kind}', '{name}', '{checksum}', $headrace_text${text}$headrace_text$)
ON CONFLICT (kind, name) DO UPDATE SET
  checksum = excluded.checksum, text = excluded.text, applied_at = now(),
  former = CASE
    WHEN booked.text IS NULL OR booked.former @> jsonb_build_array(jsonb_build_object(
      'level', current_setting('headrace.level_before')::integer
    )) THEN booked.former
    ELSE booked.former || jsonb_build_object(
      'level', current_setting('headrace.level_before')::integer,
      'revision', current_setting('headrace.revision_before')::integer,
      'checksum', booked.checksum, 'text', booked.text
    )
  END;
"""
# Before anything changes: what the level and the revision are. Earlier programs booked no texts.
NOTE_LEVEL = """
UPDATE headrace.schema_definitions AS booked SET text = (
  SELECT string_agg(pg_get_functiondef(oid) || ';', E'\n' ORDER BY oid)
  FROM pg_proc
  WHERE pronamespace = 'headrace'::regnamespace AND proname = booked.name
)
WHERE kind = 'functions' AND text IS NULL;
SELECT set_config('headrace.level_before', coalesce(max(number), 0)::text, false) FROM headrace.schema_migrations;
SELECT set_config('headrace.revision_before', coalesce(max(revision), 0)::text, false) FROM headrace.schema_definitions;
"""


# Of all, not only of those that were made just now: the others are of this revision, too.
NUMBER = "UPDATE headrace.schema_definitions SET revision = {revision} WHERE revision < {revision};\n"


def creation(definitions: Iterable[Definition]) -> str:
    """SQL that makes them, and notes it."""
    made = "".join(f"-- {one}\n{one.text.rstrip()}{_booking(one)}" for one in definitions)
    return made + numbering() if made else ""


def _booking(one: Definition) -> str:
    return BOOK.format(kind=one.kind, name=one.name, checksum=one.checksum, text=one.text)


def numbering() -> str:
    """SQL that notes of which revision the definitions are."""
    return NUMBER.format(revision=revision())


# A function may speak of tables that come after it.
BEFORE_TABLES = "SET LOCAL check_function_bodies = off;\n"
# Triggers went with the tables that were dropped, and views before them. Whoever goes back wants an older program next.
FORGET_ALL_BUT_FUNCTIONS = (
    "DELETE FROM headrace.schema_definitions WHERE kind <> 'functions'; "
    "UPDATE headrace.schema_definitions SET revision = 0;"
)
# The text that was in force when a migration was the newest, where another has replaced it since.
LIST_FORMER = """
SELECT booked.kind, booked.name, first_of.entry ->> 'text' AS text, first_of.entry ->> 'checksum' AS checksum,
       (first_of.entry ->> 'revision')::integer AS revision
FROM headrace.schema_definitions AS booked
CROSS JOIN LATERAL (
  SELECT replaced.entry FROM jsonb_array_elements(booked.former) AS replaced (entry)
  WHERE (replaced.entry ->> 'level')::integer >= $1
  ORDER BY (replaced.entry ->> 'level')::integer
  LIMIT 1
) AS first_of
ORDER BY booked.kind, booked.name
"""
LIST_TEXTS = (
    "SELECT kind, name, text, checksum FROM headrace.schema_definitions WHERE kind <> 'functions' AND text IS NOT NULL"
)
REBOOK = """
UPDATE headrace.schema_definitions AS booked
SET text = $3, checksum = $4, applied_at = now(), former = (
  SELECT coalesce(jsonb_agg(replaced.entry), '[]') FROM jsonb_array_elements(booked.former) AS replaced (entry)
  WHERE (replaced.entry ->> 'level')::integer < $5
)
WHERE kind = $1 AND name = $2
"""
RENUMBER = "UPDATE headrace.schema_definitions SET revision = $1"
FORGET = "DELETE FROM headrace.schema_definitions WHERE kind = $1 AND name = $2"


@dataclass(frozen=True, slots=True)
class Former:
    """A definition as it was at an earlier migration."""

    definition: Definition
    checksum: str


@dataclass(frozen=True, slots=True)
class Earlier:
    """The definitions to put back when migrations are undone."""

    level: int
    functions: Sequence[Former]  # before the migrations are undone: the present ones use what those drop
    others: Sequence[Former]  # triggers and views, after it
    unknown: Sequence[tuple[str, str]]  # triggers and views of which no text was kept
    revision: int


async def read_earlier(connection: "asyncpg.Connection[Any]", level: int) -> Earlier:
    """What was in force when the migration ``level`` was the newest."""
    replaced = {(row["kind"], row["name"]): row for row in await connection.fetch(LIST_FORMER, level)}
    booked = await connection.fetch("SELECT kind, name FROM headrace.schema_definitions WHERE kind <> 'functions'")
    texts = {(row["kind"], row["name"]): row for row in await connection.fetch(LIST_TEXTS)} | replaced
    formers = {key: Former(Definition(*key, row["text"]), row["checksum"]) for key, row in texts.items()}
    return Earlier(
        level=level,
        functions=[former for (kind, _), former in formers.items() if kind == "functions"],
        others=[former for (kind, _), former in sorted(formers.items()) if kind != "functions"],
        unknown=[(row["kind"], row["name"]) for row in booked if (row["kind"], row["name"]) not in formers],
        revision=min((row["revision"] for row in replaced.values()), default=0),
    )


async def put_back(connection: "asyncpg.Connection[Any]", earlier: Earlier, formers: Iterable[Former]) -> None:
    """Make definitions as they were, and note it; in the caller's transaction."""
    await connection.execute(BEFORE_TABLES)
    for former in formers:
        one = former.definition
        await connection.execute(one.text)
        await connection.execute(REBOOK, one.kind, one.name, one.text, former.checksum, earlier.level)


LIST_TABLES = (
    "SELECT relname::text FROM pg_class WHERE relnamespace = 'headrace'::regnamespace AND relkind IN ('r', 'p')"
)


async def possible(connection: "asyncpg.Connection[Any]", definitions: Iterable[Definition]) -> list[Definition]:
    """Those whose tables are there: a database may be brought up in part."""
    tables = {row["relname"] for row in await connection.fetch(LIST_TABLES)}
    return [one for one in definitions if one.kind == "functions" or set(_tables_of(one)) <= tables]


def _tables_of(definition: Definition) -> list[str]:
    if definition.kind == "triggers":
        return [definition.name]
    return re.findall(r"(?:FROM|JOIN) headrace\.(\w+)", definition.text)


def removal() -> str:
    """SQL that drops every function of ours, callers first; for when the last table is gone."""
    names = [one.name for one in reversed(known()) if one.kind == "functions"]
    return f"""DO $$
DECLARE
  name    text;
  routine regprocedure;
BEGIN
  FOREACH name IN ARRAY ARRAY[{", ".join(f"'{name}'" for name in names)}] LOOP
    FOR routine IN
      SELECT oid FROM pg_proc WHERE pronamespace = 'headrace'::regnamespace AND proname = name
    LOOP
      EXECUTE format('DROP ROUTINE %s', routine);
    END LOOP;
  END LOOP;
END $$;
"""
