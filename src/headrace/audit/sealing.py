"""Sealing: what has been committed is bound to all before it, within minutes, by whichever process comes first.

Events commit out of order, and a seal must never be surprised by a late one. So a round first notes how far numbers
have been given out, then waits until nobody who may hold one of them is still writing, and only then seals up to the
note. Nobody waits for the sealer: it looks at the locks that writers hold, and takes none of its own.
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
_BATCHES = 20  # in one transaction
_PATIENCE_S = 10.0
_LOOK_EVERY_S = 0.05
_LOCK = 0x61756469_7473656C  # "auditsel"


@dataclass(frozen=True, slots=True)
class Sealed:
    """What a round did. ``waiting`` says that somebody kept on writing: the next round will do it."""

    seals: int = 0
    events: int = 0
    waiting: bool = False


class Sealer:
    """``heads`` is told the last seal after each round: where it is kept, an end that is cut off is missed."""

    def __init__(
        self,
        db: Database,
        key: SigningKey | None = None,
        *,
        heads: KeptHeads | None = None,
        patience: float = _PATIENCE_S,
    ) -> None:
        self._db = db
        self._key = key
        self._heads = heads
        self._patience = patience
        self._kept = 0  # the number of the last head that this process has kept

    async def run_once(self) -> Sealed:
        """Seal what was committed before this call; any number of processes may try, one does it."""
        done = await self._seal_all()
        await self._keep_head()
        return done

    async def _seal_all(self) -> Sealed:
        up_to = await self._given_out()
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
        """Only what is committed; the next round tries again. Whoever sealed, every process keeps it."""
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
        """Seal every so often; an alarm tells of sealing that stands still."""
        await repeat(self._run_once_if_ours, every, failed="audit.sealing_failed")

    async def _run_once_if_ours(self) -> None:
        done = await self.run_once() if await self.may_go_on() else Sealed()
        if done != Sealed():
            log.info("audit.sealed", **asdict(done))

    async def may_go_on(self) -> bool:
        """A trail that is signed is left to whoever can sign: one process without the key would undo what it is for."""
        if self._key is not None:
            return True
        async with self._db.transaction(readonly=True) as tx:
            last = await seals.find_last(tx)
        if last is None or last.signature is None:
            return True
        log.debug("audit.sealing_left_to_signers", seal=last.number)
        return False

    async def _given_out(self) -> int:
        async with self._db.transaction() as tx:
            return await tx.fetchval(GIVEN_OUT) or 0

    async def _writers_gone(self) -> bool:
        """Whether everyone who was writing when this was called has ended, within our patience."""
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
            await asyncio.sleep(_LOOK_EVERY_S)


GIVEN_OUT = "SELECT last_value FROM pg_sequences WHERE schemaname = 'headrace' AND sequencename = 'audit_events_seq'"
# Whoever inserts locks the table before it takes a number, and keeps the lock to its end.
WRITERS = """
SELECT DISTINCT virtualtransaction
FROM pg_locks
WHERE locktype = 'relation' AND mode = 'RowExclusiveLock' AND granted
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND relation IN (SELECT relid FROM pg_partition_tree('headrace.audit_events'))
"""
ONE_AT_A_TIME = "SELECT pg_try_advisory_xact_lock($1)"
# With ties: of events with one number none may be left for later, when that number counts as sealed.
UNSEALED = f"""
SELECT seq, id, date_trunc('month', created_at AT TIME ZONE 'UTC')::date AS month, {LEAF} AS leaf
FROM headrace.audit_events
WHERE seq > $1 AND seq <= $2
ORDER BY seq
FETCH FIRST ($3) ROWS WITH TIES
"""


async def seal_some(tx: Tx, up_to: int, key: SigningKey | None = None, *, now: datetime | None = None) -> Sealed:
    """Seal the oldest of the events up to this number: nothing when another process is at it."""
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
    """Never between equal numbers: a seal is over a range of them, and the second half would have none of its own."""
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
