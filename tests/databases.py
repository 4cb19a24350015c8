"""Databases for tests that commit: emptied and given to the next test where that is safe, else dropped.

A copy of the migrated template is some seven hundred files, written and removed again for every test; to delete the few
rows that a test made takes a tenth of that. What a test did is read from the server's own statistics: a changed catalog
(a partition, a disabled trigger, ANALYZE), a setting of the database or more rows than a few means a new copy.
"""

import itertools
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import psycopg

Connection = psycopg.Connection[tuple[Any, ...]]

# What was deleted stays in the files, so a database does not live for ever.
_LIVES = 20
_MOST_BYTES = 256 * 1024
_LEAVE_WITHIN_S = 30.0
_BACK_WITHIN_S = 60.0

_numbers = itertools.count()

# Settings of a database lie in a catalog that all databases share, which counts for none of them.
_IS_CHANGED = """
SELECT EXISTS (SELECT FROM pg_db_role_setting JOIN pg_database ON pg_database.oid = setdatabase
               WHERE datname = current_database())
  OR EXISTS (SELECT FROM pg_class
             WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind = 'r' AND NOT relisshared
               AND pg_stat_get_tuples_inserted(oid) + pg_stat_get_tuples_updated(oid)
                 + pg_stat_get_tuples_deleted(oid) > 0)
"""
_WRITTEN = """
SELECT format('%I.%I', nspname, relname), pg_total_relation_size(pg_class.oid)
FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
WHERE relkind = 'r' AND nspname NOT IN ('pg_catalog', 'information_schema')
  AND pg_stat_get_tuples_inserted(pg_class.oid) + pg_stat_get_tuples_updated(pg_class.oid)
    + pg_stat_get_tuples_deleted(pg_class.oid) > 0
"""
_TABLES = """
SELECT format('%I.%I', nspname, relname) FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
WHERE relkind = 'r' AND nspname NOT IN ('pg_catalog', 'information_schema') AND pg_relation_size(pg_class.oid) > 0
"""
_REWIND = "SELECT setval(seqrelid, seqstart, false) FROM pg_sequence WHERE pg_sequence_last_value(seqrelid) IS NOT NULL"
_SEND_AWAY = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"


def _new_name() -> str:
    return f"headrace_test_{os.getpid()}_{next(_numbers)}"


class Server(Protocol):
    def url(self, database: str, *, role: str | None = None) -> str: ...


class Superuser:
    """One connection for all the statements of a test process, opened anew when its server went away: one that crashed
    and came back costs the tests that ran at that moment, and none of those after them."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: Connection = psycopg.connect(url, autocommit=True)
        self.restarts = 0  # that were noticed

    def execute(self, sql: str, values: Sequence[object] | None = None) -> "psycopg.Cursor[tuple[Any, ...]]":
        try:
            return self._connection.execute(sql, values)
        except psycopg.OperationalError:
            if not self._connection.broken:
                raise
        # It broke while nobody looked, or under this very statement: then a second time can fail for having been done.
        self._reconnect()
        return self._connection.execute(sql, values)

    def close(self) -> None:
        self._connection.close()

    def _reconnect(self) -> None:
        self.restarts += 1
        deadline = time.monotonic() + _BACK_WITHIN_S
        while True:
            try:
                self._connection = psycopg.connect(self._url, autocommit=True)
            except psycopg.OperationalError:  # it reads its log
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
            else:
                return


@dataclass
class _Made:
    template: str
    lives: int = _LIVES
    restarts: int = 0  # before it was made


@dataclass
class Databases:
    """The databases of one test process. Those that were there when its server crashed are not given again: what was
    written to them is not known any more, and the last commits may be lost."""

    server: Server
    superuser: Superuser
    _out: dict[str, _Made] = field(default_factory=dict)
    _free: list[tuple[str, _Made]] = field(default_factory=list)
    _seeds: dict[str, dict[str, bytes]] = field(default_factory=dict)

    def take(self, template: str) -> str:
        """A database as it is right after its template was copied, under a name that no other test has had."""
        for number, (name, made) in enumerate(self._free):
            if made.template == template and self._is_sound(made):
                del self._free[number]
                self._out[name] = made
                return name
        name = _new_name()
        self.superuser.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy")  # a third of the time
        self._out[name] = _Made(template, restarts=self.superuser.restarts)
        if template.startswith("headrace_template_") and template not in self._seeds:
            self._seeds[template] = self._read_seeds(name)
        return name

    def give_back(self, name: str) -> None:
        made = self._out.pop(name)
        made.lives -= 1
        if made.template in self._seeds and made.lives > 0 and self._is_left(name):
            # First of all: whatever still knows the former name does not find it any more.
            renamed = _new_name()
            try:
                self.superuser.execute(f"ALTER DATABASE {name} RENAME TO {renamed}")
            except psycopg.errors.ObjectInUse:  # somebody came back at once
                renamed = name
            if renamed != name and self._empty(renamed, made.template) and self._is_sound(made):
                self._free.append((renamed, made))
                return
            name = renamed
        self._drop(name)

    def close(self) -> None:
        for name in [*self._out, *(name for name, _ in self._free)]:
            self._drop(name)

    def _drop(self, name: str) -> None:
        self.superuser.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    def _is_sound(self, made: _Made) -> bool:
        self.superuser.execute("SELECT")  # notices a restart
        return made.restarts == self.superuser.restarts

    def _is_left(self, name: str) -> bool:
        """Send everybody away and wait until they are gone: only then have they said what they did."""
        deadline = time.monotonic() + _LEAVE_WITHIN_S
        while self.superuser.execute(_SEND_AWAY, [name]).fetchall():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.002)
        exists = self.superuser.execute("SELECT true FROM pg_database WHERE datname = %s", [name]).fetchone()
        return exists is not None

    def _read_seeds(self, name: str) -> dict[str, bytes]:
        """The rows that a migrated database has from the beginning."""
        with psycopg.connect(self.server.url(name), autocommit=True) as connection:
            tables = [table for (table,) in connection.execute(_TABLES).fetchall()]
            return {table: _content(connection, table) for table in tables}

    def _empty(self, name: str, template: str) -> bool:
        """Undo what a test has written; False where that is more than to delete a few rows."""
        with psycopg.connect(self.server.url(name)) as connection:
            (changed,) = connection.execute(_IS_CHANGED).fetchone() or (True,)
            written = connection.execute(_WRITTEN).fetchall()
            if changed or any(size > _MOST_BYTES for _, size in written):
                return False
            # No trigger and no foreign key has a say.
            connection.execute("SET LOCAL session_replication_role = replica")
            for table, _ in written:
                self._restore(connection, table, template)
            connection.execute(_REWIND)
        return True

    def _restore(self, connection: Connection, table: str, template: str) -> None:
        seed = self._seeds[template].get(table)
        if seed is not None and _content(connection, table) == seed:
            return
        connection.execute(f"DELETE FROM {table}")
        if seed is not None:
            with connection.cursor().copy(f"COPY {table} FROM STDIN") as copy:
                copy.write(seed)


def _content(connection: Connection, table: str) -> bytes:
    with connection.cursor().copy(f"COPY {table} TO STDOUT") as copy:
        return b"".join(bytes(part) for part in copy)
