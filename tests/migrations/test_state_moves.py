"""States move only as drawn, whoever writes. S-10, S-13."""

from collections.abc import Callable
from contextlib import suppress
from itertools import product

import asyncpg
import pytest

from headrace.database import Tx
from tests.migrations.rows import LATER, NOW, insert, insert_all_before

Moves = dict[str, list[str]]
Columns = dict[str, object]

STEPS = ["PREPROCESSING", "DETECTING", "INPAINTING", "PACKAGING"]
ENDS = ["SUCCEEDED", "FAILED", "CANCELED"]
TASK_MOVES: Moves = {
    "UPLOADED": ["QUEUED", "CANCELED", "FAILED"],
    "QUEUED": ["RUNNING", *STEPS, *ENDS],  # straight to an end: a short task's row is written once
    "RUNNING": ["QUEUED", *STEPS, *ENDS],
    "PREPROCESSING": ["QUEUED", "DETECTING", "INPAINTING", "PACKAGING", *ENDS],
    "DETECTING": ["QUEUED", "INPAINTING", "PACKAGING", *ENDS],
    "INPAINTING": ["QUEUED", "PACKAGING", *ENDS],
    "PACKAGING": ["QUEUED", *ENDS],
    "FAILED": ["QUEUED"],  # by hand
    "CANCELED": ["QUEUED"],
    "SUCCEEDED": [],
}
EXECUTION_ENDS = ["success", "failure", "timeout", "cancelled", "interrupted"]
EXECUTION_MOVES: Moves = {"pending": ["running"], "running": EXECUTION_ENDS} | {end: [] for end in EXECUTION_ENDS}
DELETION_MOVES: Moves = {"WAITING": ["RUNNING", "CANCELED"], "RUNNING": ["COMPLETED"], "COMPLETED": [], "CANCELED": []}
EVENT_MOVES: Moves = {
    "PENDING": ["PUBLISHED", "FAILED", "DEAD"],
    "FAILED": ["PUBLISHED", "DEAD"],
    "DEAD": ["PENDING"],  # by hand
    "PUBLISHED": [],
}
SUBSCRIPTION_MOVES: Moves = {
    "PENDING": ["ACTIVE", "CANCELED", "EXPIRED", "REFUNDED"],
    "ACTIVE": ["PAST_DUE", "CANCELED", "EXPIRED", "REFUNDED"],
    "PAST_DUE": ["ACTIVE", "CANCELED", "EXPIRED", "REFUNDED"],
    "CANCELED": ["ACTIVE", "REFUNDED"],  # the money came after all
    "EXPIRED": ["ACTIVE", "REFUNDED"],
    "REFUNDED": [],
}
ORDER_MOVES: Moves = {
    "PENDING": ["PAID", "CLOSED", "REFUNDED"],
    "CLOSED": ["PAID", "REFUNDED"],
    "PAID": ["REFUNDING", "REFUNDED"],
    "REFUNDING": ["PAID", "REFUNDED"],
    "REFUNDED": [],
}
DELIVERY_MOVES: Moves = {
    "PENDING": ["SUCCESS", "RETRYING", "FAILED", "DEAD"],
    "RETRYING": ["SUCCESS", "FAILED", "DEAD"],
    "SUCCESS": [],
    "FAILED": [],
    "DEAD": [],
}
ASSET_MOVES: Moves = {"UPLOADED": ["DELETED"], "DELETED": []}
UPLOAD_MOVES: Moves = {
    "OPEN": ["COMPLETING", "ABORTED"],
    "COMPLETING": ["OPEN", "COMPLETED", "ABORTED"],
    "COMPLETED": [],
    "ABORTED": [],
}
LOCK_MOVES: Moves = {"active": ["released", "expired"], "released": [], "expired": []}


def task_in(status: str) -> Columns:
    return {"status": status, "finished_at": LATER if status in ENDS else None}


def execution_in(state: str) -> Columns:
    waiting = state == "pending"
    return {
        "state": state,
        "run_by": None if waiting else "host:1",
        "started_at": None if waiting else NOW,
        "finished_at": LATER if state in EXECUTION_ENDS else None,
    }


def deletion_in(status: str) -> Columns:
    return {
        "status": status,
        "started_at": NOW if status in ("RUNNING", "COMPLETED") else None,
        "ended_at": LATER if status in ("COMPLETED", "CANCELED") else None,
    }


def asset_in(status: str) -> Columns:
    return {"status": status, "deleted_at": LATER if status == "DELETED" else None}


def upload_in(status: str) -> Columns:
    held = status == "COMPLETING"
    return {"status": status, "lease_token": "t" if held else None, "lease_until": LATER if held else None}


def lock_in(state: str) -> Columns:
    return {"state": state, "released_at": LATER if state == "released" else None}


