"""Every foreign key is proved by an insert that refers to nothing and by a delete of what is referred to. 002 §2.5

The list is the catalog's: a new one is tried by itself, and its tables need a row in ``rows.py``.
"""

from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

import asyncpg
import pytest

from headrace.database import Tx
from tests.migrations.rows import insert, row

FOREIGN_KEYS = """
SELECT c.conname, child.relname AS child, parent.relname AS parent, c.confdeltype::text AS on_delete,
       here.attname AS column, there.attname AS key, cardinality(c.conkey) AS columns
FROM pg_constraint AS c
JOIN pg_class AS child ON child.oid = c.conrelid
JOIN pg_class AS parent ON parent.oid = c.confrelid
JOIN pg_attribute AS here ON here.attrelid = c.conrelid AND here.attnum = c.conkey[1]
JOIN pg_attribute AS there ON there.attrelid = c.confrelid AND there.attnum = c.confkey[1]
-- Those of partitions are their table's.
WHERE c.contype = 'f' AND c.conparentid = 0 AND c.connamespace = to_regnamespace('headrace')
ORDER BY c.conname
"""
NOWHERE = {"seal": 901, "minute": datetime(2020, 1, 1, tzinfo=UTC)}  # of a column that is no text


@dataclass(frozen=True)
class ForeignKey:
    name: str
    child: str
    parent: str
    on_delete: str
    column: str
    key: str
    columns: int


class _Undo(Exception):
    pass


async def alone(tx: Tx, keys: list[ForeignKey], wanted: ForeignKey) -> None:
    """Leave this foreign key the only rule between tables: others would refuse the same delete first."""
    for each in keys:
        if each.name != wanted.name:
            await tx.execute(f"ALTER TABLE headrace.{each.child} DROP CONSTRAINT {each.name}")
    for table in {wanted.child, wanted.parent}:
        await tx.execute(f"ALTER TABLE headrace.{table} DISABLE TRIGGER USER")


async def prove(tx: Tx, key: ForeignKey) -> None:
    parent = row(key.parent)
    await insert(tx, key.parent)
    with pytest.raises(asyncpg.ForeignKeyViolationError) as loose:
        async with tx.savepoint():
            await insert(tx, key.child, **{key.column: NOWHERE.get(key.column, "none")})
    assert loose.value.constraint_name == key.name
    await insert(tx, key.child, **{key.column: parent[key.key]})
    delete = f"DELETE FROM headrace.{key.parent} WHERE {key.key} = $1"
    left = f"SELECT {key.column} FROM headrace.{key.child}"
    if key.on_delete in "ar":  # no action, restrict
        with pytest.raises(asyncpg.ForeignKeyViolationError) as held:
            async with tx.savepoint():
                await tx.execute(delete, parent[key.key])
        assert held.value.constraint_name == key.name
        return
    await tx.execute(delete, parent[key.key])
    rows = [found[0] for found in await tx.fetch(left)]
    assert rows == {"c": [], "n": [None]}[key.on_delete]


async def test_every_foreign_key_holds_at_an_insert_and_at_a_delete(owner_tx: Tx, subtests: pytest.Subtests) -> None:
    keys = [ForeignKey(*found) for found in await owner_tx.fetch(FOREIGN_KEYS)]
    assert len(keys) >= 25
    for each in keys:
        with subtests.test(each.name), suppress(_Undo):
            assert each.columns == 1
            async with owner_tx.savepoint():
                await alone(owner_tx, keys, each)
                await prove(owner_tx, each)
                raise _Undo


# 002's foreign keys from what is kept for years to what is kept for weeks or days; docs/why/schema.md leaves them out.
LEFT_OUT = [("usage_ledger", "task_id", "tasks", "id"), ("webhook_deliveries", "event_id", "outbox_events", "event_id")]


@pytest.mark.parametrize("on_delete", ["NO ACTION", "SET NULL", "CASCADE"])
@pytest.mark.parametrize(("child", "column", "parent", "key"), LEFT_OUT)
async def test_a_key_from_what_is_kept_longer_stops_retention_or_loses_history(
    owner_tx: Tx, child: str, column: str, parent: str, key: str, on_delete: str
) -> None:
    """Whichever way PostgreSQL offers: the task or event stays, or the ledger or the deliveries lose rows."""
    keys = [ForeignKey(*found) for found in await owner_tx.fetch(FOREIGN_KEYS)]
    for each in keys:  # they would refuse the same delete first
        if child in (each.child, each.parent) or parent in (each.child, each.parent):
            await owner_tx.execute(f"ALTER TABLE headrace.{each.child} DROP CONSTRAINT {each.name}")
    await owner_tx.execute(
        f"ALTER TABLE headrace.{child} ADD CONSTRAINT fk_tried FOREIGN KEY ({column}) "
        f"REFERENCES headrace.{parent} ({key}) ON DELETE {on_delete}"
    )
    await insert(owner_tx, parent)
    await insert(owner_tx, child)
    delete = f"DELETE FROM headrace.{parent} WHERE {key} = $1"
    if (child, on_delete) == ("webhook_deliveries", "CASCADE"):
        await owner_tx.execute(delete, row(parent)[key])
        assert await owner_tx.fetchval(f"SELECT count(*) FROM headrace.{child}") == 0
        return
    refusal = asyncpg.ForeignKeyViolationError if on_delete == "NO ACTION" else asyncpg.PostgresError
    with pytest.raises(refusal) as refused:
        async with owner_tx.savepoint():
            await owner_tx.execute(delete, row(parent)[key])
    if on_delete != "NO ACTION":  # the ledger only grows; a delivery has its event's id in its key
        assert "only grows" in str(refused.value) or isinstance(refused.value, asyncpg.NotNullViolationError), refused
