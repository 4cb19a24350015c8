"""Schedules and runs over HTTP: what is sent, what is answered, and who is let in."""

from typing import Any

import httpx2
import pytest

from headrace.tasks.context import TaskContext
from tests.outbox.hearing import want
from tests.schedules.conftest import Clockwork
from tests.tasks.people import trail

NIGHTLY = {"name": "Nightly", "type": "job", "cron": "0 2 * * *", "timezone": "Asia/Shanghai"}


async def create(client: httpx2.AsyncClient, **body: Any) -> Any:
    answer = await client.post("/v1/schedules", json=NIGHTLY | body)
    assert answer.status_code == 201, answer.text
    return answer.json()


async def test_a_schedule_is_made_read_changed_switched_and_deleted(
    ada: httpx2.AsyncClient, clockwork: Clockwork
) -> None:
    made = await create(ada, labels={"gpu": "a100"}, data={"pages": 3})
    address = f"/v1/schedules/{made['id']}"
    read = await ada.get(address)
    assert (read.json(), read.headers["ETag"]) == (made, '"0"')
    assert made["next_run"].endswith("T18:00:00Z")  # two in the morning in Shanghai

    changed = await ada.patch(address, json={"interval": 60, "max_concurrent": 3}, headers={"If-Match": '"0"'})
    assert changed.status_code == 200, changed.text
    shown = changed.json()
    assert (shown["cron"], shown["interval"], shown["max_concurrent"], shown["version"]) == (None, 60, 3, 1)
    stale = await ada.patch(address, json={"priority": 9}, headers={"If-Match": '"0"'})
    assert (stale.status_code, stale.json()["code"]) == (412, "precondition_failed")

    off = (await ada.post(f"{address}/disable")).json()
    assert (off["enabled"], off["next_run"], off["version"]) == (False, None, 2)
    assert (await ada.get(f"{address}/next")).json() == {"times": []}
    assert (await ada.post(f"{address}/disable")).json()["version"] == 2
    on = (await ada.post(f"{address}/enable")).json()
    assert on["next_run"] is not None
    times = (await ada.get(f"{address}/next", params={"count": 3})).json()["times"]
    assert times[0] == on["next_run"]
    assert len(times) == 3

    assert (await ada.delete(address)).status_code == 204
    assert (await ada.get(address)).status_code == 404
    actions = [row["action"] for row in await trail(clockwork.db) if row["resource_type"] == "scheduledTask"]
    assert actions == ["created", "updated", "disabled", "enabled", "deleted"]


async def test_the_same_again_changes_nothing(ada: httpx2.AsyncClient, clockwork: Clockwork) -> None:  # W-09
    nightly = await create(ada, labels={"gpu": "a100"}, data={"pages": 1})
    hourly = await create(ada, name="Hourly", cron=None, interval=3600)
    once = await create(ada, name="Once", cron=None, run_at="2030-01-02T03:04:05Z")
    said = {"cron": "0 2 * * *", "labels": {"gpu": "a100"}, "data": {"pages": 1}, "enabled": True, "max_retries": 3}
    for made, changes in (
        (nightly, {}),
        (nightly, said),
        (hourly, {"interval": 3600}),
        (hourly, {"run_at": hourly["next_run"]}),
        (once, {}),
        (once, {"run_at": "2030-01-02T04:04:05+01:00"}),
    ):
        answer = await ada.patch(f"/v1/schedules/{made['id']}", json=changes, headers={"If-Match": '"0"'})
        assert (answer.status_code, answer.json(), answer.headers["ETag"]) == (200, made, '"0"'), changes
    assert [row["action"] for row in await trail(clockwork.db)] == ["created"] * 3

    address = f"/v1/schedules/{nightly['id']}"
    assert (await ada.patch(address, json={}, headers={"If-Match": '"7"'})).status_code == 412
    for version, data in enumerate(({"pages": True}, {"pages": 1.0}, {"pages": 1}), start=1):
        changed = (await ada.patch(address, json={"data": data})).json()
        assert (changed["version"], str(changed["data"])) == (version, str(data)), "not the same in JSON"
    later = await ada.patch(address, json={"run_at": "2030-01-02T03:04:05Z"})
    assert later.json()["version"] == 4


