"""Claims whose answer was lost are found, and answered ones are not found again."""

from typing import Any

from headrace.tasks.context import TaskContext
from headrace.tasks.worker.claiming import Claimer, Room
from headrace.tasks.worker.lost_replies import LostReplies
from tests.tasks.conftest import Bench
from tests.tasks.people import hire


async def test_a_claim_of_several_lanes_that_was_answered_is_not_found_again(bench: Bench) -> None:  # D-08
    """Each lane of a claim has a time of its own, and single attempts come first in the answer, whatever their lane."""

    @bench.registry.task("often", max_attempts=3)
    async def often(context: TaskContext, payload: Any) -> None: ...

    @bench.registry.task("once", max_attempts=1)
    async def once(context: TaskContext, payload: Any) -> None: ...

    users = [await bench.user(f"user-{n}") for n in range(4)]
    for n, user_id in enumerate(users):
        await bench.submit(("often", "once")[n % 2], user_id=user_id)
    worker = await hire(bench)
    claimer = Claimer(bench.db, queues=None, types={"async": bench.registry.names}, labels={})
    rows = await claimer.claim(worker, {"async": Room(10, 10)})
    times = [row["claimed_at"] for row in rows]
    assert len(set(times)) == 4
    replies = LostReplies(bench.db)
    replies.note(rows)
    replies.expect()
    assert [row["task_id"] for row in await replies.find(worker)] == []
