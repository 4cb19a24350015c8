"""The audit trail and the ledger only grow, for every role; partitions take nothing from their keys. A-03, W-17."""

from datetime import UTC, date, datetime, timedelta

import asyncpg
import pytest

from headrace import ids
from headrace.database import Tx
from tests.migrations.rows import AUDIT, HOLD, NOW, PERIOD, USER, insert, insert_all_before

MONTH_AFTER = datetime(2026, 12, 15, tzinfo=UTC)
REWRITES = ["UPDATE {} SET user_agent = 'x'", "DELETE FROM {}", "TRUNCATE {}"]
LEDGER_REWRITES = ["UPDATE {} SET remark = 'x'", "DELETE FROM {}", "TRUNCATE {}"]
EVIDENCE = [("audit_events", sql) for sql in REWRITES] + [("usage_ledger", sql) for sql in LEDGER_REWRITES]


async def partitions_of(tx: Tx, table: str) -> list[str]:
    rows = await tx.fetch(
        "SELECT inhrelid::regclass::text AS name FROM pg_inherits WHERE inhparent = $1::text::regclass",
        f"headrace.{table}",
    )
    return [row["name"] for row in rows]


@pytest.mark.both
@pytest.mark.parametrize(("table", "sql"), EVIDENCE)
async def test_the_application_may_not_rewrite_evidence(tx: Tx, table: str, sql: str) -> None:  # A-03
    await insert_all_before(tx, table)
    await insert(tx, table)
    for name in (f"headrace.{table}", *await partitions_of(tx, table)):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            async with tx.savepoint():
                await tx.execute(sql.format(name))


@pytest.mark.both
@pytest.mark.parametrize("role", ["headrace_owner", None])
@pytest.mark.parametrize(("table", "sql"), EVIDENCE)
async def test_nobody_may_rewrite_evidence(owner_tx: Tx, table: str, sql: str, role: str | None) -> None:  # A-03
    await insert_all_before(owner_tx, table)
    await insert(owner_tx, table)
    if role is not None:
        await owner_tx.execute(f"SET LOCAL ROLE {role}")
    for name in (f"headrace.{table}", *await partitions_of(owner_tx, table)):
        if not sql.startswith("TRUNCATE") and await owner_tx.fetchval(f"SELECT count(*) FROM {name}") == 0:
            continue  # no row, nothing to refuse
        with pytest.raises(asyncpg.RestrictViolationError, match="only grows"):
            async with owner_tx.savepoint():
                await owner_tx.execute(sql.format(name))
    assert await owner_tx.fetchval(f"SELECT count(*) FROM headrace.{table}") == 1


async def test_a_partition_made_later_is_guarded_too(owner_tx: Tx) -> None:  # A-03, W-17
    await owner_tx.execute("SET LOCAL ROLE headrace_owner")
    make = "SELECT headrace.create_month_partitions('headrace.audit_events', '2031-01-31', '2031-03-01')"
    assert await owner_tx.fetchval(make) == 3
    assert await owner_tx.fetchval(make) == 0, "made once, however often it is asked for"
    with pytest.raises(asyncpg.RestrictViolationError):
        await owner_tx.execute("TRUNCATE headrace.audit_events_y2031m02")


@pytest.mark.parametrize("zone", ["Asia/Shanghai", "America/Los_Angeles"])
async def test_months_begin_in_utc_wherever_the_owner_lives(owner_tx: Tx, zone: str) -> None:  # W-17
    await owner_tx.execute(f"SET LOCAL timezone = '{zone}'")
    await owner_tx.fetch("SELECT headrace.create_month_partitions('headrace.audit_events', '2031-01-01', '2031-01-01')")
    for instant, home in (
        (datetime(2031, 1, 1, tzinfo=UTC), "audit_events_y2031m01"),
        (datetime(2031, 1, 31, 23, 59, 59, 999000, tzinfo=UTC), "audit_events_y2031m01"),
        (datetime(2031, 2, 1, tzinfo=UTC), "audit_events_default"),
        (datetime(2030, 12, 31, 23, 59, 59, 999000, tzinfo=UTC), "audit_events_default"),
    ):
        event = ids.new("aud", at=instant)
        millis = round(instant.timestamp() * 1000)
        await insert(owner_tx, "audit_events", id=event, timestamp=millis, created_at=instant)
        sql = "SELECT tableoid::regclass::text FROM headrace.audit_events WHERE id = $1"
        assert await owner_tx.fetchval(sql, event) == f"headrace.{home}"


async def test_the_months_around_now_are_there_and_no_other_is_refused(tx: Tx) -> None:  # W-17
    now = await tx.fetchval("SELECT now()")
    await insert_all_before(tx, "usage_ledger")
    for instant, at_home in ((now, True), (now + timedelta(days=60), True), (now + timedelta(days=4000), False)):
        period = date(instant.year, instant.month, 1)
        entry = ids.new("led", at=instant)
        await insert(tx, "usage_ledger", id=entry, period=period, idempotency_key=f"{period:%Y%m}:{entry}")
        home = await tx.fetchval("SELECT tableoid::regclass::text FROM headrace.usage_ledger WHERE id = $1", entry)
        assert (home != "headrace.usage_ledger_default") == at_home