def event_in(status: str) -> Columns:
    return {"status": status, "published_at": LATER if status == "PUBLISHED" else None}


def subscription_in(status: str) -> Columns:
    return {"status": status}


def order_in(status: str) -> Columns:
    return {
        "status": status,
        "paid_at": None if status in ("PENDING", "CLOSED") else NOW,
        "refunded_at": LATER if status == "REFUNDED" else None,
        "refund_id": "rfd_1" if status in ("REFUNDING", "REFUNDED") else None,
    }


def delivery_in(status: str) -> Columns:
    return {"status": status}


@pytest.mark.both
@pytest.mark.parametrize(
    ("table", "moves", "columns_of", "trigger"),
    [
        ("tasks", TASK_MOVES, task_in, "tr_tasks_status"),
        ("task_executions", EXECUTION_MOVES, execution_in, "tr_task_executions_state"),  # S-10
        ("assets", ASSET_MOVES, asset_in, "tr_assets_status"),
        ("uploads", UPLOAD_MOVES, upload_in, "tr_uploads_status"),
        ("task_locks", LOCK_MOVES, lock_in, "tr_task_locks_state"),  # S-13
        ("outbox_events", EVENT_MOVES, event_in, "tr_outbox_events_status"),  # W-12
        (
            "webhook_deliveries",
            DELIVERY_MOVES,
            lambda status: {"status": status},
            "tr_webhook_deliveries_status",
        ),  # W-13
        ("account_deletions", DELETION_MOVES, deletion_in, "tr_account_deletions_status"),  # W-16
        ("subscriptions", SUBSCRIPTION_MOVES, subscription_in, "tr_subscriptions_status"),  # W-11
        ("payment_orders", ORDER_MOVES, order_in, "tr_payment_orders_status"),  # W-11
    ],
)
async def test_states_move_only_as_drawn(
    tx: Tx, table: str, moves: Moves, columns_of: Callable[[str], Columns], trigger: str
) -> None:
    await insert_all_before(tx, table)
    for source, target in product(moves, moves):
        with suppress(_Undone):  # not deleted: of some tables the application may delete nothing
            async with tx.savepoint():
                await insert(tx, table, **columns_of(source))
                refused_by = await _move(tx, table, columns_of(target))
                allowed = source == target or target in moves[source]
                assert refused_by == (None if allowed else trigger), f"{source} → {target}"
                raise _Undone


class _Undone(Exception):
    pass


async def _move(tx: Tx, table: str, columns: Columns) -> str | None:
    """The name of what refused it."""
    assignments = ", ".join(f"{column} = ${place}" for place, column in enumerate(columns, start=1))
    try:
        async with tx.savepoint():
            assert await tx.count(f"UPDATE headrace.{table} SET {assignments}", *columns.values()) == 1
    except asyncpg.CheckViolationError as refusal:
        return refusal.constraint_name
    return None


async def test_a_refused_move_says_what_was_tried(tx: Tx) -> None:
    await insert_all_before(tx, "tasks")
    await insert(tx, "tasks", **task_in("SUCCEEDED"))
    with pytest.raises(asyncpg.CheckViolationError, match="tasks: status cannot move from SUCCEEDED to QUEUED"):
        await tx.execute("UPDATE headrace.tasks SET status = 'QUEUED', finished_at = NULL")


async def test_deleting_a_schedule_takes_its_history_and_leaves_its_tasks(tx: Tx) -> None:
    await insert_all_before(tx, "task_locks")
    await tx.execute("DELETE FROM headrace.scheduled_tasks")
    assert await tx.fetchval("SELECT count(*) FROM headrace.task_executions") == 0
    assert await tx.fetchval("SELECT count(*) FROM headrace.tasks") == 1


async def test_updated_at_moves_by_itself_and_can_be_set(tx: Tx) -> None:  # D-01
    await insert(tx, "users", updated_at=NOW)
    await tx.execute("UPDATE headrace.users SET mobile = '+4930000001' WHERE username = 'ada'")
    moved = await tx.fetchval("SELECT updated_at FROM headrace.users WHERE username = 'ada'")
    assert moved != NOW
    await tx.execute("UPDATE headrace.users SET mobile = '+4930000002', updated_at = $1 WHERE username = 'ada'", LATER)
    assert await tx.fetchval("SELECT updated_at FROM headrace.users WHERE username = 'ada'") == LATER


async def test_updated_at_moves_within_one_transaction_too(tx: Tx) -> None:  # D-01
    await insert(tx, "users")
    await tx.execute("UPDATE headrace.users SET mobile = '+4930000001' WHERE username = 'ada'")
    assert await tx.fetchval("SELECT updated_at > created_at FROM headrace.users WHERE username = 'ada'")
