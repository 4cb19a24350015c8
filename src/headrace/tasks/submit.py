"""Submitting: one task or thousands in one statement, in the caller's transaction, at most once for a key."""

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from headrace import ids
from headrace.database import Database, Json, Tx
from headrace.tasks import storable
from headrace.tasks.catalog import Catalog, KnownType
from headrace.tasks.errors import IdempotencyKeyReused, PayloadInvalid, PayloadTooLarge, TaskSpecInvalid
from headrace.tasks.followers import Followers
from headrace.tasks.limit_keys import LONGEST_KEY, limit_key
from headrace.tasks.model import LABEL, LONGEST_TIMEOUT, MEDIA_TYPES, Change, TaskSpec, Transition

_PRIORITIES = range(-1_000_000, 1_000_001)
# Rows a statement: larger arrays gain nothing, hold more memory on both sides, and leave one side idle for longer.
_ROWS = 1000
_LANES_KEPT = 100_000
_LABELS = 8
_LABEL = re.compile(LABEL)
_TEXTS = {"title": 255, "queue": 64, "limit_key": LONGEST_KEY, "trace_id": 64, "schedule_uid": 255}
_NO_TEXTS = (None,) * len(_TEXTS)
_NOTHING = timedelta(0)
_OWN_TYPES = "headrace."
_EARLIEST, _LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class SubmitConfig:
    payload_limit: int = 256 * 1024
    idempotency_lifetime: timedelta = timedelta(hours=24)


