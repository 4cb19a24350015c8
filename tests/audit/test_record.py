import json
import re
from dataclasses import replace
from datetime import UTC, datetime

import asyncpg
import pytest

from headrace import audit, ids
from headrace.audit import Action, ActorType, Principal, PrincipalType, Resource, ResourceType, Who
from headrace.audit.store import WRITE_EVENT
from headrace.database import Database, Row, Tx
from tests.conftest import may_date_events

ADA = Principal("u_ada", "ada", PrincipalType.USER)
USER = Resource(ResourceType.USER, "u_ada", {"username": "ada"})

EVENT = "SELECT * FROM headrace.audit_events WHERE id = $1"


async def event(tx: Tx, event_id: str | None) -> Row:
    row = await tx.fetchrow(EVENT, event_id)
    assert row is not None
    return row


async def test_an_event_says_who_did_what_from_where(tx: Tx) -> None:
    who = Who(
        ADA,
        ActorType.ADMIN,
        client_ip="2001:db8::7",
        user_agent="curl/8",
        request_method="PATCH",
        request_id="req-1",
        trace_id="trace-1",
    )
    row = await event(
        tx,
        await audit.record(
            tx,
            who,
            Action.UPDATED,
            replace(USER, space_path="acme/web"),
            old={"username": "ada", "status": "ACTIVE"},
            new={"username": "ada", "status": "SUSPENDED"},
            data={"reason": "spam"},
        ),
    )
    assert (row["action"], row["resource_type"], row["actor_type"]) == ("updated", "user", "ADMIN")
    assert row["resource"] == {"type": "user", "identifier": "u_ada", "data": {"username": "ada"}}
    assert row["user"] == {"uid": "u_ada", "username": "ada", "type": "user"}
    assert (row["client_ip"], row["user_agent"], row["request_method"]) == ("2001:db8::7", "curl/8", "PATCH")
    assert (row["request_id"], row["trace_id"], row["space_path"]) == ("req-1", "trace-1", "acme/web")
    assert row["data"] == {"reason": "spam"}
    assert json.loads(row["diff_object"]["old_object"]) == {"username": "ada", "status": "ACTIVE"}
    assert json.loads(row["diff_object"]["new_object"]) == {"username": "ada", "status": "SUSPENDED"}


async def test_id_timestamp_and_created_at_are_one_instant_of_the_database(tx: Tx, who: Who) -> None:
    earliest = await tx.fetchval("SELECT date_trunc('milliseconds', clock_timestamp())")
    row = await event(tx, await audit.record(tx, who, Action.READ, USER))
    latest = await tx.fetchval("SELECT clock_timestamp()")
    assert earliest <= row["created_at"] <= latest
    assert ids.time_of(ids.check(row["id"], "aud")) == row["created_at"]
    assert row["timestamp"] == round(row["created_at"].timestamp() * 1000)


async def test_a_given_time_is_used(tx: Tx, who: Who) -> None:
    at = datetime(2026, 2, 3, 4, 5, 6, 789_000, tzinfo=UTC)
    await may_date_events(tx)
    row = await event(tx, await audit.record(tx, who, Action.READ, USER, now=at))
    assert row["created_at"] == at


async def test_a_stored_row_can_be_handed_over_as_it_is(tx: Tx, who: Who) -> None:
    system = await tx.fetchrow("SELECT * FROM headrace.users WHERE id = $1", ids.SYSTEM_USER)
    row = await event(tx, await audit.record(tx, who, Action.READ, USER, new=system))
    shown = json.loads(row["diff_object"]["new_object"])
    assert shown["username"] == "system"
    assert "password_hash" not in shown


@pytest.mark.parametrize("action", Action)
async def test_every_action_is_accepted(tx: Tx, who: Who, action: Action) -> None:
    await audit.record(tx, who, action, USER)


@pytest.mark.parametrize("type_", ResourceType)
async def test_every_resource_type_is_accepted(tx: Tx, who: Who, type_: ResourceType) -> None:
    await audit.record(tx, who, Action.CREATED, Resource(type_, "x"))


