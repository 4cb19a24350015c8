"""Writing new tasks: one statement for one or for thousands, with their places in the queue."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headrace.database import Json, Tx
from headrace.tasks.catalog import KnownType
from headrace.tasks.model import Task, TaskSpec
from headrace.tasks.store.tasks import task_of

Lanes = dict[tuple[Any, ...], tuple[int, int]]
"""The numbers of lanes and of their routes."""
_NO_MEDIA = (None, None, None, None)


@dataclass(slots=True)
class Draft:
    spec: TaskSpec
    known: KnownType
    user_id: str
    payload: Json
    key: str | None
    priority: int
    max_attempts: int
    timeout_seconds: int | None
    grace_seconds: int | None
    extension_seconds: int | None
    lane: tuple[Any, ...]
    task_id: str
    units: int | None  # its price
    made: bool = True  # False if its key was known
    stored: Task | None = None  # if it was the only one

    def digested(self) -> tuple[object, ...]:
        """The values that must be equal for the same key, for headrace.submission_digest."""
        spec = self.spec
        timeout = None if spec.timeout is None else self.timeout_seconds
        return (
            spec.type, self.payload, spec.title, spec.queue, spec.priority, spec.run_at, spec.max_attempts, timeout,
            spec.limit_key, dict(spec.labels), spec.schedule_uid,
        )  # fmt: skip


# Both rows in one statement: a task without its place in the queue cannot come into being.
_INSERT = """
WITH given AS MATERIALIZED ({given}
), stored AS (
  INSERT INTO headrace.tasks (id, user_id, task_type, title, payload, priority, queue, run_at, max_attempts,
                              timeout_seconds, labels, limit_key, trace_id, schedule_uid, grace_seconds,
                              extension_seconds, input_asset_id, quality_level, mode, output_format, queue_seq,
                              idempotency_key, created_at, queued_at)
  SELECT id, user_id, task_type, title, payload, priority, queue, coalesce(run_at, now()), max_attempts,
         timeout_seconds, labels, limit_key, trace_id, schedule_uid, grace_seconds, extension_seconds, input_asset_id,
         quality_level, mode, output_format, seq, idempotency_key,
         clock_timestamp(),  -- not now(): a hundred thousand of one instant would be one page to sort
         clock_timestamp()   -- in this order: none was queued before it was created
  FROM given
  {returning}
), queued AS (
  INSERT INTO headrace.task_queue (seq, run_at, lane_id, route_id, precedence, task_id, units, delayed)
  SELECT seq, coalesce(run_at, now()), lane_id, route_id, -priority, id, units, coalesce(run_at > now(), false)
  FROM given
)
{result}
"""
# Waking takes a lock of the whole server at commit: only when a worker sleeps.
_WAKE = "SELECT pg_notify('headrace_tasks', '') FROM headrace.workers WHERE ended_at IS NULL AND asleep LIMIT 1"
# All tasks are stored before the function is called, which reads them, if there are subscribers.
_EMIT = f"""
SELECT ({_WAKE}),
       headrace.emit_task_events(NULL, array_fill('task.created'::text, ARRAY[count(*)::integer]), array_agg(id::text),
                                 array_fill(0, ARRAY[count(*)::integer]))
