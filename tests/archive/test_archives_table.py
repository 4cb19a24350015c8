"""What must not be in the book of archives is refused by the database."""

import asyncpg
import pytest

from headrace.database import Tx

WRITTEN = "location = 'x', row_count = 0, size_bytes = 1, sha256 = repeat('0', 64), archived_at = now()"
INSERT = "INSERT INTO headrace.archives (id, table_name, period) VALUES ('arc_1', 'audit_events', '2025-03-01')"

LONG_AGO = "'1999-01-01'"


@pytest.mark.parametrize(
    ("change", "constraint"),
    [
        ("period = '2025-03-02'", "ck_archives_period"),
        ("state = 'LOST'", "tr_archives_state"),
        ("state = 'DROPPED', dropped_at = now()", "tr_archives_state"),
        ("state = 'ARCHIVED'", "ck_archives_archived"),
        (f"state = 'ARCHIVED', {WRITTEN}, row_count = 1".replace("row_count = 0, ", ""), "ck_archives_archived"),
        ("row_count = -1", "ck_archives_row_count"),
        ("size_bytes = 0", "ck_archives_size_bytes"),
        ("sha256 = repeat('A', 64)", "ck_archives_sha256"),
        ("dropped_at = now()", "ck_archives_dropped"),
    ],
)
async def test_a_forbidden_value_is_refused(owner_tx: Tx, change: str, constraint: str) -> None:
    await owner_tx.execute(INSERT)
    with pytest.raises(asyncpg.CheckViolationError) as refusal:
        await owner_tx.execute(f"UPDATE headrace.archives SET {change}")
    assert refusal.value.constraint_name == constraint


@pytest.mark.both
async def test_nothing_is_dropped_whose_archive_was_not_verified(owner_tx: Tx) -> None:
    await owner_tx.execute(INSERT)
    await owner_tx.execute(f"UPDATE headrace.archives SET state = 'ARCHIVED', {WRITTEN}")
    for verified_at in ("NULL", "archived_at - interval '1 second'"):
        with pytest.raises(asyncpg.CheckViolationError, match="ck_archives_dropped"):
            async with owner_tx.savepoint():
                await owner_tx.execute(
                    f"UPDATE headrace.archives SET state = 'DROPPED', dropped_at = now(), verified_at = {verified_at}"
                )
    await owner_tx.execute("UPDATE headrace.archives SET state = 'DROPPED', dropped_at = now(), verified_at = now()")


async def test_a_month_has_one_archive_and_a_file_one_month(owner_tx: Tx) -> None:
    await owner_tx.execute(INSERT)
    with pytest.raises(asyncpg.UniqueViolationError, match="uk_archives_table_period"):
        await owner_tx.execute(INSERT.replace("arc_1", "arc_2"))


async def test_the_application_cannot_write_in_it_nor_make_other_partitions(tx: Tx) -> None:
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        async with tx.savepoint():
            await tx.execute(INSERT)
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        async with tx.savepoint():
            await tx.execute(
                f"SELECT headrace.create_month_partitions('headrace.audit_events', {LONG_AGO}, {LONG_AGO})"
            )
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        async with tx.savepoint():
            await tx.execute("DROP TABLE headrace.audit_events_default")
    with pytest.raises(asyncpg.WrongObjectTypeError):
        await tx.execute("SELECT headrace.make_month_ahead('headrace.users')")


# A catalog of the caller's own, which finds a function of the caller's for whoever looks into it.
CATALOG_OF_ONES_OWN = """
CREATE TABLE pg_temp.acted_as (name text);
GRANT ALL ON pg_temp.acted_as TO PUBLIC;
CREATE FUNCTION pg_temp.act() RETURNS oid LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO pg_temp.acted_as VALUES (current_user);
  RETURN 0;
END $$;
CREATE VIEW pg_temp.pg_class AS
  SELECT oid, relname, relkind, relowner, CASE WHEN pg_temp.act() = 0 THEN relnamespace END AS relnamespace
  FROM pg_catalog.pg_class;
GRANT SELECT ON pg_temp.pg_class TO PUBLIC;
"""


async def test_a_function_of_the_owner_looks_into_no_catalog_of_the_caller(tx: Tx) -> None:
    await tx.execute(CATALOG_OF_ONES_OWN)
    await tx.fetchval("SELECT headrace.make_month_ahead('headrace.audit_events')")
    assert await tx.fetch("SELECT name FROM pg_temp.acted_as") == []


DEFINERS = """
SELECT oid::regprocedure::text FROM pg_proc
WHERE pronamespace = 'headrace'::regnamespace AND prosecdef
  AND NOT coalesce(proconfig && ARRAY['search_path=pg_catalog, pg_temp'], false)
"""


async def test_temporary_things_come_last_for_every_function_of_the_owner(owner_tx: Tx) -> None:
    assert await owner_tx.fetch(DEFINERS) == []
