"""The outbox for administrators: what waits, what was given up, reviving it; and the catalogue of events. W-12."""

from contextlib import AbstractAsyncContextManager

import httpx2
import pytest

from headrace.admin.figures import HealthFigures
from headrace.admin.outbox.routes import router
from headrace.database import Database
from headrace.outbox.catalogue import EVENT_TYPES, faults
from headrace.outbox.relay import Relay, RelayConfig, RetryConfig
from headrace.tasks.model import Change
from headrace.web.app import create_app
from headrace.web.config import WebConfig
from tests.edge import stand
from tests.outbox.recording import Recording, received, write

ADMIN = {"Authorization": f"Bearer {stand.USER},ADMIN"}
GIVES_UP = RelayConfig(retries=RetryConfig(max_tries=1))


def client(db: Database) -> AbstractAsyncContextManager[httpx2.AsyncClient]:
    return stand.client(create_app(stand.services(db, figures=HealthFigures(db)), WebConfig(), routers=[router]))


async def give_up(db: Database, *aggregates: str) -> list[str]:
    """Events that no consumer can take, and that are dead already."""
    events = await write(db, *aggregates)
    relay = Relay(db, [Recording(refuses=lambda _: True)], GIVES_UP)
    while (await relay.run_once()).dead:
        pass
    return [event.id for event in events]


async def test_what_was_given_up_is_listed_revived_and_told(db: Database) -> None:
    dead = await give_up(db, "a", "b", "c")
    [waiting] = await write(db, "d")
    async with client(db) as api:
        overview = (await api.get("/v1/admin/outbox", headers=ADMIN)).json()
        assert (overview["waiting"], overview["failed"], overview["dead"], overview["relays"]) == (1, 0, 3, [])
        assert overview["oldest_waiting_seconds"] >= 0
        listed = (await api.get("/v1/admin/outbox/events?status=DEAD&limit=2", headers=ADMIN)).json()
        rest = await api.get(
            "/v1/admin/outbox/events",
            params={"status": "DEAD", "limit": 2, "cursor": listed["next_cursor"]},
            headers=ADMIN,
        )
        assert [each["id"] for each in listed["items"] + rest.json()["items"]] == dead[::-1]
        one = await api.post(f"/v1/admin/outbox/events/{dead[0]}/revive", headers=ADMIN)
        assert (one.json()["status"], one.json()["tries"]) == ("PENDING", 0)
        again = await api.post(f"/v1/admin/outbox/events/{dead[0]}/revive", headers=ADMIN)
        assert (again.status_code, again.json()["code"]) == (409, "event_not_dead")
        none = await api.post("/v1/admin/outbox/revive", json={"type": "other.type"}, headers=ADMIN)
        all_ = await api.post("/v1/admin/outbox/revive", json={}, headers=ADMIN)
        assert (none.json(), all_.json()) == ({"revived": 0}, {"revived": 2})
        while (await Relay(db, [Recording()]).run_once()).published:
            pass
        assert sorted(await received(db)) == sorted([*dead, waiting.id])
        shown = (await api.get(f"/v1/admin/outbox/events/{waiting.id}", headers=ADMIN)).json()
        assert (shown["status"], shown["type"], shown["data"]) == ("PUBLISHED", "thing.moved", {})
        missing = await api.get("/v1/admin/outbox/events/evt_none", headers=ADMIN)
        assert (missing.status_code, missing.json()["code"]) == (404, "outbox_event_not_found")
        figures = (await api.get("/metrics")).text
    assert 'headrace_outbox_events{status="DEAD"} 0.0' in figures
    assert "headrace_outbox_written_events 4.0" in figures
    assert "headrace_relays 0.0" in figures
    trail = await db.fetch_alone(
        "SELECT resource ->> 'identifier' AS id, data ->> 'count' AS count FROM headrace.audit_events "
        "WHERE resource_type = 'outboxEvent' ORDER BY seq"
    )
    assert [tuple(row) for row in trail] == [(dead[0], None), ("*", "2")]


@pytest.mark.parametrize("path", ["", "/events", "/events/evt_1"])
async def test_nobody_else_sees_the_outbox(db: Database, path: str) -> None:
    async with client(db) as api:
        assert (await api.get(f"/v1/admin/outbox{path}", headers=stand.AUTHORIZED)).status_code == 403
        assert (await api.get(f"/v1/admin/outbox{path}")).status_code == 401


async def test_everybody_can_read_which_events_there_are(db: Database) -> None:
    async with client(db) as api:
        assert (await api.get("/v1/event-types")).status_code == 401
        found = (await api.get("/v1/event-types", headers=stand.AUTHORIZED)).json()["items"]
    assert [(each["name"], each["version"]) for each in found] == [(each.name, each.version) for each in EVENT_TYPES]
    assert all(each["data_schema"]["type"] == "object" for each in found)


def test_every_change_of_a_task_that_is_told_is_in_the_catalogue() -> None:
    told = {str(change) for change in Change} - {"task.progressed", "task.extended"}
    assert told == {known.name for known in EVENT_TYPES if known.group == "task"}


def test_a_payload_that_does_not_fit_is_named() -> None:
    assert faults("task.created", 1, {})[0].startswith("(payload): 'task_id' is a required property")
    assert faults("task.created", 9, {}) == ["there is no event task.created in version 9"]