async def test_one_id_is_one_event_over_all_months(tx: Tx) -> None:
    """The key is (id, created_at), and there is no second created_at that an id could have."""
    await insert(tx, "audit_events")
    with pytest.raises(asyncpg.UniqueViolationError):
        async with tx.savepoint():
            await insert(tx, "audit_events")
    with pytest.raises(asyncpg.CheckViolationError):
        millis = round(MONTH_AFTER.timestamp() * 1000)
        await insert(tx, "audit_events", created_at=MONTH_AFTER, timestamp=millis)


async def test_no_search_path_leads_around_the_rules_of_the_trail(owner_tx: Tx) -> None:  # A-03
    """Whoever may create a schema could bring operators of their own, to which everything is as it should be."""
    now, later = round(NOW.timestamp() * 1000), round(MONTH_AFTER.timestamp() * 1000)
    await owner_tx.execute(
        f"""
        CREATE SCHEMA blind;
        CREATE FUNCTION blind.never(bigint, bigint) RETURNS boolean IMMUTABLE RETURN false;
        CREATE FUNCTION blind.always(bigint, bigint) RETURNS bigint IMMUTABLE RETURN {later};
        CREATE OPERATOR blind.<> (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = blind.never);
        CREATE OPERATOR blind.| (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = blind.always);
        GRANT USAGE ON SCHEMA blind TO headrace_owner;
        SET LOCAL ROLE headrace_owner;
        SET LOCAL search_path = blind, pg_catalog;
        """
    )
    assert await owner_tx.fetchval("SELECT headrace.typeid_millis($1)", AUDIT) == now
    with pytest.raises(asyncpg.CheckViolationError, match="ck_audit_events_id"):
        await insert(owner_tx, "audit_events", created_at=MONTH_AFTER, timestamp=later)


async def test_one_idempotency_key_is_one_entry_over_all_months(tx: Tx) -> None:
    """The key is (user, key, period), and there is no second period that a key could have."""
    await insert_all_before(tx, "usage_ledger")
    await insert(tx, "usage_ledger")
    with pytest.raises(asyncpg.CheckViolationError, match="ck_usage_ledger_idempotency_key"):
        await insert(tx, "usage_ledger", id=ids.new("led", at=MONTH_AFTER), period=date(2026, 12, 1))


async def test_one_delivery_is_one_row_over_all_months(tx: Tx) -> None:
    await insert_all_before(tx, "webhook_deliveries")
    await insert(tx, "webhook_deliveries")
    with pytest.raises(asyncpg.CheckViolationError, match="_period"):
        await insert(tx, "webhook_deliveries", period=date(2026, 12, 1))


async def test_a_hold_is_committed_once_and_released_once(tx: Tx) -> None:
    await insert_all_before(tx, "usage_ledger")
    await insert(tx, "usage_ledger")

    async def settle(status: str, key: str) -> None:
        await insert(
            tx,
            "usage_ledger",
            id=ids.new("led", at=NOW),
            hold_id=HOLD,
            status=status,
            expires_at=None,
            idempotency_key=f"202611:{key}",
        )

    await settle("COMMITTED", "a")
    await settle("RELEASED", "b")  # the rest of it
    for status in ("COMMITTED", "RELEASED"):
        with pytest.raises(asyncpg.UniqueViolationError, match="uk_usage_ledger_hold_status"):
            async with tx.savepoint():
                await settle(status, "c")


async def test_audit_logs_shows_the_trail_under_002s_names(tx: Tx) -> None:
    await insert(tx, "audit_events", diff_object={"new_object": "{}"}, trace_id="t1")
    service = {"uid": "svc", "username": "", "type": "service"}
    await insert(tx, "audit_events", id=ids.new("aud", at=NOW), user=service, actor_type="SYSTEM")
    person, product = await tx.fetch("SELECT * FROM headrace.audit_logs ORDER BY id")
    assert (person["user_id"], person["actor_id"]) == (USER, USER)
    assert person["target_type"] == "task"
    assert str(person["ip"]) == "192.0.2.7"
    assert person["trace_id"] == "t1"
    assert person["detail_json"]["diff"] == {"new_object": "{}"}
    assert person["created_at"] == NOW
    assert (product["user_id"], product["actor_id"]) == (None, "svc")


@pytest.mark.both
@pytest.mark.parametrize(
    "instant",
    [
        datetime(1970, 1, 1, tzinfo=UTC),
        datetime(2026, 11, 30, 23, 59, 59, 999000, tzinfo=UTC),
        datetime(2026, 12, 1, tzinfo=UTC),
        datetime(2024, 2, 29, 12, 0, 0, 1000, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 59, 999000, tzinfo=UTC),
    ],
)
async def test_the_database_reads_the_time_inside_an_id(tx: Tx, instant: datetime) -> None:
    sql = "SELECT headrace.typeid_millis($1), headrace.typeid_month($1), headrace.instant_of_millis($2)"
    millis = (instant - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    await tx.execute("SET LOCAL timezone = 'Asia/Shanghai'")
    for _ in range(20):
        found = await tx.fetchrow(sql, ids.new("webhook_delivery", at=instant), millis)
        assert found is not None
        assert tuple(found) == (millis, date(instant.year, instant.month, 1), instant)


async def test_the_period_of_the_test_rows_is_their_ids(tx: Tx) -> None:
    assert await tx.fetchval("SELECT headrace.typeid_month($1)", HOLD) == PERIOD
