"""What operators see at a glance, and what they may not see."""

from headrace.admin.statistics import loop
from headrace.database import Database
from tests.web.world import whole_api

SECRET = "a secret that nobody is shown 0123456789"
HOSTILE = "<img src=x onerror=alert(1)>"


async def test_the_overview_says_what_waits_who_works_and_what_is_wrong(db: Database, database_url: str) -> None:
    async with whole_api(database_url) as (world, _):
        for _ in range(3):
            await world.task()
        await db.fetch_alone(
            "INSERT INTO headrace.workers (id, host, pid, types, concurrency, running, lease) "
            "VALUES ('w1', 'h', 1, '{}', 8, 2, '1 minute'), ('w2', 'h', 2, '{}', 8, 0, '-1 second')"
        )
        seen = (await world.send("GET", "/v1/admin/overview")).json()
        assert (seen["waiting"], seen["running"], seen["exact"]) == (3, 0, True)
        assert seen["oldest_waiting_queue"] == "default"
        assert seen["workers"] == {"alive": 1, "silent": 1, "stopping": 0, "slots": 8, "running": 2}
        checks = {each["check"]: each["verdict"] for each in seen["alarms"]}
        assert checks["version"] == "ok"
        assert {"partitions", "outbox", "ledger", "retention"} <= checks.keys()
        verdicts = [each["verdict"] for each in seen["alarms"]]
        assert verdicts == sorted(verdicts, key=["bad", "warning", "note", "ok"].index)

        await loop.run_once(db)
        for chosen, step in (("hour", 60), ("day", 600), ("week", 3600)):
            plots = (await world.send("GET", f"/v1/admin/statistics?range={chosen}")).json()
            assert plots["step_seconds"] == step
            assert plots["points"][-1]["waiting"] == 3
            assert [each["name"] for each in plots["queues"]] == ["default"]


async def test_settings_are_shown_without_their_secrets(database_url: str) -> None:
    choices = {"webhook_key": SECRET, "files_s3_endpoint": "https://me:hidden-too@s3.example", "api_rate_limit": 1234}
    async with whole_api(database_url, **choices) as (world, _):
        reply = await world.send("GET", "/v1/admin/settings")
        assert SECRET not in reply.text
        assert "hidden-too" not in reply.text
        shown = {each["name"]: each for each in reply.json()["items"]}
        assert (shown["HEADRACE_WEBHOOK_KEY"]["secret"], shown["HEADRACE_WEBHOOK_KEY"]["value"]) == (True, "••••••")
        assert (shown["HEADRACE_API_RATE_LIMIT"]["value"], shown["HEADRACE_API_RATE_LIMIT"]["chosen"]) == ("1234", True)
        assert shown["HEADRACE_AUDIT_SIGNING_KEY"]["value"] is None


async def test_the_trail_is_verified_and_the_first_flaw_named(db: Database, database_url: str) -> None:
    from headrace.audit.sealing import Sealer

    async with whole_api(database_url) as (world, _):
        await world.task()
        await Sealer(db, None).run_once()
        good = (await world.send("POST", "/v1/admin/audit/verify", {})).json()
        assert (good["ok"], good["flaw"], good["message"]) == (True, None, None)
        assert good["events"] > 0
        month = (await world.send("POST", "/v1/admin/audit/verify", {"month": "2020-01"})).json()
        assert (month["ok"], month["events"]) == (True, 0)
        assert (await world.client.post("/v1/admin/audit/verify", json={"month": "2020-13"})).status_code == 422


async def test_views_are_kept_for_their_owner_and_lead_nowhere_else(database_url: str) -> None:
    async with whole_api(database_url) as (world, _):
        token, _ = await world.session()
        headers = {"Authorization": f"Bearer {token}"}
        none = await world.client.get("/v1/me/views", headers=headers)
        assert (none.json(), none.headers["etag"]) == ({"views": []}, '"0"')
        kept = {"views": [{"name": "failed", "path": "/operators/tasks?status=FAILED"}]}
        saved = await world.client.put("/v1/me/views", json=kept, headers={**headers, "If-Match": '"0"'})
        assert (saved.json(), saved.headers["etag"]) == (kept, '"1"')
        stale = await world.client.put("/v1/me/views", json={"views": []}, headers={**headers, "If-Match": '"0"'})
        assert stale.status_code == 412
        assert (await world.client.get("/v1/me/views")).json() == {"views": []}  # somebody else's
        for path in ("//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)", "tasks"):
            refused = await world.client.put(
                "/v1/me/views", json={"views": [{"name": "x", "path": path}]}, headers=headers
            )
            assert refused.status_code == 422, path


async def test_text_that_somebody_wrote_comes_back_as_data(database_url: str) -> None:
    """Stored scripts: whatever is written is answered as JSON or as a file to keep, never as a page."""
    async with whole_api(database_url) as (world, _):
        task = (
            await world.send("POST", "/v1/tasks", {"type": "anything", "title": HOSTILE, "payload": HOSTILE})
        ).json()
        schedule = {
            "name": HOSTILE,
            "type": "anything",
            "interval": 3600,
            "description": HOSTILE,
            "data": {"a": HOSTILE},
        }
        uid = (await world.send("POST", "/v1/schedules", schedule)).json()["id"]
        hook = {"name": HOSTILE, "url": "https://example.com/x", "subscribed_events": ["*"]}
        hook_id = (await world.send("POST", "/v1/webhooks/endpoints", hook)).json()["id"]
        await world.send("POST", "/v1/locks", {"key": HOSTILE, "purpose": HOSTILE})
        announcement = {"value": {"text": HOSTILE}}
        await world.send("PUT", "/v1/admin/configs/announcement", announcement)
        await world.send("PUT", "/v1/me/views", {"views": [{"name": HOSTILE, "path": "/x"}]})
        await world.db.fetch_alone(
            "INSERT INTO headrace.task_logs (task_id, status, message) VALUES ($1, 'LOG', $2)", task["id"], HOSTILE
        )
        upload = (await world.send("POST", "/v1/uploads", {"name": HOSTILE, "size_bytes": 10})).json()["id"]
        paths = [
            *(f"/v1/tasks/{task['id']}", f"/v1/tasks/{task['id']}/logs", "/v1/tasks"),
            *(f"/v1/schedules/{uid}", "/v1/schedules", f"/v1/webhooks/endpoints/{hook_id}", "/v1/locks"),
            *("/v1/capabilities", "/v1/me/views", "/v1/audit/events", "/v1/audit/export?format=csv"),
            *("/v1/audit/export", "/v1/admin/configs", f"/v1/uploads/{upload}", f"/v1/{HOSTILE}"),
        ]
        seen = 0
        for path in paths:
            reply = await world.client.get(path, headers={"Accept": "text/html"})
            seen += HOSTILE in reply.text.encode().decode("unicode_escape")
            kind = reply.headers["content-type"].partition(";")[0]
            assert kind in ("application/json", "application/problem+json", "application/x-ndjson", "text/csv"), path
            assert reply.headers["x-content-type-options"] == "nosniff", path
            assert "default-src 'none'" in reply.headers["content-security-policy"], path
            if kind in ("application/x-ndjson", "text/csv"):
                assert reply.headers["content-disposition"].startswith("attachment"), path
        assert seen >= 12, "the text is there, as it was written"
