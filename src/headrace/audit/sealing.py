"""Sealing: committed events are chained to all earlier ones within minutes, by any process.

Events commit out of order, and none may commit below an existing seal. So a round first reads the last drawn sequence
number, then waits for the transactions that may hold one of these numbers, and only then seals up to it. The sealer
blocks no writer: it reads their locks in pg_locks, and takes none of its own.
"""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date, datetime, timedelta

from headrace import logs
from headrace.audit import merkle, seals
from headrace.audit.heads import KeptHeads
from headrace.audit.seals import LEAF, NOTHING_BEFORE, Seal
from headrace.audit.signing import SigningKey
from headrace.database import Database, Row, Tx
from headrace.errors import HeadraceError
from headrace.loops import repeat

log = logs.get(__name__)

BATCH = 1024
_BATCHES = 20  # batches in one transaction
_MAX_WAIT_S = 10.0
_POLL_INTERVAL_S = 0.05
_LOCK = 0x61756469_7473656C  # "auditsel"


@dataclass(frozen=True, slots=True)
class Sealed:
    """The result of a round. ``waiting``: a writer did not end in time, so the next round continues."""

    seals: int = 0
    events: int = 0
    waiting: bool = False


class Sealer:
    """``heads`` stores the last seal after each round, so that a removed end of the trail is detected."""

    def __init__(
        self,
        db: Database,
        key: SigningKey | None = None,
        *,
        heads: KeptHeads | None = None,
        patience: float = _MAX_WAIT_S,
    ) -> None:
        self._db = db
        self._key = key
        self._heads = heads
        self._patience = patience
        self._kept = 0  # the number of the last head that this process stored

    async def run_once(self) -> Sealed:
        """Seal events committed before this call; of several processes one does it."""
        done = await self._seal_all()
        await self._keep_head()
        return done

    async def _seal_all(self) -> Sealed:
        up_to = await self._last_drawn_number()
        if not await self._writers_gone():
            return Sealed(waiting=True)
        total = Sealed()
        while True:
            async with self._db.transaction() as tx:
                done = await seal_some(tx, up_to, self._key)
            total = Sealed(total.seals + done.seals, total.events + done.events)
            if done.events < BATCH * _BATCHES:
                return total

    async def _keep_head(self) -> None:
        """Store the last committed seal; the next round retries. Every process stores it, whichever sealed."""
        if self._heads is None:
            return
        async with self._db.transaction(readonly=True) as tx:
            last = await seals.find_last(tx)
        if last is None or last.number <= self._kept:
            return
        try:
            await self._heads.keep(last)
        except HeadraceError as exc:
            log.warning("audit.head_not_kept", seal=last.number, error=exc.code, message=exc.operator_message)
        else:
            self._kept = last.number

    async def run(self, every: timedelta) -> None:
        """Seal periodically; an alarm reports stalled sealing."""
        await repeat(self._run_once_if_permitted, every, failed="audit.sealing_failed")

    async def _run_once_if_permitted(self) -> None:
        done = await self.run_once() if await self.may_sign() else Sealed()
        if done != Sealed():
            log.info("audit.sealed", **asdict(done))

    async def may_sign(self) -> bool:
        """Whether this process may seal: a signed trail is sealed only by processes with the key."""
        if self._key is not None:
            return True
        async with self._db.transaction(readonly=True) as tx:
            last = await seals.find_last(tx)
        if last is None or last.signature is None:
            return True
        log.debug("audit.sealing_left_to_signers", seal=last.number)
        return False

    async def _last_drawn_number(self) -> int:
        async with self._db.transaction() as tx:
            return await tx.fetchval(LAST_DRAWN_NUMBER) or 0

    async def _writers_gone(self) -> bool:
        """Whether all transactions that were writing at the call ended within the maximum wait."""
        deadline = asyncio.get_running_loop().time() + self._patience
        open_: set[str] | None = None
        while True:
            rows = await self._db.fetch_alone(WRITERS)
            now = {row["virtualtransaction"] for row in rows}
            open_ = now if open_ is None else open_ & now
            if not open_:
                return True
            if asyncio.get_running_loop().time() >= deadline:
                return False
            await asyncio.sleep(_POLL_INTERVAL_S)


