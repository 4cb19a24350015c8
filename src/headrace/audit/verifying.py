"""Is the trail what it was? Every seal is recomputed from the events; the first thing that does not fit is named."""

import asyncio
from collections import deque
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from enum import StrEnum
from typing import Any

from headrace.audit import merkle, seals
from headrace.audit.canonical import canonical
from headrace.audit.model import EventId
from headrace.audit.seals import LEAF, NOTHING_BEFORE, Leaves, Seal
from headrace.audit.signing import is_signed
from headrace.database import Database

_WINDOW = 32  # seals that one query reads
_LANES = 4  # queries at once: a server uses a core for each

Report = Callable[[int, int], None]
"""(events done, events in all)"""

Archive = Callable[[date], AsyncGenerator[Mapping[str, Any], None]]
"""The archived rows of a month by ``seq``; jsonb columns as their text. Closed when a row does not fit."""

Retired = Callable[[], Awaitable[Collection[date]]]
"""The months that are not in the trail any more, as of now."""


async def _none() -> Collection[date]:
    return ()


LeavesOf = Callable[[int], Awaitable[Leaves | None]]


class Flaw(StrEnum):
    CHANGED = "changed"
    MISSING = "missing"
    ADDED = "added"
    MOVED = "moved"
    UNNAMED = "unnamed"  # something in this seal, and what would tell is damaged too
    SEAL = "seal"
    SIGNATURE = "signature"
    EXPORT = "export"


@dataclass(frozen=True, slots=True)
class Finding:
    """The first thing that does not fit."""

    flaw: Flaw
    message: str
    seal: int | None = None
    event_id: EventId | None = None


@dataclass(frozen=True, slots=True)
class Verified:
    """What was looked at. ``unsealed`` events are too new to be bound to anything yet."""

    seals: int
    events: int
    unsealed: int
    signed_up_to: int
    not_looked_at: Sequence[date]
    finding: Finding | None = None


@dataclass(frozen=True, slots=True)
class Against:
    """What is known from elsewhere: keys that may have signed, seals that were exported, months that were retired."""

    keys: Collection[bytes] = ()
    exported: Mapping[int, bytes] = field(default_factory=dict)  # number → chain
    retired: Retired = _none  # asked again when something does not fit: a month may leave while we read
    archive: Archive | None = None


class _Found(Exception):
    def __init__(self, finding: Finding) -> None:
        self.finding = finding


async def verify(
    db: Database, *, month: date | None = None, against: Against | None = None, report: Report = lambda *_: None
) -> Verified:
    """Recompute every seal (of one month, if given; the chain is always checked whole)."""
    return await _Verification(db, month, against or Against(), report).run()


async def verify_rows(
    of_month: Sequence[Seal], rows: AsyncIterable[Mapping[str, Any]], *, leaves_of: LeavesOf | None = None
) -> Finding | None:
    """The same for rows from elsewhere, such as an archive: all of one month by ``seq``, and its seals in order.

    With the leaves, where they are still kept, the event that does not fit is named; without, its seal is.
    """
    waiting = deque(of_month)
    ids: list[EventId] = []
    hashes: list[bytes] = []

    async def close() -> Finding | None:
        seal, found = waiting.popleft(), Leaves(ids.copy(), hashes.copy())
        ids.clear()
        hashes.clear()
        if _fits(seal, found.hashes):
            return None
        return _compare(seal, await leaves_of(seal.number) if leaves_of else None, found)

    async for row in rows:
        while waiting and row["seq"] > waiting[0].last_seq:
            if finding := await close():
                return finding
        if not waiting or row["seq"] <= waiting[0].after_seq:
            return Finding(Flaw.ADDED, f"{row['id']} is in no seal.", event_id=row["id"])
        ids.append(row["id"])
        hashes.append(merkle.leaf(canonical(row)))
    while waiting:
        if finding := await close():
            return finding
    return None


