"""Verifies the trail: recomputes every seal from its events, and reports the first inconsistency."""

import asyncio
from collections import deque
from collections.abc import (
    AsyncGenerator,
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
from typing import Any

from headrace.audit import merkle, seals
from headrace.audit.findings import Finding, Flaw, FlawFound, compare, fits, verify_rows
from headrace.audit.heads import HeadCheck, KeptHeads
from headrace.audit.sealing import LAST_DRAWN_NUMBER
from headrace.audit.seals import LEAF, NOTHING_BEFORE, Leaves, Seal
from headrace.audit.signing import is_signed
from headrace.database import Database
from headrace.errors import NotFound

_WINDOW = 32  # seals read by one query
_NUMBERS = 1_000_000  # numbers that one query searches for duplicates
_LANES = 4  # concurrent queries: a server uses a core for each

Report = Callable[[int, int], None]
"""(events done, events in all)"""

Archive = Callable[[date], AsyncGenerator[Mapping[str, Any], None]]
"""The archived rows of a month by ``seq``; jsonb columns as their text. Closed at the first inconsistent row."""

Retired = Callable[[], Awaitable[Collection[date]]]
"""The months that are no longer in the trail, as of now."""


async def _none() -> Collection[date]:
    return ()


@dataclass(frozen=True, slots=True)
class Verified:
    """Counts of a verification. ``unsealed`` events are too new to have a seal."""

    seals: int
    events: int
    unsealed: int
    signed_up_to: int
    not_looked_at: Sequence[date]
    heads: int = 0  # kept outside the database, and compared
    numbers_without_event: int = 0  # drawn after the last event, and not (or no longer) used
    finding: Finding | None = None


@dataclass(frozen=True, slots=True)
class VerifyMode:
    """Evidence from elsewhere: trusted keys, exported seals, kept heads, retired months."""

    keys: Collection[bytes] = ()
    exported: Mapping[int, bytes] = field(default_factory=dict)  # number → chain
    retired: Retired = _none  # called again after an inconsistency: a month may be retired meanwhile
    archive: Archive | None = None
    heads: KeptHeads | None = None


async def verify(
    db: Database, *, month: date | None = None, against: VerifyMode | None = None, report: Report = lambda *_: None
) -> Verified:
    """Recompute every seal (of one month, if given; the whole chain is always checked)."""
    return await _Verification(db, month, against or VerifyMode(), report).run()


class _Verification:
    def __init__(self, db: Database, month: date | None, against: VerifyMode, report: Report) -> None:
        self._db = db
        self._month = month
        self._against = against
        self._report = report
        self._done = 0
        self._total = 0
        self._seals = 0
        self._last: Seal | None = None
        self._signed_up_to = 0
        self._months: dict[date, int] = {}  # with the last sealed number of each
        self._seals_of: dict[date, list[Seal]] = {}  # seals whose events are verified
        self._retired: Collection[date] = ()
        self._heads = HeadCheck(against.heads, frozenset(against.keys))

    async def run(self) -> Verified:
        self._retired = await self._against.retired()
        await self._heads.load()
        async with self._db.transaction(readonly=True) as tx:
            last_drawn_number = await tx.fetchval(LAST_DRAWN_NUMBER) or 0
            self._total = await tx.fetchval(SEALED_EVENTS, self._month)
        finding = None
        try:
            await self._check_seals()
            await self._check_end(last_drawn_number)
            await self._check_archives()
            await self._find_added()
            if self._month is None:
                await self._find_repeated(last_drawn_number)
        except FlawFound as found:
            finding = found.finding
        async with self._db.transaction(readonly=True) as tx:
            unsealed = await tx.fetchval(UNSEALED, self._sealed_up_to)
            last = max(self._sealed_up_to, await tx.fetchval(LAST_NUMBER))
        looked_at_nowhere = [] if self._against.archive else sorted(self._offline())
        return Verified(
            *(self._seals, self._done, unsealed, self._signed_up_to, looked_at_nowhere),
            heads=self._heads.count,
            numbers_without_event=max(0, last_drawn_number - last),
            finding=finding,
        )

    async def _check_seals(self) -> None:
        """Check seals in order; events are read ahead, several windows at a time."""
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
            if seal.month not in self._retired and not fits(seal, merkle.split(found[seal.number])):
                finding = await self._name(seal)
                if not await self._was_retired(seal.month):
                    raise FlawFound(finding)
            self._seals_of.setdefault(seal.month, []).append(seal)
            if seal.month not in self._retired:
                self._done += seal.events
        self._report(self._done, self._total)

    async def _was_retired(self, month: date) -> bool:
        """Whether the month was retired since the start: it is then verified in its archive."""
        before, self._retired = self._retired, await self._against.retired()
        left = [seal for of, found in self._seals_of.items() if of in self._retired for seal in found]
        self._done -= sum(seal.events for seal in left if seal.month not in before)
        return month in self._retired

    def _check_chain(self, seal: Seal) -> None:
        last = self._last
        if seal.number != (last.number + 1 if last else 1):
            raise FlawFound(Finding(Flaw.SEAL, f"Seal {seal.number - 1} is missing.", seal=seal.number - 1))
        if seal.chain != seal.expected_chain():
            raise FlawFound(Finding(Flaw.SEAL, f"Seal {seal.number} was changed.", seal=seal.number))
        if seal.previous != (last.chain if last else NOTHING_BEFORE):
            before = seal.number - 1
            raise FlawFound(
                Finding(Flaw.SEAL, f"Seal {before} was replaced: the next one does not follow it.", seal=before)
            )
        if seal.after_seq != self._months.get(seal.month, 0):
            message = f"Seal {seal.number} leaves out what came before it in its month."
            raise FlawFound(Finding(Flaw.SEAL, message, seal=seal.number))
        if self._against.exported.get(seal.number, seal.chain) != seal.chain:
            raise FlawFound(
                Finding(Flaw.EXPORT, f"Seal {seal.number} differs from the exported one.", seal=seal.number)
            )
        self._check_signature(seal)
        self._heads.compare(seal)
        self._last = seal

    def _check_signature(self, seal: Seal) -> None:
        if seal.signature is None or seal.signed_by is None or not self._against.keys:
            return
        if seal.signed_by not in self._against.keys:
            raise FlawFound(
                Finding(
                    Flaw.SIGNATURE, f"Seal {seal.number} is signed with a key that is not trusted.", seal=seal.number
                )
            )
        if not is_signed(seal.chain, seal.signature, seal.signed_by):
            raise FlawFound(Finding(Flaw.SIGNATURE, f"The signature of seal {seal.number} is wrong.", seal=seal.number))
        self._signed_up_to = seal.number

    def _check_exported(self) -> None:
        """Detect a removed end by exported seals: a shortened trail is consistent in itself."""
        known = max(self._against.exported, default=0)
        if known > (self._last.number if self._last else 0):
            raise FlawFound(Finding(Flaw.EXPORT, f"Seal {known}, which was exported, is missing.", seal=known))

    def _check_signed(self) -> None:
        """Require a signature near the end: one covers all earlier seals, but later ones could be forged."""
        last = self._last.number if self._last else 0
        if self._against.keys and self._signed_up_to < last:
            unsigned = self._signed_up_to + 1
            message = f"No trusted key has signed seal {unsigned} or one after it."
            raise FlawFound(Finding(Flaw.SIGNATURE, message, seal=unsigned))

    async def _check_end(self, last_drawn_number: int) -> None:
        """Detect a removed end by kept heads or by drawn numbers: a shortened trail is consistent in itself."""
        needed = self._last is not None and not self._against.exported
        if finding := await self._heads.conclude(self._last, needed=needed):
            raise FlawFound(finding)
        if self._against.keys and self._last is None and last_drawn_number:
            async with self._db.transaction(readonly=True) as tx:
                empty = await tx.fetchval(LAST_NUMBER) == 0
            if empty:
                message = f"The trail is empty, although numbers up to {last_drawn_number} were drawn for events."
                raise FlawFound(Finding(Flaw.CUT, message))

    async def _name(self, seal: Seal) -> Finding:
        async with self._db.transaction(readonly=True) as tx:
            rows = await tx.fetch(EVENTS, seal.after_seq, seal.last_seq, *bounds(seal.month))
            sealed = await seals.find_leaves(tx, seal.number)
        return compare(seal, sealed, Leaves([row["id"] for row in rows], [row["leaf"] for row in rows]))

    @property
    def _sealed_up_to(self) -> int:
        """The highest sealed number; not the last seal's, because months end at different numbers."""
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
            try:
                async with aclosing(self._against.archive(month)) as rows:
                    finding = await verify_rows(of_month, rows, leaves_of=self._leaves)
            except NotFound as exc:
                finding = Finding(Flaw.MISSING, f"The archive of {month:%Y-%m} is missing: {exc.message}")
            if finding is not None:
                raise FlawFound(finding)
            self._done += sum(seal.events for seal in of_month)
            self._report(self._done, self._total)

    async def _find_added(self) -> None:
        """Find events inserted with an already sealed number, in any month."""
        async with self._db.transaction(readonly=True) as tx:
            await tx.execute(PLAN_FOR_THIS_MONTH)
            # Seals begin at number 1: events below it would never be sealed.
            event_id = await tx.fetchval(BELOW)
            for start, end, after in _unsealed_ranges(self._months):
                if event_id is None and (self._month is None or start <= bounds(self._month)[0] < end):
                    event_id = await tx.fetchval(ADDED, start, end, after, self._sealed_up_to)
        if event_id is not None:
            raise FlawFound(Finding(Flaw.ADDED, f"{event_id} was added after its time was sealed.", event_id=event_id))

    async def _find_repeated(self, last_drawn_number: int) -> None:
        """Find numbers of more than one event. A key prevents it within a month, only the sequence across months."""
        async with self._db.transaction(readonly=True) as tx:
            first = await tx.fetchval(FIRST_NUMBER)
        for after in range(first - 1, max(last_drawn_number, self._sealed_up_to), _NUMBERS):
            async with self._db.transaction(readonly=True) as tx:
                number = await tx.fetchval(REPEATED, after, after + _NUMBERS)
                ids = [row["id"] for row in await tx.fetch(OF_NUMBER, number)] if number is not None else []
            if ids:
                message = f"The number {number} belongs to more than one event: {', '.join(ids)}."
                raise FlawFound(Finding(Flaw.ADDED, message, event_id=ids[-1]))


SEALED_EVENTS = "SELECT coalesce(sum(events), 0) FROM headrace.audit_seals WHERE $1::date IS NULL OR month = $1"
UNSEALED = "SELECT count(*) FROM headrace.audit_events WHERE seq > $1"
# A generic plan does not know that the bounds cover the whole month: it would use another index for every seal, and
# take longer for larger months.
PLAN_FOR_THIS_MONTH = "SET LOCAL plan_cache_mode = force_custom_plan"
# Each seal's leaves as one bytea: a row for each event would cost more than its hash.
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
BELOW = "SELECT id FROM headrace.audit_events WHERE seq <= 0 ORDER BY seq LIMIT 1"
FIRST_NUMBER = "SELECT coalesce(min(seq), 1) FROM headrace.audit_events"
LAST_NUMBER = "SELECT coalesce(max(seq), 0) FROM headrace.audit_events"
REPEATED = """
SELECT seq FROM headrace.audit_events WHERE seq > $1 AND seq <= $2 GROUP BY seq HAVING count(*) > 1 ORDER BY seq LIMIT 1
"""
OF_NUMBER = "SELECT id FROM headrace.audit_events WHERE seq = $1 ORDER BY id LIMIT 5"
ADDED = """
SELECT id FROM headrace.audit_events
WHERE created_at >= $1 AND created_at < $2 AND seq > $3 AND seq <= $4
ORDER BY seq LIMIT 1
"""


def bounds(month: date) -> tuple[datetime, datetime]:
    start = datetime(month.year, month.month, 1, tzinfo=UTC)
    return start, start.replace(year=start.year + start.month // 12, month=start.month % 12 + 1)


def _unsealed_ranges(months: Mapping[date, int]) -> Iterator[tuple[datetime, datetime, int]]:
    """Time ranges that cover all events, each with its last sealed number."""
    at = datetime.min.replace(tzinfo=UTC)
    for month, last in sorted(months.items()):
        start, end = bounds(month)
        if at < start:
            yield at, start, 0
        yield start, end, last
        at = end
    yield at, datetime.max.replace(tzinfo=UTC), 0
