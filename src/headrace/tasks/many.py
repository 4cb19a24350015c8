"""Moving many tasks at once: a statement for each batch, and one event of the trail with all their ids.

Who calls has made sure that these are the caller's to move.
"""

from collections.abc import Mapping, Sequence

from headrace import audit
from headrace.access import Caller
from headrace.audit import Action, Resource, ResourceType
from headrace.database import Tx
from headrace.tasks.catalog import KnownType
from headrace.tasks.model import Change, Transition
from headrace.tasks.service import EVERYBODY, Tasks, known_or_plain
from headrace.tasks.store import moves


async def cancel_waiting_tasks(
    tx: Tx, tasks: Tasks, caller: Caller, task_ids: Sequence[str], *, data: Mapping[str, str]
) -> list[str]:
    """End those of these tasks that wait; gives them. Tasks that are just being claimed are left as they are."""
    moved = await moves.cancel_many(tx, task_ids, message="Canceled while it waited.")
    known: dict[str, KnownType] = {}
    for row in moved:
        if row["task_type"] not in known:
            known[row["task_type"]] = await known_or_plain(tx, tasks, row["task_type"])
    await tasks.followers.follow(
        tx,
        [
            (
                known[row["task_type"]],
                Transition(
                    Change.CANCELED,
                    row["id"],
                    row["task_type"],
                    row["user_id"],
                    attempt=row["attempt"],
                    schedule_uid=row["schedule_uid"],
                    request_id=caller.who.request_id,
                ),
            )
            for row in moved
        ],
    )
    done = [row["id"] for row in moved]
    await _note(tx, caller, Action.UPDATED, done, {"verb": "cancel", **data})
    return done


async def delete_tasks(tx: Tx, caller: Caller, task_ids: Sequence[str], *, data: Mapping[str, str]) -> list[str]:
    """Remove those of these tasks from sight that are over; gives them."""
    done = await moves.delete_many(tx, task_ids)
    await _note(tx, caller, Action.DELETED, done, data)
    return done


async def _note(tx: Tx, caller: Caller, action: Action, task_ids: Sequence[str], data: Mapping[str, str]) -> None:
    if not task_ids:
        return
    counted = {"count": str(len(task_ids)), **data}
    old = {"id": list(task_ids)}
    resource = Resource(ResourceType.TASK, EVERYBODY)
    if action is Action.DELETED:
        await audit.record(tx, caller.who, action, resource, old=old, data=counted)
    else:
        await audit.record(tx, caller.who, action, resource, old=old, new={**old, "status": "CANCELED"}, data=counted)