class _Verification:
    def __init__(self, db: Database, month: date | None, against: Against, report: Report) -> None:
        self._db = db
        self._month = month
        self._against = against
        self._report = report
        self._done = 0
        self._total = 0
        self._seals = 0
        self._last: Seal | None = None
        self._signed_up_to = 0
        self._months: dict[date, int] = {}  # and the last number that is sealed in each
        self._seals_of: dict[date, list[Seal]] = {}  # those whose events are asked about
        self._retired: Collection[date] = ()

    async def run(self) -> Verified:
        self._retired = await self._against.retired()
        async with self._db.transaction(readonly=True) as tx:
            self._total = await tx.fetchval(SEALED_EVENTS, self._month)
        finding = None
        try:
            await self._check_seals()
            await self._check_archives()
            await self._look_for_added()
        except _Found as found:
            finding = found.finding
        async with self._db.transaction(readonly=True) as tx:
            unsealed = await tx.fetchval(UNSEALED, self._sealed_up_to)
        looked_at_nowhere = [] if self._against.archive else sorted(self._offline())
        return Verified(self._seals, self._done, unsealed, self._signed_up_to, looked_at_nowhere, finding)

    async def _check_seals(self) -> None:
        """Seals in order; their events are read ahead, several windows at a time."""
        lanes = max(1, min(_LANES, self._db.config.pool_max - 1))
        reading: deque[tuple[Sequence[Seal], asyncio.Task[dict[int, bytes]]]] = deque()
        try:
            async for window in self._windows():
                reading.append((window, asyncio.create_task(self._read(self._online(window)))))
                if len(reading) >= lanes:
                    await self._check_window(*reading.popleft())
            while reading:
                await self._check_window(*reading.popleft())
        finally:
            for _, task in reading:
                task.cancel()
            await asyncio.gather(*(task for _, task in reading), return_exceptions=True)
        self._check_exported()
        self._check_signed()

    async def _windows(self) -> AsyncIterator[list[Seal]]:
        number = 0
        while True:
            async with self._db.transaction(readonly=True) as tx:
                window = await seals.list_after(tx, number, limit=_WINDOW)
            if not window:
                return
            yield window
            number = window[-1].number

    def _online(self, window: Sequence[Seal]) -> list[Seal]:
        return [
            seal
            for seal in window
            if seal.month not in self._retired and (self._month is None or seal.month == self._month)
        ]

    async def _read(self, window: Sequence[Seal]) -> dict[int, bytes]:
        found: dict[int, bytes] = {}
        for month in {seal.month for seal in window}:
            of_month = [seal for seal in window if seal.month == month]
            async with self._db.transaction(readonly=True) as tx:
                await tx.execute(PLAN_FOR_THIS_MONTH)
                rows = await tx.fetch(
                    LEAVES,
                    [seal.number for seal in of_month],
                    [seal.after_seq for seal in of_month],
                    [seal.last_seq for seal in of_month],
                    *bounds(month),
                )
            found |= {row["number"]: row["leaves"] or b"" for row in rows}
        return found

    async def _check_window(self, window: Sequence[Seal], reading: "asyncio.Task[dict[int, bytes]]") -> None:
        found = await reading
        for seal in window:
            self._check_chain(seal)
            self._seals += 1
            self._months[seal.month] = max(self._months.get(seal.month, 0), seal.last_seq)
            if self._month not in (None, seal.month):
                continue
            if seal.month not in self._retired and not _fits(seal, merkle.split(found[seal.number])):
                finding = await self._name(seal)
                if not await self._has_left(seal.month):
                    raise _Found(finding)
            self._seals_of.setdefault(seal.month, []).append(seal)
            if seal.month not in self._retired:
                self._done += seal.events
        self._report(self._done, self._total)

    async def _has_left(self, month: date) -> bool:
        """Whether the month has been retired since we began: all of it is then looked for where it went."""
        before, self._retired = self._retired, await self._against.retired()
        left = [seal for of, found in self._seals_of.items() if of in self._retired for seal in found]
        self._done -= sum(seal.events for seal in left if seal.month not in before)
        return month in self._retired

    def _check_chain(self, seal: Seal) -> None:
        last = self._last
        if seal.number != (last.number + 1 if last else 1):
            raise _Found(Finding(Flaw.SEAL, f"Seal {seal.number - 1} is missing.", seal=seal.number - 1))
        if seal.chain != seal.expected_chain():
            raise _Found(Finding(Flaw.SEAL, f"Seal {seal.number} was changed.", seal=seal.number))
        if seal.previous != (last.chain if last else NOTHING_BEFORE):
            before = seal.number - 1
            raise _Found(
                Finding(Flaw.SEAL, f"Seal {before} was replaced: the next one does not follow it.", seal=before)
            )
        if seal.after_seq != self._months.get(seal.month, 0):
            message = f"Seal {seal.number} leaves out what came before it in its month."
            raise _Found(Finding(Flaw.SEAL, message, seal=seal.number))
        if self._against.exported.get(seal.number, seal.chain) != seal.chain:
            raise _Found(
                Finding(Flaw.EXPORT, f"Seal {seal.number} is not the one that was exported.", seal=seal.number)
            )
        self._check_signature(seal)
        self._last = seal

    def _check_signature(self, seal: Seal) -> None:
        if seal.signature is None or seal.signed_by is None or not self._against.keys:
            return
        if seal.signed_by not in self._against.keys:
            raise _Found(
                Finding(
                    Flaw.SIGNATURE, f"Seal {seal.number} is signed with a key that is not trusted.", seal=seal.number
                )
            )
        if not is_signed(seal.chain, seal.signature, seal.signed_by):
            raise _Found(Finding(Flaw.SIGNATURE, f"The signature of seal {seal.number} is wrong.", seal=seal.number))
        self._signed_up_to = seal.number

    def _check_exported(self) -> None:
        """A trail that was cut off at its end is whole in itself; only what was exported before tells."""
        known = max(self._against.exported, default=0)
        if known > (self._last.number if self._last else 0):
            raise _Found(Finding(Flaw.EXPORT, f"Seal {known}, which was exported, is missing.", seal=known))

    def _check_signed(self) -> None:
        """One signature holds for all before it. What comes after the last is whole in itself, and may be made up."""
        last = self._last.number if self._last else 0
        if self._against.keys and self._signed_up_to < last:
            unsigned = self._signed_up_to + 1
            message = f"No trusted key has signed seal {unsigned} or one after it."
            raise _Found(Finding(Flaw.SIGNATURE, message, seal=unsigned))

    async def _name(self, seal: Seal) -> Finding:
        async with self._db.transaction(readonly=True) as tx:
            rows = await tx.fetch(EVENTS, seal.after_seq, seal.last_seq, *bounds(seal.month))
            sealed = await seals.find_leaves(tx, seal.number)
        return _compare(seal, sealed, Leaves([row["id"] for row in rows], [row["leaf"] for row in rows]))

    @property
    def _sealed_up_to(self) -> int:
        """Not the last seal's last number: that may be of a month whose last event came before another's."""
        return max(self._months.values(), default=0)

    async def _leaves(self, number: int) -> Leaves | None:
        async with self._db.transaction(readonly=True) as tx:
            return await seals.find_leaves(tx, number)

    def _offline(self) -> dict[date, list[Seal]]:
        return {month: found for month, found in self._seals_of.items() if month in self._retired}

    async def _check_archives(self) -> None:
        for month, of_month in sorted(self._offline().items()):
            if self._against.archive is None:
                continue
            async with aclosing(self._against.archive(month)) as rows:
                finding = await verify_rows(of_month, rows, leaves_of=self._leaves)
            if finding is not None:
                raise _Found(finding)
            self._done += sum(seal.events for seal in of_month)
            self._report(self._done, self._total)

    async def _look_for_added(self) -> None:
        """Events that took the number of one long sealed, in months or behind seals where nobody would look."""
        if self._last is None:
            return
        async with self._db.transaction(readonly=True) as tx:
            await tx.execute(PLAN_FOR_THIS_MONTH)
            for start, end, after in _unsealed_ranges(self._months):
                if self._month is None or start <= bounds(self._month)[0] < end:
                    event_id = await tx.fetchval(ADDED, start, end, after, self._sealed_up_to)
                    if event_id is not None:
                        raise _Found(
                            Finding(Flaw.ADDED, f"{event_id} was added after its time was sealed.", event_id=event_id)
                        )