async def test_a_run_by_hand_is_listed_explained_cancelled_and_counted(
    ada: httpx2.AsyncClient, clockwork: Clockwork
) -> None:
    made = await create(ada)
    run = await ada.post(f"/v1/schedules/{made['id']}/run", headers={"Idempotency-Key": "k"})
    again = await ada.post(f"/v1/schedules/{made['id']}/run", headers={"Idempotency-Key": "k"})
    assert run.status_code == again.status_code == 201
    first = run.json()
    assert again.json() == first
    assert (first["status"], first["trigger_type"], first["schedule_id"]) == ("PENDING", "manual", made["id"])
    second = (await ada.post(f"/v1/schedules/{made['id']}/run")).json()
    assert second["task_id"] is None

    why = (await ada.get(f"/v1/executions/{first['id']}/why")).json()["reasons"]
    assert why[0]["code"] == "no_worker"
    why = (await ada.get(f"/v1/executions/{second['id']}/why")).json()["reasons"]
    assert (why[0]["code"], why[0]["facts"]["executions"]) == ("limit_reached", [first["id"]])

    for query, count in [
        ({"schedule_id": made["id"]}, 2),
        ({"status": ["PENDING"], "trigger": "manual"}, 2),
        ({"status": ["SUCCEEDED", "FAILED"]}, 0),
        ({"trigger": "scheduled"}, 0),
        ({"type": "job", "due_before": "2020-01-01T00:00:00Z"}, 0),
    ]:
        page = (await ada.get("/v1/executions", params=query)).json()
        assert len(page["items"]) == count, query
    page = (await ada.get("/v1/executions", params={"limit": 1})).json()
    rest = (await ada.get("/v1/executions", params={"limit": 1, "cursor": page["next_cursor"]})).json()
    assert [page["items"][0]["id"], rest["items"][0]["id"]] == [
        second["id"],
        first["id"],
    ]

    over = await ada.post(f"/v1/executions/{first['id']}/cancel")
    assert (over.status_code, over.json()["status"]) == (200, "CANCELED")
    started = (await ada.get(f"/v1/executions/{second['id']}")).json()
    assert started["task_id"] is not None  # the slot was free
    figures = (await ada.get(f"/v1/schedules/{made['id']}/statistics")).json()
    assert (figures["total_executions"], figures["pending"], figures["running"]) == (1, 1, 0)


async def test_nobody_reaches_what_is_not_theirs(
    ada: httpx2.AsyncClient, eve: httpx2.AsyncClient, root: httpx2.AsyncClient
) -> None:
    made = await create(ada)
    run = (await ada.post(f"/v1/schedules/{made['id']}/run")).json()["id"]
    for method, path in [
        ("GET", f"/v1/schedules/{made['id']}"),
        ("DELETE", f"/v1/schedules/{made['id']}"),
        ("POST", f"/v1/schedules/{made['id']}/run"),
        ("POST", f"/v1/schedules/{made['id']}/disable"),
        ("GET", f"/v1/executions/{run}"),
        ("POST", f"/v1/executions/{run}/cancel"),
    ]:
        assert (await eve.request(method, path)).status_code == 404, path
    assert (await eve.patch(f"/v1/schedules/{made['id']}", json={"priority": 1})).status_code == 404
    assert (await eve.get("/v1/schedules")).json()["items"] == []
    assert (await eve.get("/v1/executions")).json()["items"] == []
    assert (await eve.get("/v1/executions", params={"user_id": "*"})).status_code == 403
    assert (await root.get(f"/v1/executions/{run}")).status_code == 200
    assert len((await root.get("/v1/schedules", params={"user_id": "*"})).json()["items"]) == 1