class Submitter:
    """Turns specs into tasks. It lives on with what it remembers: the numbers of lanes, which never change."""

    def __init__(self, catalog: Catalog, followers: Followers, config: SubmitConfig | None = None) -> None:
        self._catalog = catalog
        self._followers = followers
        self._config = config or SubmitConfig()
        self._lanes: _Lanes = {}
        self._types: dict[str, KnownType] = {}

    async def submit(self, tx: Tx, spec: TaskSpec, *, user_id: str) -> str:
        """Submit one task; with an idempotency key the same one again, also under a race."""
        return (await self.submit_once(tx, spec, user_id=user_id))[0]

    async def submit_once(self, tx: Tx, spec: TaskSpec, *, user_id: str) -> tuple[str, bool]:
        """Submit one task; tells also whether it was made now, and not by an earlier one with the same key."""
        (draft,) = (await self._submit(tx, [spec], user_id))[0]
        return draft.task_id, draft.made

    async def submit_many(self, tx: Tx, specs: Sequence[TaskSpec], *, user_id: str) -> list[str]:
        """Submit them all or none, in this order; gives their ids. Bad ones are refused before anything is written."""
        return [draft.task_id for draft in (await self._submit(tx, specs, user_id))[0]]

    async def submit_now(self, db: Database, specs: Sequence[TaskSpec], *, user_id: str) -> list[str]:
        """Submit in a transaction of their own: one statement, and so one round trip, where that is all."""
        known = self._needs_no_look(specs)
        if known and len(specs) <= _ROWS:
            drafts = [self._draft(spec, self._types[spec.type], user_id) for spec in specs]
            if all(draft.lane in self._lanes for draft in drafts):
                await db.fetch_alone(*_insertion(drafts, self._lanes, emits=self._emits(specs)))
                return [draft.task_id for draft in drafts]
        async with db.transaction() as tx:
            drafts, lanes = await (self._stream if known else self._submit)(tx, specs, user_id)
        # Only now: a lane that was made in a transaction that is rolled back is none.
        if len(self._lanes) > _LANES_KEPT:  # a limit key for each customer, say, adds up
            self._lanes.clear()
        self._lanes.update(lanes)
        self._types.update({draft.known.name: draft.known for draft in drafts})
        return [draft.task_id for draft in drafts]

    async def _submit(self, tx: Tx, specs: Sequence[TaskSpec], user_id: str) -> "tuple[list[_Draft], _Lanes]":
        types = {name: await self._catalog.get(tx, name) for name in {spec.type for spec in specs}}
        drafts = [self._draft(spec, types[spec.type], user_id) for spec in specs]
        # Keys in one order: two who send the same ones the other way round do not wait for each other.
        keyed = sorted((draft for draft in drafts if draft.key is not None), key=lambda draft: str(draft.key))
        for draft in keyed:
            await self._claim_key(tx, draft, user_id)
        fresh = [draft for draft in drafts if draft.made]
        lanes = await self._lanes_of(tx, fresh)
        for start in range(0, len(fresh), _ROWS):
            await self._insert(tx, fresh[start : start + _ROWS], lanes)
        return drafts, lanes

    def _needs_no_look(self, specs: Sequence[TaskSpec]) -> bool:
        """Whether every type is remembered, nobody has to be called for it and no key is given: then there is nothing
        to read first, and all of it is one statement."""
        if not specs or not self._catalog.constant:
            return False
        known = {name: self._types.get(name) for name in {spec.type for spec in specs}}
        if any(each is None or not self._followers.needs_nobody(each) for each in known.values()):
            return False
        if len({self._followers.emits(each) for each in known.values() if each is not None}) > 1:
            return False
        return all(spec.idempotency_key is spec.schedule_uid is spec.request_id is None for spec in specs)

    def _emits(self, specs: Sequence[TaskSpec]) -> bool:
        """Of specs that need no look: whether they are of types with events; all are, or none."""
        return self._followers.emits(self._types[specs[0].type])

    async def _stream(self, tx: Tx, specs: Sequence[TaskSpec], user_id: str) -> "tuple[list[_Draft], _Lanes]":
        """Draft the next ones while the last are written. For a transaction of our own alone: a bad one is found only
        when others are written already."""
        drafts: list[_Draft] = []
        lanes: _Lanes = {}
        writing: asyncio.Task[object] | None = None
        try:
            for start in range(0, len(specs), _ROWS):
                part = [self._draft(spec, self._types[spec.type], user_id) for spec in specs[start : start + _ROWS]]
                if writing is not None:
                    await writing
                lanes |= await self._lanes_of(tx, part)
                writing = asyncio.create_task(tx.execute(*_insertion(part, lanes, emits=self._emits(specs))))
                await asyncio.sleep(0)  # it goes out now
                drafts += part
        finally:
            if writing is not None:
                await writing
        return drafts, lanes

    def _draft(self, spec: TaskSpec, known: KnownType, user_id: str) -> "_Draft":
        payload = {} if spec.payload is None else spec.payload
        known.check_payload(payload)
        try:
            encoded = storable.encode(payload, limit=self._config.payload_limit)
        except storable.TooLarge as exc:
            raise PayloadTooLarge(f"The payload {exc}.") from None
        except storable.NotStorable as exc:
            raise PayloadInvalid(f"The payload {exc}.") from None
        _check_spec(spec)
        check_is_open(spec.type, user_id)
        max_attempts = spec.max_attempts or known.max_attempts
        key = limit_key(known.name, known.limit_key, spec.limit_key, payload=payload, user_id=user_id)
        return _Draft(
            spec=spec,
            known=known,
            user_id=user_id,
            payload=encoded,
            key=spec.idempotency_key,
            priority=known.priority if spec.priority is None else spec.priority,
            max_attempts=max_attempts,
            timeout_seconds=known.timeout_seconds
            if spec.timeout is None
            else max(1, round(spec.timeout.total_seconds())),
            grace_seconds=None if spec.grace is None else round(spec.grace.total_seconds()),
            extension_seconds=None if spec.extension is None else round(spec.extension.total_seconds()),
            lane=(spec.queue or known.queue, known.name, user_id, key, _frozen(spec.labels), max_attempts == 1),
            task_id=ids.new("tsk"),
        )

    async def _claim_key(self, tx: Tx, draft: "_Draft", user_id: str) -> None:
        """Claim the draft's key. If it is not new, the draft takes the first one's id."""
        lifetime = self._config.idempotency_lifetime
        row = None
        while row is None:
            row = await tx.fetchrow(CLAIM_KEY, user_id, draft.key, draft.task_id, lifetime, *draft.asked())
            assert row is not None
            digest = row["digest"]
            if row["request_hash"] is None:
                # Somebody else's, committed while we waited for it: now it can be seen. Nothing there: it was removed
                # just now, as keys are that have served their time.
                row = await tx.fetchrow(FIND_KEY, user_id, draft.key)
        if row["request_hash"] != digest:
            raise IdempotencyKeyReused(f"The idempotency key {draft.key!r} was used for another task.")
        draft.made = row["result_task_id"] == draft.task_id
        draft.task_id = row["result_task_id"]

    async def _lanes_of(self, tx: Tx, drafts: Iterable["_Draft"]) -> "_Lanes":
        wanted = {draft.lane for draft in drafts}
        numbers = {lane: self._lanes[lane] for lane in wanted & self._lanes.keys()}
        for lane in sorted(wanted - numbers.keys(), key=repr):  # in one order: two submitters make none deadlock
            queue, task_type, user_id, key, labels, only_once = lane
            numbers[lane] = await tx.fetchval(GET_LANE, queue, task_type, user_id, key, dict(labels), only_once)
        return numbers

    async def _insert(self, tx: Tx, drafts: Sequence["_Draft"], lanes: "_Lanes") -> None:
        await tx.execute(*_insertion(drafts, lanes))
        await self._followers.follow(
            tx,
            [
                (
                    draft.known,
                    Transition(
                        Change.CREATED,
                        draft.task_id,
                        draft.known.name,
                        draft.user_id,
                        attempt=0,
                        schedule_uid=draft.spec.schedule_uid,
                        request_id=draft.spec.request_id,
                    ),
                )
                for draft in drafts
            ],
        )


