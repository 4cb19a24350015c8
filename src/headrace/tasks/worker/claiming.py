"""The lanes to claim from next: highest priority first, users in turns, each lane in the order of submission.

A survey finds the lanes that have work and the first row of each. Between surveys the floors move along with the
claims, so that a claim starts where the last one ended instead of walking over dead rows that a long
transaction elsewhere keeps vacuum from removing. A survey costs that walk, so its frequency follows its cost.
"""

import time
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby, zip_longest

from headrace.database import Database, Row
from headrace.tasks.worker import store
from headrace.tasks.worker.store import Identity

_LANES = 256
_FIRST = (-(2**31), -1)
_AT_LEAST_EVERY_S = 0.05
_SHARE_OF_TIME = 20  # at most a twentieth of the time goes into surveys
_MAX_TURNS = 10_000  # users and precedences whose last lane is remembered


@dataclass(frozen=True, slots=True)
class Room:
    """How many tasks of one pool to claim, and how many of them can start at once."""

    most: int
    startable: int


@dataclass(slots=True)
class Lane:
    """One lane and its floor."""

    pool: str
    precedence: int
    lane_id: int
    user_id: str
    run_at: datetime
    seq: int
    only_once: bool
    due_at: float  # monotonic

    @property
    def turn(self) -> tuple[int, str, str]:
        return self.precedence, self.pool, self.user_id