LAST_DRAWN_NUMBER = (
    "SELECT last_value FROM pg_sequences WHERE schemaname = 'headrace' AND sequencename = 'audit_events_seq'"
)
# An insert locks the table before it draws a number, and keeps the lock until its transaction ends.
WRITERS = """
SELECT DISTINCT virtualtransaction
FROM pg_locks
WHERE locktype = 'relation' AND mode = 'RowExclusiveLock' AND granted
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND relation IN (SELECT relid FROM pg_partition_tree('headrace.audit_events'))
"""
ONE_AT_A_TIME = "SELECT pg_try_advisory_xact_lock($1)"
# WITH TIES: events with equal numbers must be sealed together.
UNSEALED = f"""
SELECT seq, id, date_trunc('month', created_at AT TIME ZONE 'UTC')::date AS month, {LEAF} AS leaf
FROM headrace.audit_events
WHERE seq > $1 AND seq <= $2
ORDER BY seq
FETCH FIRST ($3) ROWS WITH TIES
"""


async def seal_some(tx: Tx, up_to: int, key: SigningKey | None = None, *, now: datetime | None = None) -> Sealed:
    """Seal the oldest events up to this number; does nothing while another process seals."""
    if not await tx.fetchval(ONE_AT_A_TIME, _LOCK):
        return Sealed()
    rows = await tx.fetch(UNSEALED, await seals.sealed_up_to(tx), up_to, BATCH * _BATCHES)
    if not rows:
        return Sealed()
    last = await seals.find_last(tx)
    sealed_at = now or await tx.fetchval("SELECT clock_timestamp()")
    made: list[tuple[Seal, bytes, bytes]] = []
    for month, batch in _batches(rows):
        before = made[-1][0] if made else last
        of_month = next((seal.last_seq for seal, _, _ in reversed(made) if seal.month == month), None)
        after_seq = await seals.sealed_up_to(tx, month) if of_month is None else of_month
        seal = _seal(before, month, after_seq, batch, sealed_at, key)
        made.append((seal, seals.pack_ids(row["id"] for row in batch), b"".join(row["leaf"] for row in batch)))
    await seals.insert(tx, made)
    return Sealed(len(made), len(rows))


def _batches(rows: Sequence[Row]) -> Iterator[tuple[date, Sequence[Row]]]:
    months: dict[date, list[Row]] = {}
    for row in rows:
        months.setdefault(row["month"], []).append(row)
    for month, of_month in months.items():
        first = 0
        while first < len(of_month):
            end = _end_of_batch(of_month, first)
            yield month, of_month[first:end]
            first = end


def _end_of_batch(rows: Sequence[Row], first: int) -> int:
    """The end of a batch, never between equal numbers, because a seal covers a range of numbers."""
    end = min(first + BATCH, len(rows))
    while end < len(rows) and rows[end]["seq"] == rows[end - 1]["seq"]:
        end += 1
    return end


def _seal(
    before: Seal | None, month: date, after_seq: int, batch: Sequence[Row], sealed_at: datetime, key: SigningKey | None
) -> Seal:
    unchained = Seal(
        number=before.number + 1 if before else 1,
        month=month,
        after_seq=after_seq,
        last_seq=batch[-1]["seq"],
        events=len(batch),
        root=merkle.root([row["leaf"] for row in batch]),
        previous=before.chain if before else NOTHING_BEFORE,
        sealed_at=sealed_at,
        chain=NOTHING_BEFORE,
    )
    chain = unchained.expected_chain()
    if key is None:
        return replace(unchained, chain=chain)
    return replace(unchained, chain=chain, signed_by=key.public, signature=key.sign(chain))
