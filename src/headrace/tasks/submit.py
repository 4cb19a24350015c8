"""Submitting: one task or thousands in one statement, in the caller's transaction, at most once for a key."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from headrace import ids
from headrace.database import Database, Json, Tx
from headrace.tasks import storable
from headrace.tasks.catalog import Catalog, KnownType
from headrace.tasks.errors import IdempotencyKeyReused, PayloadInvalid, PayloadTooLarge, TaskSpecInvalid
from headrace.tasks.followers import Followers
from headrace.tasks.model import MEDIA_TYPES, Change, TaskSpec, Transition

_PRIORITIES = range(-1_000_000, 1_000_001)
# Rows a statement: larger arrays gain nothing and hold more memory on both sides.
_ROWS = 5000
_LABELS = 8
_LABEL = re.compile(r"[A-Za-z0-9._/-]{1,63}")


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
        return (await self.submit_many(tx, [spec], user_id=user_id))[0]

    async def submit_many(self, tx: Tx, specs: Sequence[TaskSpec], *, user_id: str) -> list[str]:
        """Submit them all or none, in this order; gives their ids. Bad ones are refused before anything is written."""
        return [draft.task_id for draft in (await self._submit(tx, specs, user_id))[0]]

    async def submit_now(self, db: Database, specs: Sequence[TaskSpec], *, user_id: str) -> list[str]:
        """Submit in a transaction of their own: one statement, and so one round trip, where that is all."""
        drafts = self._drafts_alone(specs, user_id)
        if drafts is not None:
            await db.fetch_alone(INSERT_TASKS, *_columns(drafts, self._lanes))
            return [draft.task_id for draft in drafts]
        async with db.transaction() as tx:
            drafts, lanes = await self._submit(tx, specs, user_id)
        # Only now: a lane that was made in a transaction that is rolled back is none.
        self._lanes.update(lanes)
        self._types.update({draft.known.name: draft.known for draft in drafts})
        return [draft.task_id for draft in drafts]

    async def _submit(self, tx: Tx, specs: Sequence[TaskSpec], user_id: str) -> "tuple[list[_Draft], _Lanes]":
        types = {name: await self._catalog.get(tx, name) for name in {spec.type for spec in specs}}
        drafts = [self._draft(spec, types[spec.type], user_id) for spec in specs]
        fresh = [draft for draft in drafts if draft.key is None or await self._claim_key(tx, draft, user_id)]
        lanes = await self._lanes_of(tx, fresh)
        for start in range(0, len(fresh), _ROWS):
            await self._insert(tx, fresh[start : start + _ROWS], lanes)
        return drafts, lanes

    def _drafts_alone(self, specs: Sequence[TaskSpec], user_id: str) -> "list[_Draft] | None":
        """Drafts that need no look-up and no follower, from what is remembered; None if one of them does."""
        if len(specs) > _ROWS or not self._catalog.constant:
            return None
        drafts = []
        for spec in specs:
            known = self._types.get(spec.type)
            if known is None or spec.idempotency_key is not None or self._followers.of(known):
                return None
            drafts.append(self._draft(spec, known, user_id))
        return drafts if all(draft.lane in self._lanes for draft in drafts) else None

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
        max_attempts = spec.max_attempts or known.max_attempts
        limit_key = spec.limit_key or (known.limit_key(payload, user_id) if known.limit_key else "")
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
            lane=(spec.queue or known.queue, known.name, user_id, limit_key, _frozen(spec.labels), max_attempts == 1),
        )

    async def _claim_key(self, tx: Tx, draft: "_Draft", user_id: str) -> bool:
        """Whether this key is new. If not, the draft takes the first one's id."""
        lifetime = self._config.idempotency_lifetime
        row = await tx.fetchrow(CLAIM_KEY, user_id, draft.key, draft.task_id, lifetime, *draft.asked())
        assert row is not None
        digest = row["digest"]
        if row["request_hash"] is None:  # somebody else's, committed while we waited for it: now it can be seen
            row = await tx.fetchrow(FIND_KEY, user_id, draft.key)
            assert row is not None
        if row["request_hash"] != digest:
            raise IdempotencyKeyReused(f"The idempotency key {draft.key!r} was used for another task.")
        if row["result_task_id"] == draft.task_id:
            return True
        draft.task_id = row["result_task_id"]
        return False

    async def _lanes_of(self, tx: Tx, drafts: Iterable["_Draft"]) -> "_Lanes":
        wanted = {draft.lane for draft in drafts}
        numbers = {lane: self._lanes[lane] for lane in wanted & self._lanes.keys()}
        for lane in sorted(wanted - numbers.keys(), key=repr):  # in one order: two submitters make none deadlock
            queue, task_type, user_id, limit_key, labels, only_once = lane
            numbers[lane] = await tx.fetchval(GET_LANE, queue, task_type, user_id, limit_key, dict(labels), only_once)
        return numbers

    async def _insert(self, tx: Tx, drafts: Sequence["_Draft"], lanes: "_Lanes") -> None:
        await tx.execute(INSERT_TASKS, *_columns(drafts, lanes))
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
                    ),
                )
                for draft in drafts
            ],
        )