async def test_the_document_s_actions_and_types_are_there() -> None:
    assert len(Action) == 12
    assert len(ResourceType) >= 17
    assert all(re.fullmatch(r"[a-z]+([A-Z][a-z]+)*", value) for value in [*Action, *ResourceType])


@pytest.mark.parametrize(("action", "type_"), [("modified", "user"), ("read", "thing")])
async def test_anything_else_is_refused_by_the_database(tx: Tx, action: str, type_: str) -> None:
    with pytest.raises(asyncpg.CheckViolationError, match=r"ck_audit_events_(action|resource_type)"):
        await tx.fetchval(
            WRITE_EVENT,
            {
                "tail": ids.new("aud")[-16:],
                "action": action,
                "resource_type": type_,
                "resource": {"type": type_, "identifier": "x"},
                "user": {"uid": "u", "type": "user"},
                "actor_type": "USER",
            },
        )


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE headrace.audit_events SET action = 'read'",
        "DELETE FROM headrace.audit_events",
        "TRUNCATE headrace.audit_events",
    ],
)
async def test_nobody_can_rewrite_the_trail(tx: Tx, owner_tx: Tx, who: Who, change: str) -> None:
    for handle, refusal in (
        (tx, asyncpg.InsufficientPrivilegeError),
        (owner_tx, asyncpg.RestrictViolationError),
    ):
        await audit.record(handle, who, Action.READ, USER)
        with pytest.raises(refusal):
            await handle.execute(change)


async def test_a_change_that_is_rolled_back_leaves_no_event(db: Database, who: Who) -> None:
    with pytest.raises(RuntimeError):
        async with db.transaction() as tx:
            await audit.record(tx, who, Action.CREATED, USER)
            raise RuntimeError
    async with db.transaction() as tx:
        assert await tx.fetchval("SELECT count(*) FROM headrace.audit_events") == 0


async def test_no_request_can_make_recording_fail(tx: Tx, who: Who) -> None:
    nasty = "\x00\ud800" + "水" * 5_000
    hostile = replace(
        who,
        principal=Principal("anonymous", nasty, PrincipalType.ANONYMOUS),
        client_ip="not an address",
        user_agent=nasty,
        request_method=nasty,
        request_id=nasty,
        trace_id=nasty,
    )
    row = await event(
        tx,
        await audit.record(
            tx,
            hostile,
            Action.LOGIN,
            Resource(ResourceType.USER, nasty, {nasty: nasty}, nasty),
            new={"username": nasty},
            data={"reason": nasty},
        ),
    )
    assert row["client_ip"] is None
    assert len(row["user_agent"]) == 512
    assert row["user_agent"].endswith("…")
    assert len(row["request_id"]) == 128


@pytest.mark.parametrize(
    ("given", "kept"), [("fe80::1%eth0", "fe80::1"), ("192.0.2.1", "192.0.2.1"), ("testclient", None), (None, None)]
)
async def test_addresses_are_kept_as_inet_reads_them(tx: Tx, who: Who, given: str | None, kept: str | None) -> None:
    row = await event(tx, await audit.record(tx, replace(who, client_ip=given), Action.READ, USER))
    assert row["client_ip"] == kept


async def test_a_diff_over_64_kb_is_cut_and_named(tx: Tx, who: Who) -> None:
    row = await event(tx, await audit.record(tx, who, Action.UPDATED, USER, new={"username": "水" * 65_536, "id": "u"}))
    diff = row["diff_object"]
    assert diff["new_object_truncated"] is True
    assert diff["truncated_fields"] == ["username"]
    assert json.loads(diff["new_object"])["id"] == "u"
    assert len(diff["new_object"].encode()) <= 65_536


def test_a_resource_needs_an_identifier() -> None:
    with pytest.raises(ValueError, match="identifier"):
        Resource(ResourceType.USER, "")