SEALED_EVENTS = "SELECT coalesce(sum(events), 0) FROM headrace.audit_seals WHERE $1::date IS NULL OR month = $1"
UNSEALED = "SELECT count(*) FROM headrace.audit_events WHERE seq > $1"
# A plan for whichever month knows that there are bounds, not that they hold all of it: it would look its days up in
# another index, for every seal anew, and take longer the larger the month is.
PLAN_FOR_THIS_MONTH = "SET LOCAL plan_cache_mode = force_custom_plan"
# Each seal's events by their index, in one text of bytes: a row for each event would cost more than its hash.
LEAVES = f"""
SELECT number, leaves
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS seal (number, after_seq, last_seq)
CROSS JOIN LATERAL (
  SELECT string_agg({LEAF}, ''::bytea ORDER BY seq) AS leaves
  FROM headrace.audit_events
  WHERE created_at >= $4 AND created_at < $5 AND seq > after_seq AND seq <= last_seq
) AS found
"""
EVENTS = f"""
SELECT id, {LEAF} AS leaf
FROM headrace.audit_events
WHERE seq > $1 AND seq <= $2 AND created_at >= $3 AND created_at < $4
ORDER BY seq
"""
ADDED = """
SELECT id FROM headrace.audit_events
WHERE created_at >= $1 AND created_at < $2 AND seq > $3 AND seq <= $4
ORDER BY seq LIMIT 1
"""


