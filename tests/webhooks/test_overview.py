"""What operators are told of webhooks: at /metrics and by the doctor. W-13."""

from datetime import timedelta
from typing import Any

from headrace.admin.figures import figures_of
from headrace.admin.health import read_health
from headrace.database import Database
from headrace.webhooks import service
from headrace.webhooks.store.overview import Overview, read_overview
from tests.webhooks import stand
from tests.webhooks.receiver import receiving, says


async def look(db: Database) -> Overview:
    async with db.transaction(readonly=True) as tx:
        return await read_overview(tx)


async def figures(db: Database) -> dict[str, Any]:
    found = figures_of(await read_health(db))
    return {each.name: dict(each.values) for each in found if each.name.startswith("headrace_webhook")}


async def test_nothing_there_is_nothing_wrong(db: Database) -> None:
    assert await look(db) == Overview(0, None, 0, 0, 0, 0, 0, 0)


async def test_what_waits_is_late_or_was_given_up_is_told(db: Database) -> None:
    ada = await stand.make_user(db, "ada")
    async with receiving(says(500)) as receiver:
        await stand.make_endpoint(db, ada, receiver.url, max_retries=0)
        await stand.happen(db, ada, 3)
        await stand.relay(db)
        await db.fetch_alone("UPDATE headrace.webhook_queue SET due_at = now() - interval '1 hour'")
        before = await look(db)
        http = stand.http_client()
        await stand.sender(db, http).run_once()
        await http.close()
    assert (before.waiting, before.given_up, before.active) == (3, 0, 1)
    assert before.late_for is not None
    assert before.late_for >= timedelta(hours=1)
    after = await look(db)
    assert (after.waiting + after.given_up, after.late_for is None) == (3, after.waiting == 0)
    assert after.given_up > 0


async def test_endpoints_are_counted_by_what_keeps_them_from_being_sent_to(db: Database) -> None:
    ada = await stand.make_user(db, "ada")
    made = [(await stand.make_endpoint(db, ada, f"https://example.com/{number}"))[0].id for number in range(4)]
    async with db.transaction() as tx:
        await service.pause_endpoint(tx, ada, made[0])
        await service.delete_endpoint(tx, ada, made[3])
    await db.fetch_alone(
        "UPDATE headrace.webhook_endpoints SET status = 'PAUSED', status_reason = 'failing' WHERE id = $1", made[1]
    )
    await db.fetch_alone(
        "INSERT INTO headrace.webhook_health (endpoint_id, failures, blocked_until) "
        "VALUES ($1, 12, now() + interval '1 minute')",
        made[2],
    )
    await stand.happen(db, ada, 1)
    await stand.relay(db)
    seen = await look(db)
    assert (seen.active, seen.paused, seen.failing, seen.disabled, seen.blocked) == (1, 1, 1, 0, 1)
    assert (seen.waiting, seen.late_for) == (3, None)  # none of them may be sent to
    shown = await figures(db)
    assert shown["headrace_webhook_endpoints"][("failing",)] == 1
    assert shown["headrace_webhook_deliveries_waiting"] == {(): 3}
    assert shown["headrace_webhook_late_seconds"] == {(): 0.0}
