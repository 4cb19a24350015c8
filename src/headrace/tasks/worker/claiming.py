"""Where to take tasks from next: highest priority first, users in turns, each lane in the order of submission.

A survey finds the lanes that have work and the first row of each. Between surveys the floors move along with what was
claimed, so that a claim starts where the last one ended instead of walking over rows that are gone but that a long
transaction elsewhere keeps vacuum from removing. A survey costs that walk, so it is made as often as it is cheap.
"""

import time
from collections import OrderedDict, defaultdict
from collections.abc import Sequence
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


@dataclass(slots=True)
class Lane:
    """One lane and its floor."""

    precedence: int
    lane_id: int
    user_id: str
    run_at: datetime
    seq: int
    only_once: bool
    due_at: float  # monotonic


class Claimer:
    def __init__(
        self, db: Database, *, queues: Sequence[str] | None, types: Sequence[str], labels: dict[str, str]
    ) -> None:
        self._db = db
        self._queues = None if queues is None else list(queues)
        self._types = list(types)
        self._labels = labels
        self._lanes: list[Lane] = []
        self._delayed_due_at: float | None = None  # of the first delayed task, of any worker
        self._stale_at = 0.0
        self._turn = _FIRST
        self._last_user: dict[int, str] = {}  # who was served last, by precedence
        self._last_lane: OrderedDict[tuple[int, str], int] = OrderedDict()  # by precedence and user
        self._woken = False
        self.exhausted = False  # whether the last claim left nothing behind that could be claimed now
        self.held_back = False  # whether it left what may be tried only once, and could not have started at once

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

    async def claim(self, worker: Identity, *, most: int, now_startable: int) -> list[Row]:
        """Claim up to ``most``; of tasks that have a single attempt only as many as can start now."""
        woken, self._woken = self._woken, False
        # Only after a claim that left nothing behind: where there is a backlog, lanes further on have their turn, too.
        if woken and self.exhausted:
            first = await store.claim_first(
                self._db,
                worker,
                queues=self._queues,
                types=self._types,
                labels=self._labels,
                most=most,
                startable=now_startable,
            )
            if first:
                self.exhausted = False
                return _once_first(first)
        if time.monotonic() >= self._stale_at:
            await self._survey()
        claimed: list[Row] = []
        self.held_back = False
        room = most
        for _, group in groupby(self._lanes, key=lambda lane: lane.precedence):
            users = self._in_turns([lane for lane in group if lane.due_at <= time.monotonic()])
            if users:
                claimed += await self._claim_from(worker, users, room - len(claimed), now_startable - len(claimed))
            if self.held_back:  # what is claimed ahead of a lower priority would start before it
                room = min(room, now_startable)
            # Lower priorities come only when the higher ones have nothing left to give.
            if len(claimed) >= room:
                break
        self.exhausted = len(claimed) < most
        if self.exhausted:
            self.refresh()
        return claimed

    def _in_turns(self, lanes: list[Lane]) -> list[list[Lane]]:
        """The lanes of each user, from behind the user and the lane that gave last: a worker that takes one at a time
        would never come to the others. A user with many lanes has no more turns than one with a single lane."""
        lanes_of: defaultdict[str, list[Lane]] = defaultdict(list)
        for lane in lanes:
            lanes_of[lane.user_id].append(lane)
        for user_id, own in lanes_of.items():
            last = self._last_lane.get((own[0].precedence, user_id), -1)
            own.sort(key=lambda lane: (lane.lane_id <= last, lane.lane_id))
        last_user = self._last_user.get(lanes[0].precedence, "") if lanes else ""
        return [lanes_of[user_id] for user_id in sorted(lanes_of, key=lambda each: (each <= last_user, each))]

    async def _claim_from(
        self, worker: Identity, users: list[list[Lane]], most: int, now_startable: int
    ) -> list[Row]:
        share_of = {own[0].user_id: -(-most // len(users) // len(own)) for own in users}
        lanes = [lane for each in zip_longest(*users) for lane in each if lane is not None]
        shares = []
        for lane in lanes:
            share = share_of[lane.user_id]
            shares.append(max(0, min(share, now_startable)) if lane.only_once else share)
            if lane.only_once:
                self.held_back = self.held_back or shares[-1] < share
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
        turn = lane.precedence, lane.user_id
        self._last_user[lane.precedence] = lane.user_id
        self._last_lane[turn] = lane.lane_id
        self._last_lane.move_to_end(turn)
        if len(self._last_lane) > _MAX_TURNS:
            self._last_lane.popitem(last=False)

    async def _survey(self) -> None:
        started = time.monotonic()
        rows = await self._survey_after(_FIRST)
        if len(rows) == _LANES:
            # More lanes than one look sees: a second one goes on where the last stopped, so that each has its turn.
            further = await self._survey_after(max(self._turn, _key(rows[-1])))
            self._turn = _key(further[-1]) if len(further) == _LANES else _FIRST
            rows += further
        now = time.monotonic()
        self._lanes = [
            Lane(
                row["precedence"],
                row["lane_id"],
                row["user_id"],
                row["run_at"],
                row["seq"],
                row["only_once"],
                now + max(0.0, row["wait_seconds"]),
            )
            for row in rows
        ]
        self._stale_at = now + max(_AT_LEAST_EVERY_S, _SHARE_OF_TIME * (now - started))

    async def _survey_after(self, after: tuple[int, int]) -> list[Row]:
        rows = await store.survey(
            self._db, queues=self._queues, types=self._types, labels=self._labels, after=after, most=_LANES
        )
        delayed = rows.pop() if rows and rows[-1]["lane_id"] is None else None
        self._delayed_due_at = None if delayed is None else time.monotonic() + delayed["wait_seconds"]
        return rows


def _once_first(rows: list[Row]) -> list[Row]:
    """Those that have a single attempt start before those that were claimed together with them."""
    return sorted(rows, key=lambda row: row["max_attempts"] > 1)


def _key(row: Row) -> tuple[int, int]:
    return row["precedence"], row["lane_id"]
