"""What must hold of money, payments, webhooks, files and removals when all is quiet; tests/attack has the rest."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from headrace.assets.expiry import let_go
from headrace.assets.service import Files
from headrace.assets.sweep import sweep
from headrace.database import Database, Row
from headrace.errors import Unavailable
from headrace.storage import ObjectNotFound, Storage, StorageConfig
from tests.assets import stand
from tests.assets.plain import PlainInspector
from tests.attack.model import Broken
from tests.chaos.load import Promises
from tests.chaos.receivers import NEVER_CONTENT
from tests.chaos.world import World

AT_ONCE = timedelta(seconds=-5)

_CHARGED = """
SELECT task.id, task.status, task.payload, coalesce(sum(entry.consume_unit), 0) AS charged
FROM headrace.tasks AS task
LEFT JOIN headrace.usage_ledger AS entry
  ON entry.task_id = task.id AND entry.status = 'COMMITTED' AND entry.hold_id IS NOT NULL
WHERE {which}
GROUP BY task.id
"""
MISCHARGED = f"""
SELECT * FROM ({_CHARGED.format(which="task.task_type = 'metered'")}) AS charged
WHERE charged <> CASE status WHEN 'SUCCEEDED' THEN (payload ->> 'used')::bigint ELSE 0 END
"""
MISCHARGED_REMOVALS = f"""
SELECT charged.id, charged.status, charged, held.units
FROM ({_CHARGED.format(which="task.task_type IN ('IMAGE', 'VIDEO', 'PDF', 'PPT')")}) AS charged
CROSS JOIN LATERAL (
  SELECT coalesce(max(consume_unit), 0) AS units FROM headrace.usage_ledger
  WHERE task_id = charged.id AND status = 'HELD'
) AS held
WHERE status <> 'SUCCEEDED' AND charged <> 0 OR charged > held.units
"""
DONE_AFTER_REFUND = """
SELECT task.id, o.id AS order_id, o.updated_at, began.at
FROM headrace.payment_orders AS o
JOIN headrace.usage_ledger AS held ON held.entitlement_id = o.entitlement_id AND held.status = 'HELD'
JOIN headrace.tasks AS task ON task.id = held.task_id AND task.task_type = 'metered'
CROSS JOIN LATERAL (SELECT min(at) AS at FROM books.attempts WHERE task_id = task.id) AS began
WHERE o.status = 'REFUNDED' AND task.status = 'SUCCEEDED' AND began.at > o.updated_at + interval '1 s'
"""
RESULTLESS = """
SELECT task.id FROM headrace.tasks AS task
WHERE task.task_type IN ('IMAGE', 'VIDEO', 'PDF', 'PPT') AND task.status = 'SUCCEEDED' AND task.deleted_at IS NULL
  AND NOT EXISTS (SELECT FROM headrace.task_results WHERE task_id = task.id)
"""
UNEXPLAINED = """
SELECT last.* FROM (
  SELECT DISTINCT ON (endpoint_id, event_id) endpoint_id, event_id, attempt, status, response_status, error
  FROM headrace.webhook_deliveries ORDER BY endpoint_id, event_id, attempt DESC
) AS last
WHERE status IN ('RETRYING', 'FAILED', 'DEAD') AND response_status IS NULL AND error IS NULL
"""
BLAMED = """
SELECT id, task_type, error_code, attempt, max_attempts FROM headrace.tasks
WHERE task_type IN ('IMAGE', 'VIDEO', 'PDF', 'PPT') AND status = 'FAILED' AND attempt < max_attempts
"""
QUERIES = {
    "a metered task that succeeded is charged what it said, once, and any other nothing": MISCHARGED,
    "a removal that did not succeed costs nothing, and one that did not more than was held": MISCHARGED_REMOVALS,
    "work that waited when its money was given back is not done": DONE_AFTER_REFUND,
    "a removal that succeeded has a result": RESULTLESS,
    "a removal of a good file fails after its last attempt alone, whatever was harmed": BLAMED,
    "a delivery that did not arrive says why": UNEXPLAINED,
    "no event was given up": "SELECT event_id, event_type FROM headrace.outbox_events WHERE status = 'DEAD'",
}


async def judge(db: Database, promises: Promises, world: World, storage: Path) -> AsyncIterator[Broken]:
    """What does not hold. A part that cannot be read in time is told of, and the others are read."""
    for holds, sql in QUERIES.items():
        try:
            rows = await db.fetch_alone(f"SELECT * FROM ({sql}) AS offending LIMIT 5")
        except Unavailable as exc:
            yield Broken(holds, [{"not read": str(exc)}])
            continue
        if rows:
            yield Broken(holds, [dict(row) for row in rows])
    for part in (_orders(db, world), _deliveries(db, world), _files(db, promises, storage)):
        try:
            async for broken in part:
                yield broken
        except Unavailable as exc:
            yield Broken("everything can be read", [{"not read": str(exc)}])


def _some(holds: str, rows: list[dict[str, Any]]) -> list[Broken]:
    return [Broken(holds, rows[:5])] if rows else []


async def _orders(db: Database, world: World) -> AsyncIterator[Broken]:
    """WeChat Pay's book against ours."""
    ours = {row["id"]: row for row in await db.fetch_alone("SELECT * FROM headrace.payment_orders")}
    wrong = []
    for number, order in world.shop.book.orders.items():
        row: Row | None = ours.get(number)
        expected = {"SUCCESS": ("PAID", "REFUNDING"), "REFUND": ("REFUNDED",)}.get(order.state)
        if row is None or (expected is not None and row["status"] not in expected):
            wrong.append({"id": number, "at WeChat Pay": order.state, "here": None if row is None else row["status"]})
    for broken in _some("an order is here what it is at WeChat Pay", wrong):
        yield broken


