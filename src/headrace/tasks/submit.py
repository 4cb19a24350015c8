"""Submitting: one task or thousands in one statement, in the caller's transaction, at most once for a key."""

import asyncio
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import Any

from headrace import ids
from headrace.database import Database, Json, Tx
from headrace.tasks import storable
from headrace.tasks.catalog import Catalog, KnownType
from headrace.tasks.errors import IdempotencyKeyReused, PayloadInvalid, PayloadTooLarge, TaskSpecInvalid
from headrace.tasks.followers import OUTBOX_ALWAYS, Followers
from headrace.tasks.insertion import Draft, Lanes, insert_one, insertion, insertion_alike
from headrace.tasks.limit_keys import LONGEST_KEY, limit_key
from headrace.tasks.model import LABEL, MAX_TIMEOUT, MEDIA_TYPES, Change, Task, TaskSpec, Transition
from headrace.tasks.rights import ADMINS, TRUSTED, Rights, rights_of_user
from headrace.tasks.units import units

_PRIORITIES = range(-1_000_000, 1_000_001)
# Rows a statement: larger arrays gain nothing, hold more memory on both sides, and leave one side idle for longer.
_ROWS = 1000
_LANES_KEPT = 100_000
_LANES_KEPT_S = 3600.0
_LABELS = 8
_LABEL = re.compile(LABEL)
_TEXTS = {"title": 255, "queue": 64, "limit_key": LONGEST_KEY, "trace_id": 64, "schedule_uid": 255}
_NO_TEXTS = (None,) * len(_TEXTS)
_NOTHING = timedelta(0)
# All of a spec but its payload.
_SHAPE = attrgetter(*(each.name for each in fields(TaskSpec) if each.name != "payload"))
_OWN_TYPES = "headrace."
_EARLIEST, _LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class SubmitConfig:
    payload_limit: int = 256 * 1024
    idempotency_lifetime: timedelta = timedelta(hours=24)