_Lanes = dict[tuple[Any, ...], int]


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
    task_id: str = ""

    def __post_init__(self) -> None:
        self.task_id = ids.new("tsk")

    def asked(self) -> tuple[object, ...]:
        """What must be the same for the same key, for headrace.submission_digest."""
        spec = self.spec
        timeout = None if spec.timeout is None else self.timeout_seconds
        return (
            spec.type, self.payload, spec.title, spec.queue, spec.priority, spec.run_at, spec.max_attempts, timeout,
            self.lane[3] or None, dict(spec.labels), spec.schedule_uid,
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
INSERT_TASKS = """
WITH given AS MATERIALIZED (
  -- unnest fills up what is short with nulls: a column of one value stands for that value in every row.
  SELECT g.id, g.payload, g.run_at, g.timeout_seconds, g.labels, g.limit_key, g.trace_id, g.schedule_uid,
         g.grace_seconds, g.extension_seconds,
         coalesce(g.user_id, ($2::varchar[])[1]) AS user_id, coalesce(g.task_type, ($3::varchar[])[1]) AS task_type,
         coalesce(g.title, ($4::varchar[])[1]) AS title, coalesce(g.priority, ($6::integer[])[1]) AS priority,
         coalesce(g.queue, ($7::varchar[])[1]) AS queue, coalesce(g.max_attempts, ($9::integer[])[1]) AS max_attempts,
         coalesce(g.lane_id, ($15::integer[])[1]) AS lane_id, nextval('headrace.task_queue_seq_seq') AS seq
  FROM unnest($1::varchar[], $2::varchar[], $3::varchar[], $4::varchar[], $5::jsonb[], $6::integer[], $7::varchar[],
              $8::timestamptz[], $9::integer[], $10::integer[], $11::jsonb[], $12::varchar[], $13::varchar[],
              $14::varchar[], $15::integer[], $16::integer[], $17::integer[])
    AS g (id, user_id, task_type, title, payload, priority, queue, run_at, max_attempts, timeout_seconds, labels,
          limit_key, trace_id, schedule_uid, lane_id, grace_seconds, extension_seconds)
), stored AS (
  INSERT INTO headrace.tasks (id, user_id, task_type, title, payload, priority, queue, run_at, max_attempts,
                              timeout_seconds, labels, limit_key, trace_id, schedule_uid, grace_seconds,
                              extension_seconds, queued_at, queue_seq, created_at)
  SELECT id, user_id, task_type, title, payload, priority, queue, coalesce(run_at, now()), max_attempts,
         timeout_seconds, labels, limit_key, trace_id, schedule_uid, grace_seconds, extension_seconds, now(), seq,
         clock_timestamp()  -- not now(): a hundred thousand of one instant would be one page to sort
  FROM given
), queued AS (
  INSERT INTO headrace.task_queue (seq, run_at, lane_id, precedence, task_id)
  SELECT seq, coalesce(run_at, now()), lane_id, -priority, id
  FROM given
)
-- Waking takes a lock of the whole server at commit: only when somebody sleeps.
SELECT pg_notify('headrace_tasks', '') FROM headrace.workers WHERE ended_at IS NULL AND asleep LIMIT 1
"""


def _columns(drafts: Sequence[_Draft], lanes: _Lanes) -> tuple[list[Any] | None, ...]:
    """The arrays of INSERT_TASKS. A column that is the same in every row travels once: encoding is most of the cost."""
    specs = [draft.spec for draft in drafts]
    return (
        [draft.task_id for draft in drafts],
        _once([draft.user_id for draft in drafts]),
        _once([draft.known.name for draft in drafts]),
        _once([spec.title or spec.type for spec in specs]),
        [draft.payload for draft in drafts],
        _once([draft.priority for draft in drafts]),
        _once([draft.lane[0] for draft in drafts]),
        _if_any([spec.run_at for spec in specs]),
        _once([draft.max_attempts for draft in drafts]),
        _if_any([draft.timeout_seconds for draft in drafts]),
        _if_any([dict(spec.labels) or None for spec in specs]),
        _if_any([draft.lane[3] or None for draft in drafts]),
        _if_any([spec.trace_id for spec in specs]),
        _if_any([spec.schedule_uid for spec in specs]),
        _once([lanes[draft.lane] for draft in drafts]),
        _if_any([draft.grace_seconds for draft in drafts]),
        _if_any([draft.extension_seconds for draft in drafts]),
    )


def _once(values: list[Any]) -> list[Any]:
    return values[:1] if values.count(values[0]) == len(values) else values


def _if_any(values: list[Any]) -> list[Any] | None:
    return None if values.count(None) == len(values) else values


def _check_spec(spec: TaskSpec) -> None:
    if spec.type in MEDIA_TYPES:
        raise TaskSpecInvalid(f"{spec.type} tasks are ordered through removal, which knows their file.")
    if spec.priority is not None and spec.priority not in _PRIORITIES:
        raise TaskSpecInvalid("priority must lie between -1,000,000 and 1,000,000.")
    if spec.max_attempts is not None and not 1 <= spec.max_attempts <= 1000:
        raise TaskSpecInvalid("max_attempts must lie between 1 and 1000.")
    if spec.timeout is not None and spec.timeout <= timedelta(0):
        raise TaskSpecInvalid("timeout must be longer than nothing.")
    if spec.run_at is not None and spec.run_at.tzinfo is None:
        raise TaskSpecInvalid("run_at needs a time zone.")
    if spec.idempotency_key is not None and not 1 <= len(spec.idempotency_key) <= 128:
        raise TaskSpecInvalid("An idempotency key has 1 to 128 characters.")
    if min(spec.grace or timedelta(0), spec.extension or timedelta(0)) < timedelta(0):
        raise TaskSpecInvalid("grace and extension must not be negative.")
    _check_texts(spec)


def _check_texts(spec: TaskSpec) -> None:
    texts = (
        ("title", spec.title, 255),
        ("queue", spec.queue, 64),
        ("limit_key", spec.limit_key, 255),
        ("trace_id", spec.trace_id, 64),
        ("schedule_uid", spec.schedule_uid, 255),
    )
    if len(spec.labels) > _LABELS or not all(map(_is_label, (*spec.labels, *spec.labels.values()))):
        raise TaskSpecInvalid(
            f"Labels are at most {_LABELS}, with names and values of 1 to 63 letters, digits and characters of . _ / -"
        )
    for name, text, longest in texts:
        if text is not None and (not text or len(text) > longest or "\0" in text):
            raise TaskSpecInvalid(f"{name} has 1 to {longest} characters and no NUL.")


def _is_label(text: object) -> bool:
    return isinstance(text, str) and _LABEL.fullmatch(text) is not None


def _frozen(labels: Any) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(labels.items()))