async def _deliveries(db: Database, world: World) -> AsyncIterator[Broken]:
    healthy, accepted = world.endpoints["healthy"], world.receivers.accepted
    rows = await db.fetch_alone(
        """
        SELECT event.event_id, EXISTS (
          SELECT FROM headrace.webhook_deliveries AS sent
          WHERE sent.endpoint_id = $1 AND sent.event_id = event.event_id AND sent.status = 'SUCCESS') AS recorded
        FROM headrace.outbox_events AS event, headrace.webhook_endpoints AS endpoint
        WHERE endpoint.id = $1 AND event.created_at > endpoint.created_at AND event.status = 'PUBLISHED'
        """,
        healthy,
    )
    lost = [{"event": row["event_id"], "recorded": row["recorded"]} for row in rows if row["event_id"] not in accepted]
    for broken in _some("every event arrives at a healthy endpoint", lost):
        yield broken
    unrecorded = [{"event": row["event_id"]} for row in rows if not row["recorded"]]
    for broken in _some("every event that a healthy endpoint took is on record as a success", unrecorded):
        yield broken
    names = {world.endpoints[name]: name for name in NEVER_CONTENT}
    for row in await db.fetch_alone(
        "SELECT endpoint_id, count(*) AS number FROM headrace.webhook_deliveries "
        "WHERE status = 'SUCCESS' AND endpoint_id = ANY ($1) GROUP BY 1",
        list(names),
    ):
        yield Broken(
            "nothing counts as delivered where nobody said yes",
            [{"receiver": names[row["endpoint_id"]], "successes": row["number"]}],
        )


ASSETS = "SELECT * FROM headrace.assets WHERE status = 'UPLOADED'"
RESULTS = "SELECT * FROM headrace.task_results WHERE purged_at IS NULL AND deleted_at IS NULL"


async def _files(db: Database, promises: Promises, folder: Path) -> AsyncIterator[Broken]:
    files = stand.files(Storage(StorageConfig(f"file://{folder}")), PlainInspector(), folder.parent / "scratch")
    assets, results = await db.fetch_alone(ASSETS), await db.fetch_alone(RESULTS)
    wanted = {f"media/{_key(row)}": row["size_bytes"] for row in assets}
    wanted |= {f"result/{row['result_key']}": row["size_bytes"] for row in results}
    missing = [{"name": name} for name, size in wanted.items() if await _size(files, name) != size]
    for broken in _some("every file and result has its bytes", missing):
        yield broken
    there = {row["id"]: row["sha256"] for row in assets}
    lost = [{"id": each} for each, sha256 in promises.files.items() if there.get(each) != sha256]
    for broken in _some("a file that its owner was told of is there", lost):
        yield broken
    # What a kill may leave goes with retention and the sweep, and then nothing lies there that no row names.
    await let_go(files, db, now=datetime.now(UTC) + timedelta(days=2))
    swept = await sweep(files, db, older_than=AT_ONCE)
    promises.done["files of nobody that the sweep removed"] += swept.orphans
    if swept.missing:
        yield Broken("the sweep finds no file without bytes", [{"missing": swept.missing}])
    left = [
        {"name": name}
        for path in sorted(folder.rglob("*"))
        if path.is_file() and (name := path.relative_to(folder).as_posix()).startswith(("media/", "result/"))
        if name not in wanted
    ]
    for broken in _some("after the sweep no bytes lie there that no row names", left):
        yield broken


def _key(row: Row) -> str:
    return str(row["storage_key"]).partition("#")[0]


async def _size(files: Files, name: str) -> int | None:
    try:
        return await files.storage.size_of(name)
    except ObjectNotFound:
        return None
