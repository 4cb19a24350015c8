"""A result that the user already has is free a few times a day: repeating an order is no way to unlimited work."""

import pytest

from headrace.database import Database
from headrace.removal.service.orders.free_limits import (
    MAX_WAIVED_REPEATS_PER_FILE,
    MAX_WAIVED_SAMPLES_PER_USER,
    WaiversUsedUp,
    count_waived_repeat,
    count_waived_sample,
)


async def is_waived(db: Database, task_id: str, user_id: str = "u_ada", sha256: str = "abc") -> bool:
    try:
        async with db.transaction() as tx:
            await count_waived_repeat(tx, task_id, user_id, sha256)
    except WaiversUsedUp:
        return False
    return True


async def test_repeats_of_a_file_are_waived_a_few_times_a_day(db: Database) -> None:
    waived = [await is_waived(db, f"tsk_{n}") for n in range(MAX_WAIVED_REPEATS_PER_FILE + 2)]
    assert waived == [True] * MAX_WAIVED_REPEATS_PER_FILE + [False] * 2
    assert await is_waived(db, "tsk_0"), "a task that runs again is counted once"
    assert not await is_waived(db, f"tsk_{MAX_WAIVED_REPEATS_PER_FILE}"), "a refused task that runs again stays refused"
    assert await is_waived(db, "tsk_other", sha256="of another file")
    assert await is_waived(db, "tsk_another", user_id="u_bob")


async def test_the_sample_is_free_ten_times_a_day(db: Database) -> None:
    for number in range(MAX_WAIVED_SAMPLES_PER_USER):
        async with db.transaction() as tx:
            await count_waived_sample(tx, f"tsk_{number}", "u_ada")
    with pytest.raises(WaiversUsedUp):
        async with db.transaction() as tx:
            await count_waived_sample(tx, "tsk_more", "u_ada")
