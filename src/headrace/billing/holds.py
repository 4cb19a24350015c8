"""Holds the price of tasks in the transaction that creates them. The database settles holds when a task ends."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial

import asyncpg
import orjson

from headrace import ids
from headrace.connections import sqlstate_of
from headrace.database import Tx
from headrace.errors import QuotaExhausted
from headrace.tasks.model import Change, Transition

EXHAUSTED = "HR006"  # raised by headrace.hold_units

# How long a submission waits for another transaction's lock on the units of its user.
MAX_LOCK_WAIT = timedelta(seconds=2)
HOLD = "SELECT headrace.hold_units_within($1, $2, $3, $4, $5, $6)"
HOLD_AT_COMMIT = """
SELECT headrace.hold_units_within(make_interval(secs => wait_seconds), task_ids, user_ids, units, hold_ids, again)
FROM jsonb_to_record({given}) AS given (
  wait_seconds double precision, task_ids text[], user_ids text[], units integer[], hold_ids text[], again boolean
)
"""


async def hold(tx: Tx, transitions: Sequence[Transition], *, again: bool = False) -> None:
    """Hold the price of these tasks, or refuse all with ``QuotaExhausted``; ``again`` is for retried tasks.

    Entitlements that end first are spent first, and one hold may span several. They stay locked until the transaction
    ends: so they are held with the COMMIT, where the transaction can defer, and otherwise now: then call it last.
    ``RowsLocked`` if another transaction locks them for longer than ``MAX_LOCK_WAIT``.
    """
    given = {
        "task_ids": [each.task_id for each in transitions],
        "user_ids": [each.user_id for each in transitions],
        "units": [each.units for each in transitions],
        "hold_ids": [ids.new("led") for _ in transitions],
        "again": again,
    }
    refused = partial(_refused, all(each.user_id == ids.SYSTEM_USER for each in transitions))
    timed = {"wait_seconds": MAX_LOCK_WAIT.total_seconds(), **given}
    if tx.defer(HOLD_AT_COMMIT, timed, refused=refused, last=True):  # everyone who submits for a user locks one row
        return
    try:
        await tx.execute(HOLD, MAX_LOCK_WAIT, *given.values())
    except asyncpg.PostgresError as exc:
        if (refusal := refused(exc)) is None:
            raise
        raise refusal from exc


def _refused(by_system: bool, exc: asyncpg.PostgresError) -> QuotaExhausted | None:
    if sqlstate_of(exc) != EXHAUSTED:
        return None
    refused = quota_exhausted(exc.detail)
    if by_system and refused.details.get("left") == 0:
        return QuotaExhausted(
            "This type costs units, and Headrace itself has none: name the user who pays for it (--user, or user_id=).",
            needed=refused.details["needed"],
            left=0,
        )
    return refused


def quota_exhausted(detail: str | None) -> QuotaExhausted:
    """The error for the detail that ``headrace.hold_units`` raises."""
    facts = orjson.loads(detail) if detail else {}
    if not facts:
        return QuotaExhausted()
    renews_at = facts["renews_at"]
    return quota_error(facts["needed"], facts["left"], None if renews_at is None else datetime.fromisoformat(renews_at))


def quota_error(needed: int, left: int, renews_at: datetime | None) -> QuotaExhausted:
    """The error for a price above the remaining units."""
    if renews_at is None:
        when = "Subscribe to a plan, or to a larger one."
    else:
        when = f"The period ends at {renews_at:%Y-%m-%d %H:%M} UTC; or get a larger plan."
    return QuotaExhausted(
        f"This costs {needed:,} {_units(needed)} and {left:,} {'is' if left == 1 else 'are'} left. {when}",
        needed=needed,
        left=left,
        renews_at=renews_at,
    )


def _units(count: int) -> str:
    return "unit" if count == 1 else "units"


class BillingFollower:
    """Holds a task's price when it is created or retried.

    ``headrace.finish_tasks`` settles it at the end, not this class: so a worker that started before the type had a
    price settles it as well.
    """

    async def follow(self, tx: Tx, transitions: Sequence[Transition]) -> None:
        for change in (Change.CREATED, Change.REVIVED):
            batch = [each for each in transitions if each.change is change and each.units is not None]
            if batch:
                await hold(tx, batch, again=change is Change.REVIVED)