async def test_lists_are_filtered(ada: httpx2.AsyncClient) -> None:  # S-08
    await create(ada, name="Backup of A", labels={"site": "a"})
    await create(ada, name="Backup of B", labels={"site": "b", "disk": "ssd"}, enabled=False)
    await create(ada, name="100% report", type="report.build", data={"pages": 1})

    async def names(**query: Any) -> list[str]:
        page = (await ada.get("/v1/schedules", params=query)).json()
        return [item["name"] for item in page["items"]]

    assert await names(name="backup") == ["Backup of B", "Backup of A"]
    assert await names(name="0%") == ["100% report"]
    assert await names(label="site=b") == ["Backup of B"]
    assert await names(label=["site=b", "disk=hdd"]) == []
    assert await names(enabled=False) == ["Backup of B"]
    assert await names(type="report.build") == ["100% report"]


async def test_when_something_would_run_is_shown_before_it_is_saved(ada: httpx2.AsyncClient) -> None:
    body = {"cron": "@daily", "timezone": "Europe/Berlin", "after": "2026-03-28T12:00:00Z", "count": 2}
    assert (await ada.post("/v1/schedules/preview", json=body)).json()["times"] == [
        "2026-03-28T23:00:00Z",
        "2026-03-29T22:00:00Z",
    ]
    never = await ada.post("/v1/schedules/preview", json={"cron": "0 0 31 4 *"})
    assert (never.status_code, never.json()["code"]) == (400, "cron_invalid")


RULES: list[tuple[dict[str, Any], str]] = [
    ({"name": ""}, "name"),
    ({"name": "   "}, "name"),
    ({"type": "nobody.knows"}, "type"),
    ({"cron": None}, "cron"),
    ({"cron": "61 * * * *"}, "cron"),
    ({"cron": "* * * * * *"}, "cron"),
    ({"cron": "0 0 30 2 *"}, "cron"),
    ({"cron": "0 0 * 2 MON#6"}, "cron"),
    ({"cron": None, "interval": 0}, "interval"),
    ({"interval": 60}, "interval"),
    ({"timezone": "Mars/Olympus"}, "timezone"),
    ({"max_duration_seconds": 0}, "max_duration_seconds"),
    ({"timeout_grace_period": -1}, "timeout_grace_period"),
    ({"max_duration_seconds": 30, "timeout_grace_period": 30}, "timeout_grace_period"),
    ({"max_retries": -1}, "max_retries"),
    ({"max_concurrent": 0}, "max_concurrent"),
    ({"misfire_policy": "sometimes"}, "misfire_policy"),
    ({"labels": {"a b": "c"}}, "labels"),
    ({"data": {"text": "ü" * 5121}}, "data"),
    ({"type": "report.build", "data": {"pages": "many"}}, "data"),
]


async def test_what_breaks_a_rule_is_refused_by_the_fields_name(
    ada: httpx2.AsyncClient, subtests: pytest.Subtests
) -> None:  # S-02
    for number, (wrong, field) in enumerate(RULES):
        with subtests.test(str(wrong)[:60]):
            answer = await ada.post("/v1/schedules", json=NIGHTLY | wrong)
            problem = answer.json()
            assert answer.status_code in (400, 422), problem
            named = problem.get("details", {}).get("fields", []) + [each["field"] for each in problem.get("errors", [])]
            assert any(field in name for name in named), problem
            made = await create(ada, name=f"Other {number}")
            answer = await ada.patch(f"/v1/schedules/{made['id']}", json=wrong)
            # A type cannot be changed at all, and an interval instead of an expression is allowed here.
            if "type" not in wrong and wrong != {"interval": 60}:
                assert answer.status_code in (400, 422), answer.text