def bounds(month: date) -> tuple[datetime, datetime]:
    start = datetime(month.year, month.month, 1, tzinfo=UTC)
    return start, start.replace(year=start.year + start.month // 12, month=start.month % 12 + 1)


def _unsealed_ranges(months: Mapping[date, int]) -> Iterator[tuple[datetime, datetime, int]]:
    """All of time in pieces, each with the last number that is sealed in it."""
    at = datetime.min.replace(tzinfo=UTC)
    for month, last in sorted(months.items()):
        start, end = bounds(month)
        if at < start:
            yield at, start, 0
        yield start, end, last
        at = end
    yield at, datetime.max.replace(tzinfo=UTC), 0


def _fits(seal: Seal, hashes: Sequence[bytes]) -> bool:
    return len(hashes) == seal.events and merkle.root(hashes) == seal.root


def _compare(seal: Seal, sealed: Leaves | None, found: Leaves) -> Finding:
    """What happened to the first event that is not as it was sealed."""
    where = f"in seal {seal.number} ({seal.month:%Y-%m})"
    if sealed is None or not _fits(seal, sealed.hashes):
        if sealed is not None and list(sealed.hashes) == list(found.hashes):
            return Finding(Flaw.SEAL, f"The root of seal {seal.number} was replaced.", seal=seal.number)
        message = f"One of the {seal.events} events {where} is not what it was; which one cannot be told any more."
        return Finding(Flaw.UNNAMED, message, seal=seal.number, event_id=found.ids[0] if found.ids else None)
    at = next(
        (at for at, pair in enumerate(zip(sealed.hashes, found.hashes, strict=False)) if pair[0] != pair[1]),
        min(len(sealed.hashes), len(found.hashes)),
    )
    before = sealed.ids[at] if at < len(sealed.ids) else None
    now = found.ids[at] if at < len(found.ids) else None
    if before is not None and before == now:
        return Finding(Flaw.CHANGED, f"{now} {where} was changed.", seal=seal.number, event_id=now)
    if before is not None and before not in found.ids:
        return Finding(Flaw.MISSING, f"{before} {where} is missing.", seal=seal.number, event_id=before)
    if now is not None and now not in sealed.ids:
        return Finding(Flaw.ADDED, f"{now} {where} was added later.", seal=seal.number, event_id=now)
    return Finding(
        Flaw.MOVED, f"{now or before} {where} stands in another place.", seal=seal.number, event_id=now or before
    )
