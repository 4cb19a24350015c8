"""What locks forget of a user whose account goes. W-16."""

from headrace import ids
from headrace.database import Database
from headrace.locks.erasure import ForgetLocks


async def test_the_locks_of_a_user_go_and_nobody_elses(db: Database) -> None:
    ada = ids.new("u")
    async with db.transaction() as tx:
        await tx.execute("INSERT INTO headrace.users (id, username, password_hash) VALUES ($1, 'ada', '!')", ada)
        for owner in (ada, ids.SYSTEM_USER):
            await tx.execute(
                "INSERT INTO headrace.task_locks "
                "(user_id, lock_key, fence, holder_id, token, state, acquired_at, expires_at, purpose) "
                "SELECT $1, 'ada''s ' || n, 1, 'ada', 't', 'active', now(), now() + interval '1 h', 'for ada' "
                "FROM generate_series(1, 1200) AS n",
                owner,
            )
            await tx.execute(
                "INSERT INTO headrace.lock_fences (user_id, lock_key, fence) VALUES ($1, 'ada''s', 7)", owner
            )
    assert sum([gone async for gone in ForgetLocks().erase(db, ada)]) == 1201
    for table, left in (("task_locks", 1200), ("lock_fences", 1)):
        rows = await db.fetch_alone(f"SELECT user_id FROM headrace.{table}")
        assert [row["user_id"] for row in rows] == [ids.SYSTEM_USER] * left