FROM stored
"""
_SILENT = {"returning": "", "result": _WAKE}
_TELLING = {"returning": "RETURNING id", "result": _EMIT}
_COLUMNS = {
    "id": "varchar", "user_id": "varchar", "task_type": "varchar", "title": "varchar", "payload": "jsonb",
    "priority": "integer", "queue": "varchar", "run_at": "timestamptz", "max_attempts": "integer",
    "timeout_seconds": "integer", "labels": "jsonb", "limit_key": "varchar", "trace_id": "varchar",
    "schedule_uid": "varchar", "grace_seconds": "integer", "extension_seconds": "integer",
    "input_asset_id": "varchar", "quality_level": "varchar", "mode": "varchar", "output_format": "varchar",
    "units": "integer", "idempotency_key": "varchar",
}  # fmt: skip
_ID, _PAYLOAD = list(_COLUMNS).index("id"), list(_COLUMNS).index("payload")
_LANE = {"lane_id": "integer", "route_id": "integer"}
_NUMBERED = [(f"${number}::{kind}", name) for number, (name, kind) in enumerate((_COLUMNS | _LANE).items(), 1)]
# The statement for one row keeps its plan; the one for arrays is planned each time, and costs more than the row.
_ONE = f"""
  SELECT {", ".join(f"{value} AS {name}" for value, name in _NUMBERED)},
         nextval('headrace.task_queue_seq_seq') AS seq"""
# An array of one value stands for that value in every row; unnest fills up what is short with nulls.
_EACH = "CASE WHEN cardinality({value}[]) = 1 THEN ({value}[])[1] ELSE g.{name} END AS {name}"
_MANY = f"""
  SELECT {", ".join(_EACH.format(value=value, name=name) for value, name in _NUMBERED)},
         nextval('headrace.task_queue_seq_seq') AS seq
  FROM unnest({", ".join(f"{value}[]" for value, _ in _NUMBERED)}) AS g ({", ".join(_COLUMNS | _LANE)})"""
# A single task of a transaction: its lane, its event and its row as it is stored. One round trip instead of four.
_IN_ITS_LANE = f"""
  SELECT given.*, lane.lane_id, lane.route_id, nextval('headrace.task_queue_seq_seq') AS seq
  FROM (SELECT {", ".join(f"{value} AS {name}" for value, name in _NUMBERED[: len(_COLUMNS)])}) AS given
  CROSS JOIN LATERAL headrace.assign_lane(
    queue, task_type, user_id, coalesce(limit_key, ''), coalesce(labels, '{{}}'), max_attempts = 1
  ) AS lane"""
_TASK = ", ".join(Task.__dataclass_fields__)
_FIRST_OF_EVENT = len(_COLUMNS) + 1
_TELL_AND_SHOW = f"""
SELECT ({_WAKE}), CASE WHEN ${_FIRST_OF_EVENT} THEN headrace.emit_task_events(
    NULL, ARRAY['task.created'], ARRAY[stored.id::text], ARRAY[0], ARRAY[${_FIRST_OF_EVENT + 1}::text],
    ${_FIRST_OF_EVENT + 2}
  )::text END, given.lane_id, given.route_id, stored.*
FROM stored CROSS JOIN given
"""
INSERT_TASK = _INSERT.format(given=_ONE, **_SILENT)
INSERT_TASKS = _INSERT.format(given=_MANY, **_SILENT)
INSERT_TASK_AND_EMIT = _INSERT.format(given=_ONE, **_TELLING)
INSERT_TASKS_AND_EMIT = _INSERT.format(given=_MANY, **_TELLING)
INSERT_AND_SHOW = _INSERT.format(given=_IN_ITS_LANE, returning=f"RETURNING {_TASK}", result=_TELL_AND_SHOW)


def insertion(drafts: Sequence[Draft], lanes: Lanes, *, emits: bool = False) -> tuple[str, *tuple[object, ...]]:
    """The statement that stores them, and its arguments. With ``emits`` it tells of them, too."""
    rows = [(*_row(draft), *lanes[draft.lane]) for draft in drafts]
    if len(rows) == 1:
        return (INSERT_TASK_AND_EMIT if emits else INSERT_TASK, *rows[0])
    columns = map(_column, zip(*rows, strict=True))
    return (INSERT_TASKS_AND_EMIT if emits else INSERT_TASKS, *columns)


def insertion_alike(
    draft: Draft, task_ids: Sequence[str], payloads: Sequence[Json], lane: tuple[int, int], *, emits: bool
) -> tuple[str, *tuple[object, ...]]:
    """The same for several tasks that are all like this draft but for their ids and payloads."""
    columns = [None if value is None else (value,) for value in (*_row(draft), *lane)]
    columns[_ID], columns[_PAYLOAD] = task_ids, payloads  # type: ignore[call-overload]
    return (INSERT_TASKS_AND_EMIT if emits else INSERT_TASKS, *columns)


async def insert_one(tx: Tx, draft: Draft, *, emits: bool, always: bool = False) -> Lanes:
    """Store one task in its lane, which is made if it is new, and return that; with ``emits`` its event is written,
    too, and with ``always`` also without subscribers."""
    row = await tx.fetchrow(INSERT_AND_SHOW, *_row(draft), emits, draft.spec.request_id, always)
    assert row is not None
    draft.stored = task_of(row)
    return {draft.lane: (row["lane_id"], row["route_id"])}


def _row(draft: Draft) -> tuple[object, ...]:
    spec = draft.spec
    return (
        draft.task_id, draft.user_id, draft.known.name, spec.title or spec.type, draft.payload, draft.priority,
        draft.lane[0], spec.run_at, draft.max_attempts, draft.timeout_seconds,
        dict(spec.labels) if spec.labels else None, draft.lane[3] or None, spec.trace_id, spec.schedule_uid,
        draft.grace_seconds, draft.extension_seconds, *(spec.media or _NO_MEDIA),
        draft.units, spec.idempotency_key or spec.request_key,
    )  # fmt: skip


def _column(values: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """A value that every row has travels once, and one that none has not at all: encoding is most of the cost."""
    if values[0] != values[-1] or values.count(values[0]) < len(values):
        return values
    return None if values[0] is None else values[:1]