_Lanes = dict[tuple[Any, ...], int]
_NO_MEDIA = (None, None, None, None)


@dataclass(slots=True)
class _Draft:
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
    made: bool = True  # False if its key was known

    def asked(self) -> tuple[object, ...]:
        """What must be the same for the same key, for headrace.submission_digest."""
        spec = self.spec
        timeout = None if spec.timeout is None else self.timeout_seconds
        return (
            spec.type, self.payload, spec.title, spec.queue, spec.priority, spec.run_at, spec.max_attempts, timeout,
            spec.limit_key, dict(spec.labels), spec.schedule_uid,
        )  # fmt: skip


# An expired key is as good as none: it is taken over. A live one is given back as it is, by FIND_KEY.
CLAIM_KEY = """
WITH asked AS (
  SELECT headrace.submission_digest($5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15) AS digest
), claimed AS (
  INSERT INTO headrace.idempotency_keys AS known
    (scope, user_id, idempotency_key, request_hash, result_task_id, http_status, expires_at)
  SELECT 'tasks.submit', $1, $2, digest, $3, 201, now() + $4 FROM asked
  ON CONFLICT (scope, user_id, idempotency_key) DO UPDATE
  SET request_hash = excluded.request_hash, result_task_id = $3, expires_at = now() + $4
  WHERE known.expires_at <= now()
  RETURNING request_hash, result_task_id
)
SELECT digest, request_hash, result_task_id FROM asked LEFT JOIN claimed ON true
"""
FIND_KEY = """
SELECT request_hash, result_task_id FROM headrace.idempotency_keys
WHERE scope = 'tasks.submit' AND user_id = $1 AND idempotency_key = $2
"""
GET_LANE = "SELECT headrace.lane($1, $2, $3, $4, $5, $6)"

# Both rows in one statement: a task without its place in the queue cannot come into being.
_INSERT = """
WITH given AS MATERIALIZED ({given}
), stored AS (
  INSERT INTO headrace.tasks (id, user_id, task_type, title, payload, priority, queue, run_at, max_attempts,
                              timeout_seconds, labels, limit_key, trace_id, schedule_uid, grace_seconds,
                              extension_seconds, input_asset_id, quality_level, mode, output_format, queued_at,
                              queue_seq, created_at)
  SELECT id, user_id, task_type, title, payload, priority, queue, coalesce(run_at, now()), max_attempts,
         timeout_seconds, labels, limit_key, trace_id, schedule_uid, grace_seconds, extension_seconds, input_asset_id,
         quality_level, mode, output_format, now(), seq,
         clock_timestamp()  -- not now(): a hundred thousand of one instant would be one page to sort
  FROM given
  {returning}
), queued AS (
  INSERT INTO headrace.task_queue (seq, run_at, lane_id, precedence, task_id)
  SELECT seq, coalesce(run_at, now()), lane_id, -priority, id
  FROM given
)
{result}
"""
# Waking takes a lock of the whole server at commit: only when somebody sleeps.
_WAKE = "SELECT pg_notify('headrace_tasks', '') FROM headrace.workers WHERE ended_at IS NULL AND asleep LIMIT 1"
# All tasks are stored before the function is called, which reads them, if somebody wants to know.
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
    "schedule_uid": "varchar", "lane_id": "integer", "grace_seconds": "integer", "extension_seconds": "integer",
    "input_asset_id": "varchar", "quality_level": "varchar", "mode": "varchar", "output_format": "varchar",
}  # fmt: skip
_NUMBERED = [(f"${number}::{kind}", name) for number, (name, kind) in enumerate(_COLUMNS.items(), 1)]
# One row has a plan that is kept; one for arrays is made anew each time, and costs more than the row.
_ONE = f"""
  SELECT {", ".join(f"{value} AS {name}" for value, name in _NUMBERED)},
         nextval('headrace.task_queue_seq_seq') AS seq"""
# An array of one value stands for that value in every row; unnest fills up what is short with nulls.
_EACH = "CASE WHEN cardinality({value}[]) = 1 THEN ({value}[])[1] ELSE g.{name} END AS {name}"
_MANY = f"""
  SELECT {", ".join(_EACH.format(value=value, name=name) for value, name in _NUMBERED)},
         nextval('headrace.task_queue_seq_seq') AS seq
  FROM unnest({", ".join(f"{value}[]" for value, _ in _NUMBERED)}) AS g ({", ".join(_COLUMNS)})"""