async def test_a_name_is_unique_for_its_owner(ada: httpx2.AsyncClient, eve: httpx2.AsyncClient) -> None:  # S-02
    await create(ada)
    taken = await ada.post("/v1/schedules", json=NIGHTLY)
    assert (taken.status_code, taken.json()["code"]) == (409, "schedule_name_taken")
    assert taken.json()["details"] == {"fields": ["name"]}
    other = await create(ada, name="Other")
    assert (await ada.patch(f"/v1/schedules/{other['id']}", json={"name": "Nightly"})).status_code == 409
    assert (await create(eve))["name"] == "Nightly"
    reserved = await eve.post("/v1/schedules", json=NIGHTLY | {"name": "headrace:retention"})
    assert reserved.json()["details"] == {"fields": ["name"]}


async def test_what_was_due_in_the_past_is_said(ada: httpx2.AsyncClient) -> None:
    made = await create(ada, cron=None, run_at="2020-01-02T03:04:05Z")
    (past, _) = made["warnings"]
    assert past["code"] == "past_due"
    assert past["text"].startswith("It was due at 2020-01-02 03:04:05 UTC, which has passed: it runs as soon as")
    never = await create(ada, name="Never", cron=None, run_at="2020-01-02T03:04:05Z", misfire_policy="none")
    assert "is skipped" in never["warnings"][0]["text"]
    changed = await ada.patch(f"/v1/schedules/{never['id']}", json={"run_at": "2030-01-02T03:04:05Z"})
    assert [each["code"] for each in changed.json()["warnings"]] == ["no_worker"]


async def test_overlap_is_chosen_changed_and_refused(ada: httpx2.AsyncClient, clockwork: Clockwork) -> None:
    made = await create(ada, overlap_policy="queue_all", max_waiting=5)
    address = f"/v1/schedules/{made['id']}"
    changed = (await ada.patch(address, json={"overlap_policy": "skip"})).json()
    assert (changed["overlap_policy"], changed["max_waiting"]) == ("skip", None)
    for wrong in ({"max_waiting": 3}, {"max_waiting": 0}, {"overlap_policy": "later"}):
        assert (await ada.patch(address, json=wrong)).status_code in (400, 422), wrong
    assert (await ada.post(f"{address}/run")).status_code == 201
    busy = await ada.post(f"{address}/run")
    assert (busy.status_code, busy.json()["code"]) == (409, "schedule_busy")

    off = (await ada.post(f"{address}/disable", params={"cancel_pending": True})).json()
    assert (off["enabled"], off["canceled_runs"], off["total_executions"], off["total_attempts"]) == (False, 1, 1, 1)
    assert (await ada.post(f"{address}/disable?cancel_pending=true")).json()["canceled_runs"] == 0
    events = [row for row in await trail(clockwork.db) if row["resource_type"] in ("scheduledTask", "execution")]
    assert [(row["action"], row["resource_type"]) for row in events][-2:] == [
        ("disabled", "scheduledTask"),
        ("updated", "execution"),
    ]
    assert events[-1]["data"] == {"verb": "cancel", "count": "1"}


async def test_a_run_by_hand_tells_of_its_request(ada: httpx2.AsyncClient, clockwork: Clockwork) -> None:
    await want(clockwork.db)
    made = await create(ada)
    await ada.post(f"/v1/schedules/{made['id']}/run", headers={"X-Request-ID": "mine-0001"})
    rows = await clockwork.db.fetch_alone("SELECT event_type, headers_json FROM headrace.outbox_events")
    assert [(row["event_type"], row["headers_json"]["request_id"]) for row in rows] == [("task.created", "mine-0001")]


async def test_a_run_by_hand_without_units_is_recorded_as_refused(
    ada: httpx2.AsyncClient, clockwork: Clockwork
) -> None:
    """Its units are held at once: with the COMMIT, nothing could be recorded any more."""

    @clockwork.registry.task("paid", units=1)
    async def paid(_: TaskContext, payload: Any) -> None: ...

    await clockwork.declare()
    made = await create(ada, type="paid")
    run = await ada.post(f"/v1/schedules/{made['id']}/run")
    assert run.status_code == 201, run.text
    assert (run.json()["status"], run.json()["task_id"]) == ("FAILED", None)
    (row,) = await clockwork.runs(made["id"])
    assert "unit" in row["error_message"]
