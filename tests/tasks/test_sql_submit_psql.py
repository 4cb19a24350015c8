"""``headrace.submit`` from another program: psql, which knows nothing of us. D-02, D-06."""

import asyncio

import pytest

from headrace import ids
from headrace.database import Database
from tests.tasks.sql import count, run_psql

pytestmark = pytest.mark.both


async def test_psql_submits_in_its_own_transaction(database_url: str, db: Database) -> None:
    code, out, err = await run_psql(
        database_url,
        """
        BEGIN;
        CREATE TEMP TABLE orders (id int, task text);
        INSERT INTO orders VALUES (1, headrace.submit('ship', '{"order": 1}', priority => 5, unknown_type => 'wait'));
        SELECT task FROM orders;
        COMMIT;
        BEGIN;
        SELECT headrace.submit('order.ship', '{"order": 2}', unknown_type => 'wait');
        ROLLBACK;
        """,
    )
    kept, undone = out.splitlines()
    assert (code, err) == (0, "")
    assert [row["id"] for row in await db.fetch_alone("SELECT id FROM headrace.tasks")] == [kept]
    assert ids.check(undone, "tsk")


async def test_many_psqls_with_one_key_get_one_task(database_url: str, db: Database) -> None:
    await db.fetch_alone("INSERT INTO headrace.task_types (name) VALUES ('order.ship')")
    script = "SELECT headrace.submit('order.ship', '{\"order\": 1}', idempotency_key => 'order-1')"
    done = await asyncio.gather(*(run_psql(database_url, script) for _ in range(8)))
    assert {code for code, _, _ in done} == {0}
    assert len({out for _, out, _ in done}) == 1
    assert await count(db, "tasks") == 1


async def test_psql_is_told_what_is_wrong_and_what_to_do(database_url: str) -> None:
    code, _, err = await run_psql(
        database_url,
        "\\set VERBOSITY verbose\n"
        "SELECT headrace.submit('a', '1', idempotency_key => 'k', unknown_type => 'wait');\n"
        "SELECT headrace.submit('a', '2', idempotency_key => 'k', unknown_type => 'wait');\n",
    )
    assert code == 3
    assert "HR002: the idempotency key 'k' was used for another task" in err
    assert "HINT:  Take a fresh key for each task" in err
