"""The equations, and that each way of breaking one is found."""

import asyncpg
import pytest

from headrace.audit import Who
from headrace.billing.verifying import FaultKind, Verification
from headrace.billing.verifying import verify as verify_ledger
from headrace.database import Database
from headrace.tasks.catalog import declare_types
from tests.billing import stand
from tests.tasks.conftest import Bench


async def nothing(context: object, payload: object) -> None: ...


@pytest.fixture
async def ada(bench: Bench) -> str:
    bench.registry.task("render", units=3)(nothing)
    async with bench.db.transaction() as tx:
        await declare_types(tx, bench.registry)
    return await bench.user("ada")


async def verify(db: Database) -> Verification:
    return await verify_ledger(db, Who.system())


def kinds(found: Verification) -> set[FaultKind]:
    return {fault.kind for fault in found.faults}


async def test_a_ledger_that_was_used_in_every_way_adds_up(bench: Bench, ada: str) -> None:  # W-10
    await stand.grant_alone(bench.db, ada, 10)
    tasks = [await bench.submit("render", user_id=ada) for _ in range(3)]
    found = await verify(bench.db)
    assert found.is_clean
    assert found.entries == 4
    assert found.entitlements == 1
    async with bench.working():
        await bench.over(*tasks)
    found = await verify(bench.db)
    assert found.is_clean
    assert found.entries == 7


@pytest.mark.parametrize(
    ("harm", "fault"),
    [
        ("UPDATE headrace.entitlements SET quota_left = quota_left - 1", FaultKind.QUOTA_UNEXPLAINED),
        ("UPDATE headrace.entitlements SET quota_total = quota_total + 1", FaultKind.QUOTA_UNEXPLAINED),
        ("UPDATE headrace.task_queue SET units = units + 1", FaultKind.WRONG_HOLD),
        ("UPDATE headrace.task_queue SET units = NULL", FaultKind.ORPHAN),
        ("DELETE FROM headrace.task_queue", FaultKind.ORPHAN),
        (
            "INSERT INTO headrace.usage_ledger SELECT headrace.settlement_id(id, 'RELEASED'), period, user_id, "
            "task_id, entitlement_id, id, 1, 'CREDIT', 'RELEASED', 'TASK_FAIL', to_char(period, 'YYYYMM') || ':x' "
            "FROM headrace.usage_ledger WHERE status = 'HELD'",
            FaultKind.SETTLED_IN_PART,
        ),
    ],
)
async def test_whatever_does_not_add_up_is_found_and_named(bench: Bench, ada: str, harm: str, fault: FaultKind) -> None:
    # W-10
    await stand.grant_alone(bench.db, ada, 10)
    await bench.submit("render", user_id=ada)
    assert (await verify(bench.db)).is_clean
    await bench.db.fetch_alone(harm)
    assert fault in kinds(await verify(bench.db))


async def test_a_ledger_row_cannot_be_changed_to_hide_it(bench: Bench, ada: str) -> None:
    await stand.grant_alone(bench.db, ada, 10)
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await bench.db.fetch_alone("UPDATE headrace.usage_ledger SET consume_unit = 9")