class Submitter:
    """Turns specs into tasks. It remembers the numbers of lanes, for as long as they are certain to exist."""

    def __init__(self, catalog: Catalog, followers: Followers, config: SubmitConfig | None = None) -> None:
        self._catalog = catalog
        self._followers = followers
        self._config = config or SubmitConfig()
        self._lanes: Lanes = {}
        self._lanes_since = time.monotonic()
        self._types: dict[str, KnownType] = {}

    @property
    def catalog(self) -> Catalog:
        return self._catalog

    @property
    def followers(self) -> Followers:
        return self._followers

    async def submit(self, tx: Tx, spec: TaskSpec, *, user_id: str, rights: Rights = TRUSTED) -> str:
        """Submit one task; with an idempotency key the same one again, also under a race."""
        return (await self.submit_once(tx, spec, user_id=user_id, rights=rights))[0]

    async def submit_once(
        self, tx: Tx, spec: TaskSpec, *, user_id: str, rights: Rights = TRUSTED
    ) -> tuple[str, Task | None]:
        """Submit one task; returns its id, and the task itself unless it was made before with the same key."""
        (draft,) = (await self._submit(tx, [spec], user_id, rights))[0]
        return draft.task_id, draft.stored

    async def submit_many(
        self, tx: Tx, specs: Sequence[TaskSpec], *, user_id: str, rights: Rights | None = TRUSTED
    ) -> list[str]:
        """Submit them all or none, in this order; gives their ids. Bad ones are refused before anything is written.

        ``rights`` are those of the submitter; None: those of the tasks' owner.
        """
        return [draft.task_id for draft in (await self._submit(tx, specs, user_id, rights))[0]]

    async def submit_now(
        self, db: Database, specs: Sequence[TaskSpec], *, user_id: str, trusted: bool = True
    ) -> list[str]:
        """Submit in a transaction of its own: one statement, and so one round trip, if possible.

        Unless they are ``trusted``, the user must be one who may submit them.
        """
        rights = TRUSTED if trusted or user_id == ids.SYSTEM_USER else None
        self._forget_old_lanes()
        known = self.can_skip_lookup(specs, rights)
        if known and len(specs) <= _ROWS:
            if (alike := self._draft_alike(specs, user_id)) is not None and alike[0].lane in self._lanes:
                draft, task_ids, payloads = alike
                lane = self._lanes[draft.lane]
                await db.fetch_alone(*insertion_alike(draft, task_ids, payloads, lane, emits=self._emits(specs)))
                return task_ids
            drafts = [self._draft(spec, self._types[spec.type], user_id) for spec in specs]
            if all(draft.lane in self._lanes for draft in drafts):
                await db.fetch_alone(*insertion(drafts, self._lanes, emits=self._emits(specs)))
                return [draft.task_id for draft in drafts]
        async with db.transaction() as tx:
            drafts, lanes = await (
                self._stream(tx, specs, user_id) if known else self._submit(tx, specs, user_id, rights)
            )
        # Only now: a lane that was made in a transaction that is rolled back is none.
        self._lanes.update(lanes)
        self._types.update({draft.known.name: draft.known for draft in drafts})
        return [draft.task_id for draft in drafts]

    def _forget_old_lanes(self) -> None:
        """A lane without tasks is deleted a day after it was retired (headrace.retire_lanes): no process may remember
        one for that long. And limit keys per customer, say, add up."""
        if len(self._lanes) > _LANES_KEPT or time.monotonic() - self._lanes_since > _LANES_KEPT_S:
            self._lanes.clear()
            self._lanes_since = time.monotonic()

    async def is_metered(self, tx: Tx, type_name: str) -> bool:
        """Whether tasks of this type cost something: the database may refuse them after they were written."""
        return (await self._catalog.get(tx, type_name)).units is not None

    async def _submit(
        self, tx: Tx, specs: Sequence[TaskSpec], user_id: str, rights: Rights | None
    ) -> tuple[list[Draft], Lanes]:
        types = {name: await self._catalog.get(tx, name) for name in {spec.type for spec in specs}}
        if rights is not TRUSTED:
            rights = rights or await rights_of_user(tx, user_id, [known.submit for known in types.values()])
            for name in sorted(types):
                rights.check(name, types[name].submit)
        drafts = [self._draft(spec, types[spec.type], user_id) for spec in specs]
        # Keys in one order: two who send the same ones the other way round do not wait for each other.
        keyed = sorted((draft for draft in drafts if draft.key is not None), key=lambda draft: str(draft.key))
        for draft in keyed:
            await self._claim_key(tx, draft, user_id)
        fresh = [draft for draft in drafts if draft.made]
        if len(fresh) == 1:
            return drafts, await self._insert_one(tx, fresh[0])
        lanes = await self._lanes_of(tx, fresh)
        for start in range(0, len(fresh), _ROWS):
            await self._insert(tx, fresh[start : start + _ROWS], lanes)
        return drafts, lanes

    def can_skip_lookup(self, specs: Sequence[TaskSpec], rights: Rights | None) -> bool:
        """Whether every type is remembered, free and open to this user, has no followers to call, and no key is
        submitted: then all of it is one statement, and nothing is read first."""
        if not specs or not self._catalog.constant:
            return False
        known = {name: self._types.get(name) for name in {spec.type for spec in specs}}
        if any(each is None or each.units or not self._followers.needs_no_call(each) for each in known.values()):
            return False
        if rights is None and any(each is not None and each.submit == ADMINS for each in known.values()):
            return False
        if len({self._followers.emits(each) for each in known.values() if each is not None}) > 1:
            return False
        return all(spec.idempotency_key is spec.schedule_uid is spec.request_id is None for spec in specs)

    def _emits(self, specs: Sequence[TaskSpec]) -> bool:
        """Of specs that need no look: whether they are of types with events; all are, or none."""
        return self._followers.emits(self._types[specs[0].type])

    async def _stream(self, tx: Tx, specs: Sequence[TaskSpec], user_id: str) -> tuple[list[Draft], Lanes]:
        """Draft the next ones while the last are written. For a transaction of our own alone: a bad one is found only
        when others are written already."""
        drafts: list[Draft] = []
        lanes: Lanes = {}
        writing: asyncio.Task[object] | None = None
        try:
            for start in range(0, len(specs), _ROWS):
                part = [self._draft(spec, self._types[spec.type], user_id) for spec in specs[start : start + _ROWS]]
                if writing is not None:
                    await writing
                lanes |= await self._lanes_of(tx, part)
                writing = asyncio.create_task(tx.execute(*insertion(part, lanes, emits=self._emits(specs))))
                await asyncio.sleep(0)  # it goes out now
                drafts += part
        finally:
            if writing is not None:
                await writing
        return drafts, lanes

    def _draft_alike(self, specs: Sequence[TaskSpec], user_id: str) -> tuple[Draft, list[str], list[Json]] | None:
        """The draft of the first, and the ids and payloads of all, if they differ in their payloads alone: most of a
        draft is then checked once. None otherwise, or if their lanes depend on the payload."""
        known = self._types[specs[0].type]
        shape = _SHAPE(specs[0])
        if len(specs) == 1 or known.limit_key is not None or any(_SHAPE(spec) != shape for spec in specs):
            return None
        draft = self._draft(specs[0], known, user_id)
        payloads = [draft.payload, *(self._encode(spec, known) for spec in specs[1:])]
        return draft, [draft.task_id, *(ids.new("tsk") for _ in payloads[1:])], payloads

    def _encode(self, spec: TaskSpec, known: KnownType) -> Json:
        payload = {} if spec.payload is None else spec.payload
        known.check_payload(payload)
        try:
            return storable.encode(payload, limit=self._config.payload_limit)
        except storable.TooLarge as exc:
            raise PayloadTooLarge(f"The payload {exc}.") from None
        except storable.NotStorable as exc:
            raise PayloadInvalid(f"The payload {exc}.") from None

    def _draft(self, spec: TaskSpec, known: KnownType, user_id: str) -> Draft:
        payload = {} if spec.payload is None else spec.payload
        encoded = self._encode(spec, known)
        check_spec(spec)
        if not spec.own:
            check_is_open(spec.type, user_id)
        max_attempts = spec.max_attempts or known.max_attempts
        key = limit_key(known.name, known.limit_key, spec.limit_key, payload=payload, user_id=user_id)
        return Draft(
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
            units=units(known.name, known.units, payload),
        )

    async def _claim_key(self, tx: Tx, draft: Draft, user_id: str) -> None:
        """Claim the draft's key. If it is not new, the draft takes the first one's id."""
        lifetime = self._config.idempotency_lifetime
        row = None
        while row is None:
            row = await tx.fetchrow(CLAIM_KEY, user_id, draft.key, draft.task_id, lifetime, *draft.digested())
            assert row is not None
            digest = row["digest"]
            if row["request_hash"] is None:
                # Another transaction's, committed while we waited: now it is visible. No row: the key had expired
                # and was removed just now.
                row = await tx.fetchrow(FIND_KEY, user_id, draft.key)
        if row["request_hash"] != digest:
            raise IdempotencyKeyReused(f"The idempotency key {draft.key!r} was used for another task.")
        draft.made = row["result_task_id"] == draft.task_id
        draft.task_id = row["result_task_id"]

    async def _lanes_of(self, tx: Tx, drafts: Iterable[Draft]) -> Lanes:
        self._forget_old_lanes()
        wanted = {draft.lane for draft in drafts}
        numbers = {lane: self._lanes[lane] for lane in wanted & self._lanes.keys()}
        for lane in sorted(wanted - numbers.keys(), key=repr):
            queue, task_type, user_id, key, labels, only_once = lane
            row = await tx.fetchrow(ASSIGN_LANE, queue, task_type, user_id, key, dict(labels), only_once)
            assert row is not None
            numbers[lane] = row["lane_id"], row["route_id"]
        return numbers

    async def _insert_one(self, tx: Tx, draft: Draft) -> Lanes:
        own = self._followers.of(draft.known)
        only_events = self._followers.only_events(draft.known)
        lanes = await insert_one(tx, draft, emits=bool(own) and only_events, always=OUTBOX_ALWAYS in own)
        await self._followers.follow(tx, [_created(draft)], events_written=only_events)
        return lanes

    async def _insert(self, tx: Tx, drafts: Sequence[Draft], lanes: Lanes) -> None:
        await tx.execute(*insertion(drafts, lanes))
        await self._followers.follow(tx, map(_created, drafts))


def _created(draft: Draft) -> tuple[KnownType, Transition]:
    spec = draft.spec
    return draft.known, Transition(
        Change.CREATED,
        draft.task_id,
        draft.known.name,
        draft.user_id,
        attempt=0,
        schedule_uid=spec.schedule_uid,
        request_id=spec.request_id,
        units=draft.units,
    )


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
ASSIGN_LANE = "SELECT lane_id, route_id FROM headrace.assign_lane($1, $2, $3, $4, $5, $6)"


def is_own(type_name: str) -> bool:
    """Whether it is a type of the product's own (retention, purging): every worker has it."""
    return type_name.startswith(_OWN_TYPES)


def check_is_open(type_name: str, user_id: str) -> None:
    """Refuse the product's own types to everybody but the product."""
    if is_own(type_name) and user_id != ids.SYSTEM_USER:
        raise TaskSpecInvalid(f"{type_name} is for the product itself: an administrator can run its schedule instead.")


def check_spec(spec: TaskSpec) -> None:
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
    if spec.timeout is not None and not _NOTHING < spec.timeout <= MAX_TIMEOUT:
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