class Claimer:
    def __init__(
        self,
        db: Database,
        *,
        queues: Sequence[str] | None,
        types: Mapping[str, Sequence[str]],
        labels: dict[str, str],
    ) -> None:
        self._db = db
        self._queues = None if queues is None else list(queues)
        self._types = types
        self._pool_of = {name: pool for pool, names in types.items() for name in names}
        self._surveyed: frozenset[str] = frozenset()
        self._labels = labels
        self._lanes: list[Lane] = []
        self._delayed_due_at: float | None = None  # of the first delayed task, of any worker
        self._stale_at = 0.0
        self._turn = _FIRST
        # The user that was served last, by precedence and pool, and by which lane.
        self._last_user: dict[tuple[int, str], str] = {}
        self._last_lane: OrderedDict[tuple[int, str, str], int] = OrderedDict()
        self._woken = False
        self.exhausted = False  # whether the last claim took everything that could be claimed
        self.held_back: set[str] = set()  # where it left tasks with a single attempt that could not start at once

    def refresh(self) -> None:
        """Something new may be there: survey before the next claim."""
        self._stale_at = 0.0

    def wake(self) -> None:
        """Something has just come: whatever is first, the quickest way."""
        self._woken = True
        self.refresh()

    @property
    def next_due(self) -> float | None:
        """When the first task that is not due yet will be, on the monotonic clock."""
        dues = [lane.due_at for lane in self._lanes]
        if self._delayed_due_at is not None:
            dues.append(self._delayed_due_at)
        return min((due for due in dues if due > time.monotonic()), default=None)

    async def claim(
        self, worker: Identity, rooms: Mapping[str, Room], *, held: AbstractSet[str] = frozenset()
    ) -> list[Row]:
        """Claim for each pool as many as it has room for; of tasks that have a single attempt only as many
        as can start now. Nothing from known lanes of ``held`` users: the owner of a lane is known from the first
        task of it."""
        woken, self._woken = self._woken, False
        # Only after a claim that left nothing behind: where there is a backlog, lanes further on have their turn, too.
        if woken and self.exhausted and not held and (first := await self._claim_first(worker, rooms)):
            self.exhausted = False
            return _once_first(first)
        if time.monotonic() >= self._stale_at or not rooms.keys() <= self._surveyed:
            await self._survey(frozenset(rooms))
        claimed: list[Row] = []
        self.held_back = set()
        left = {pool: room.most for pool, room in rooms.items()}
        startable = {pool: room.startable for pool, room in rooms.items()}
        now = time.monotonic()
        open_lanes = [each for each in self._lanes if each.due_at <= now and each.user_id not in held]
        for _, group in groupby(open_lanes, key=lambda lane: lane.precedence):
            due = list(group)
            for pool in rooms:
                users = self._in_turns([lane for lane in due if lane.pool == pool])
                if users and left[pool] > 0:
                    rows = await self._claim_from(worker, users, left[pool], startable[pool])
                    left[pool] -= len(rows)
                    startable[pool] -= len(rows)
                    claimed += rows
                if pool in self.held_back:  # a task claimed ahead at a lower priority would start before it
                    left[pool] = min(left[pool], startable[pool])
            # Lower priorities come only when the higher ones have nothing left to give.
            if max(left.values()) <= 0:
                break
        counts = Counter(self._pool_of[row["task_type"]] for row in claimed)
        self.exhausted = all(counts[pool] < room.most for pool, room in rooms.items())
        if self.exhausted:
            self.refresh()
        return claimed

    async def _claim_first(self, worker: Identity, rooms: Mapping[str, Room]) -> list[Row]:
        """The first tasks now, in one round trip, for any of the rooms: the query does not distinguish them."""
        return await store.claim_first(
            self._db,
            worker,
            queues=self._queues,
            types=self._types_of(rooms),
            labels=self._labels,
            most=min(room.most for room in rooms.values()),
            startable=min(room.startable for room in rooms.values()),
        )

    def _types_of(self, pools: Iterable[str]) -> list[str]:
        return [name for pool in pools for name in self._types[pool]]

    def _in_turns(self, lanes: list[Lane]) -> list[list[Lane]]:
        """The lanes of each user, from behind the user and the lane that gave last: a worker that takes one at a time
        would never come to the others. A user with many lanes has no more turns than one with a single lane."""
        lanes_of: defaultdict[str, list[Lane]] = defaultdict(list)
        for lane in lanes:
            lanes_of[lane.user_id].append(lane)
        for own in lanes_of.values():
            last = self._last_lane.get(own[0].turn, -1)
            own.sort(key=lambda lane: (lane.lane_id <= last, lane.lane_id))
        last_user = self._last_user.get((lanes[0].precedence, lanes[0].pool), "") if lanes else ""
        return [lanes_of[user_id] for user_id in sorted(lanes_of, key=lambda each: (each <= last_user, each))]

    async def _claim_from(self, worker: Identity, users: list[list[Lane]], most: int, now_startable: int) -> list[Row]:
        share_of = {own[0].user_id: -(-most // len(users) // len(own)) for own in users}
        lanes = [lane for each in zip_longest(*users) for lane in each if lane is not None]
        shares = []
        for lane in lanes:
            share = share_of[lane.user_id]
            shares.append(max(0, min(share, now_startable)) if lane.only_once else share)
            if lane.only_once:
                if shares[-1] < share:
                    self.held_back.add(lane.pool)
                now_startable -= shares[-1]
        if not any(shares):
            return []
        rows = await store.claim(self._db, worker, lanes, shares, most=most)
        known = {lane.lane_id: lane for lane in lanes}
        for row in rows:
            lane = known[row["lane_id"]]
            lane.run_at, lane.seq = max((lane.run_at, lane.seq), (row["run_at"], row["seq"]))
            self._note_turn(lane)
        return _once_first(rows)

    def _note_turn(self, lane: Lane) -> None:
        self._last_user[lane.precedence, lane.pool] = lane.user_id
        self._last_lane[lane.turn] = lane.lane_id
        self._last_lane.move_to_end(lane.turn)
        if len(self._last_lane) > _MAX_TURNS:
            self._last_lane.popitem(last=False)

    async def _survey(self, pools: frozenset[str]) -> None:
        """Survey lanes of these pools only: others, from which nothing can be claimed, may be many."""
        started = time.monotonic()
        self._surveyed = pools
        rows = await self._survey_after(_FIRST)
        if len(rows) == _LANES:
            # More lanes than one survey reads: the next one continues after the last lane, so that each has its turn.
            further = await self._survey_after(max(self._turn, _key(rows[-1])))
            self._turn = _key(further[-1]) if len(further) == _LANES else _FIRST
            rows += further
        unseen = [row["lane_id"] for row in rows if row["task_type"] is None]
        late = await store.lane_facts(self._db, unseen) if unseen else {}
        now = time.monotonic()
        self._lanes = []
        for row in rows:
            task_type, user_id = (row["task_type"], row["user_id"]) if row["task_type"] else late[row["lane_id"]]
            self._lanes.append(
                Lane(
                    self._pool_of[task_type],
                    row["precedence"],
                    row["lane_id"],
                    user_id,
                    row["run_at"],
                    row["seq"],
                    row["only_once"],
                    now + max(0.0, row["wait_seconds"]),
                )
            )
        self._stale_at = now + max(_AT_LEAST_EVERY_S, _SHARE_OF_TIME * (now - started))

    async def _survey_after(self, after: tuple[int, int]) -> list[Row]:
        rows = await store.survey(
            self._db,
            queues=self._queues,
            types=self._types_of(self._surveyed),
            labels=self._labels,
            after=after,
            most=_LANES,
        )
        delayed = rows.pop() if rows and rows[-1]["lane_id"] is None else None
        self._delayed_due_at = None if delayed is None else time.monotonic() + delayed["wait_seconds"]
        return rows


def _once_first(rows: list[Row]) -> list[Row]:
    """Those that have a single attempt start before those that were claimed together with them."""
    return sorted(rows, key=lambda row: row["max_attempts"] > 1)


def _key(row: Row) -> tuple[int, int]:
    return row["precedence"], row["lane_id"]
