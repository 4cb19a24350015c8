"""Claims keep their plans, also from a time when the queue was empty: they must walk over no more than they take."""

from headrace import ids
from headrace.database import Tx
from headrace.tasks.catalog import RegistryCatalog
from headrace.tasks.followers import Followers
from headrace.tasks.model import TaskSpec
from headrace.tasks.registry import Registry
from headrace.tasks.submit import Submitter
from headrace.tasks.worker import store
from tests.tasks.people import enter

WALKED = """
SELECT coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0)
FROM pg_stat_xact_user_tables
WHERE schemaname = 'headrace' AND relname IN ('tasks', 'task_queue')
"""


async def claim(tx: Tx, worker: store.Identity, most: int) -> list[int]:
    rows = await tx.fetch(store.CLAIM_FIRST, worker.number, None, ["noop"], {}, most, most)
    return [row["seq"] for row in rows]


async def test_a_plan_from_an_almost_empty_queue_serves_a_full_one(owner_tx: Tx) -> None:
    """A claim costs what it takes, whatever PostgreSQL believed of the queue when the plan was made."""
    registry = Registry()
    registry.task("noop", events=False)(lambda _context, _payload: None)
    submitter = Submitter(RegistryCatalog(registry), Followers())
    worker = await enter(owner_tx, ["noop"])
    await submitter.submit(owner_tx, TaskSpec("noop"), user_id=ids.SYSTEM_USER)
    await owner_tx.execute("ANALYZE headrace.task_queue, headrace.tasks")  # one row: why use an index?
    assert len(await claim(owner_tx, worker, 5)) == 1  # here the plans are made
    await submitter.submit_many(owner_tx, [TaskSpec("noop") for _ in range(5000)], user_id=ids.SYSTEM_USER)
    before = await owner_tx.fetchval(WALKED)
    taken = await claim(owner_tx, worker, 1000)
    walked = await owner_tx.fetchval(WALKED) - before
    assert taken == sorted(taken)
    assert len(taken) == 1000
    assert walked < 10 * len(taken)
