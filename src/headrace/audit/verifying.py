"""Verifies the trail: recomputes every seal from its events, and reports the first inconsistency."""

import asyncio
import secrets
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

from headrace.audit import merkle, seals, verified_head
from headrace.audit.findings import Finding, Flaw, FlawFound, compare, fits, verify_rows
from headrace.audit.heads import HeadCheck, KeptHeads
from headrace.audit.sealed_events import (
    ADDED,
    BELOW,
    EVENTS,
    FIRST_NUMBER,
    LAST_NUMBER,
    LEAVES,
    OF_NUMBER,
    PLAN_FOR_THIS_MONTH,
    REPEATED,
    SEALED_EVENTS,
    UNSEALED,
    bounds,
    unsealed_ranges,
)
from headrace.audit.sealing import LAST_DRAWN_NUMBER
from headrace.audit.seals import NOTHING_BEFORE, Leaves, Seal
from headrace.audit.signing import is_signed
from headrace.audit.verified_head import VerifiedHead
from headrace.database import Database
from headrace.errors import NotFound

_WINDOW = 32  # seals read by one query
_NUMBERS = 1_000_000  # numbers that one query searches for duplicates
SAMPLE = 32  # seals before the verified head that a continued verification recomputes
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
    continued_from: int = 0  # the seal where an earlier verification ended
    sampled: int = 0  # earlier seals that were recomputed as well
    whole_at: datetime | None = None  # when the trail was last verified from its beginning


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
    return await Verification(db, month, against or VerifyMode(), report).run()


class Verification:
    """One run; ``verify`` and ``headrace.audit.continuing`` begin it."""

    def __init__(
        self,
        db: Database,
        month: date | None,
        against: VerifyMode,
        report: Report,
        since: VerifiedHead | None = None,
    ) -> None:
        self._db = db
        self._since = since
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
        self._sampled = 0

    async def run(self) -> Verified:
        self._retired = await self._against.retired()
        async with self._db.transaction(readonly=True) as tx:
            last_drawn_number = await tx.fetchval(LAST_DRAWN_NUMBER) or 0
            self._total = await tx.fetchval(SEALED_EVENTS, self._month, self._since.seal if self._since else 0)
        finding = None
        try:
            await self._begin()
            await self._check_seals()
            await self._check_sample()
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
            continued_from=self._since.seal if self._since else 0,
            sampled=self._sampled,
            whole_at=self._since.whole_at if self._since else None,
        )

    async def new_head(self) -> VerifiedHead | None:
        """The head after a verification that found nothing; None while there is no seal."""
        if self._last is None:
            return None
        async with self._db.transaction(readonly=True) as tx:
            now: datetime = await tx.fetchval("SELECT now()")
        return VerifiedHead(
            seal=self._last.number,
            chain=self._last.chain,
            months=self._months,
            signed_up_to=self._signed_up_to,
            last_number=self._sealed_up_to,
            keys=verified_head.digest_of(self._against.keys),
            whole_at=self._since.whole_at if self._since else now,
        )

    async def _begin(self) -> None:
        """Take up the state of the verified head, whose seal must be there as it was."""
        if self._since is None:
            await self._heads.load()
            return
        number = self._since.seal
        async with self._db.transaction(readonly=True) as tx:
            seals_there = await seals.list_numbered(tx, [number])
        if not seals_there:
            message = f"Its end was cut off: seal {number}, up to which the trail was verified before, is missing."
            raise FlawFound(Finding(Flaw.CUT, message, seal=number))
        self._last = seals_there[0]
        if self._last.chain != self._since.chain or self._last.expected_chain() != self._since.chain:
            message = f"Seal {number}, up to which the trail was verified before, was replaced."
            raise FlawFound(Finding(Flaw.SEAL, message, seal=number))
        self._months = dict(self._since.months)
        self._signed_up_to = self._since.signed_up_to
        await self._heads.load(self._last)
        self._heads.compare(self._last)

    async def _check_sample(self) -> None:
        """Recompute some earlier seals, chosen at random."""
        if self._since is None:
            return
        count = min(SAMPLE, self._since.seal)
        numbers = sorted(secrets.SystemRandom().sample(range(1, self._since.seal + 1), count))
        async with self._db.transaction(readonly=True) as tx:
            sample = await seals.list_numbered(tx, numbers)
        if missing := sorted(set(numbers) - {seal.number for seal in sample}):
            raise FlawFound(Finding(Flaw.SEAL, f"Seal {missing[0]} is missing.", seal=missing[0]))
        leaves = await self._read(self._online(sample))
        for seal in sample:
            if seal.chain != seal.expected_chain():
                raise FlawFound(Finding(Flaw.SEAL, f"Seal {seal.number} was changed.", seal=seal.number))
            if seal.month not in self._retired and not fits(seal, merkle.split(leaves[seal.number])):
                finding = await self._name(seal)
                if not await self._was_retired(seal.month):
                    raise FlawFound(finding)
        self._sampled = count

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
        number = self._since.seal if self._since else 0
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
        if self._since is not None and self._last is not None and self._last.number == self._since.seal:
            needed = False  # no seal was added, and the head of the last one was there before
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
            for start, end, after in unsealed_ranges(self._months):
                if event_id is None and (self._month is None or start <= bounds(self._month)[0] < end):
                    event_id = await tx.fetchval(ADDED, start, end, after, self._sealed_up_to)
        if event_id is not None:
            raise FlawFound(Finding(Flaw.ADDED, f"{event_id} was added after its time was sealed.", event_id=event_id))

    async def _find_repeated(self, last_drawn_number: int) -> None:
        """Find numbers of more than one event. A key prevents it within a month, only the sequence across months."""
        if self._since is not None:
            first = self._since.last_number + 1
        else:
            async with self._db.transaction(readonly=True) as tx:
                first = await tx.fetchval(FIRST_NUMBER)
        for after in range(first - 1, max(last_drawn_number, self._sealed_up_to), _NUMBERS):
            async with self._db.transaction(readonly=True) as tx:
                number = await tx.fetchval(REPEATED, after, after + _NUMBERS)
                ids = [row["id"] for row in await tx.fetch(OF_NUMBER, number)] if number is not None else []
            if ids:
                message = f"The number {number} belongs to more than one event: {', '.join(ids)}."
                raise FlawFound(Finding(Flaw.ADDED, message, event_id=ids[-1]))