INSERT_TASK = _INSERT.format(given=_ONE, **_SILENT)
INSERT_TASKS = _INSERT.format(given=_MANY, **_SILENT)
INSERT_TASK_AND_EMIT = _INSERT.format(given=_ONE, **_TELLING)
INSERT_TASKS_AND_EMIT = _INSERT.format(given=_MANY, **_TELLING)


def _insertion(drafts: Sequence[_Draft], lanes: _Lanes, *, emits: bool = False) -> tuple[str, *tuple[object, ...]]:
    """The statement that stores them, and its arguments. With ``emits`` it tells of them, too."""
    if len(drafts) == 1:
        return (INSERT_TASK_AND_EMIT if emits else INSERT_TASK, *_row(drafts[0], lanes))
    columns = map(_column, zip(*[_row(draft, lanes) for draft in drafts], strict=True))
    return (INSERT_TASKS_AND_EMIT if emits else INSERT_TASKS, *columns)


def _row(draft: _Draft, lanes: _Lanes) -> tuple[object, ...]:
    spec = draft.spec
    return (
        draft.task_id, draft.user_id, draft.known.name, spec.title or spec.type, draft.payload, draft.priority,
        draft.lane[0], spec.run_at, draft.max_attempts, draft.timeout_seconds,
        dict(spec.labels) if spec.labels else None, draft.lane[3] or None, spec.trace_id, spec.schedule_uid,
        lanes[draft.lane], draft.grace_seconds, draft.extension_seconds, *(spec.media or _NO_MEDIA),
    )  # fmt: skip


def _column(values: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """A value that every row has travels once, and one that none has not at all: encoding is most of the cost."""
    if values[0] != values[-1] or values.count(values[0]) < len(values):
        return values
    return None if values[0] is None else values[:1]


def is_own(type_name: str) -> bool:
    """Whether it is a type of the product's own (retention, purging): every worker has it."""
    return type_name.startswith(_OWN_TYPES)


def check_is_open(type_name: str, user_id: str) -> None:
    """Refuse the product's own types to everybody but the product."""
    if is_own(type_name) and user_id != ids.SYSTEM_USER:
        raise TaskSpecInvalid(f"{type_name} is for the product itself: an administrator can run its schedule instead.")


def _check_spec(spec: TaskSpec) -> None:
    if (spec.type in MEDIA_TYPES) != (spec.media is not None):
        raise TaskSpecInvalid(
            f"{spec.type} tasks are ordered through removal, which knows their file."
            if spec.media is None
            else f"{spec.type} is no media type: it has no file, quality, mode or format."
        )
    if spec.priority is not None and spec.priority not in _PRIORITIES:
        raise TaskSpecInvalid("priority must lie between -1,000,000 and 1,000,000.")
    if spec.max_attempts is not None and not 1 <= spec.max_attempts <= 1000:
        raise TaskSpecInvalid("max_attempts must lie between 1 and 1000.")
    if spec.timeout is not None and not _NOTHING < spec.timeout <= LONGEST_TIMEOUT:
        raise TaskSpecInvalid("timeout must be longer than nothing, and a year at most.")
    if spec.run_at is not None:
        _check_time(spec.run_at)
    if spec.idempotency_key is not None and not 1 <= len(spec.idempotency_key) <= 128:
        raise TaskSpecInvalid("An idempotency key has 1 to 128 characters.")
    if min(spec.grace or _NOTHING, spec.extension or _NOTHING) < _NOTHING:
        raise TaskSpecInvalid("grace and extension must not be negative.")
    _check_texts(spec)


def _check_time(run_at: datetime) -> None:
    if run_at.tzinfo is None:
        raise TaskSpecInvalid("run_at needs a time zone.")
    # The driver stores the first and the last instant that Python knows as infinities: no worker could read the queue.
    if not _EARLIEST <= run_at < _LATEST:
        raise TaskSpecInvalid("run_at must lie between the years 1970 and 9998.")


def _check_texts(spec: TaskSpec) -> None:
    if spec.labels and not _are_labels(spec.labels):
        raise TaskSpecInvalid(
            f"Labels are at most {_LABELS}, with names and values of 1 to 63 letters, digits and characters of . _ / - "
            "from a letter or a digit on."
        )
    texts = (spec.title, spec.queue, spec.limit_key, spec.trace_id, spec.schedule_uid)
    if texts == _NO_TEXTS:
        return
    for text, (name, longest) in zip(texts, _TEXTS.items(), strict=True):
        if text is not None and (not text or len(text) > longest or "\0" in text):
            raise TaskSpecInvalid(f"{name} has 1 to {longest} characters and no NUL.")


def _are_labels(labels: Mapping[Any, Any]) -> bool:
    return len(labels) <= _LABELS and all(
        isinstance(text, str) and _LABEL.fullmatch(text) for text in (*labels, *labels.values())
    )


def _frozen(labels: Any) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(labels.items())) if labels else ()
