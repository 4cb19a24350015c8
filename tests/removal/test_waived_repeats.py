"""A result that the user already has is free a few times a day: repeating an order is no way to unlimited work."""

from headrace.database import Database
from headrace.removal.service.orders.unpaid import MAX_WAIVED_REPEATS_PER_FILE, may_waive


async def test_repeats_of_a_file_are_waived_a_few_times_a_day(db: Database) -> None:
    async with db.transaction() as tx:
        waived = [await may_waive(tx, f"tsk_{n}", "u_ada", "abc") for n in range(MAX_WAIVED_REPEATS_PER_FILE + 2)]
        assert waived == [True] * MAX_WAIVED_REPEATS_PER_FILE + [False] * 2
        assert await may_waive(tx, "tsk_0", "u_ada", "abc"), "a task that runs again is counted once"
        assert await may_waive(tx, "tsk_other", "u_ada", "of another file")
        assert await may_waive(tx, "tsk_another", "u_bob", "abc")
