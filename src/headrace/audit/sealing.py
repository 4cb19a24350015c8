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
from headrace.audit.seals import LEAF, NOTHING_BEFORE, Seal
from headrace.audit.signing import SigningKey
from headrace.database import Database, Row, Tx
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
    def __init__(self, db: Database, key: SigningKey | None = None, *, patience: float = _PATIENCE_S) -> None:
        self._db = db
        self._key = key
        self._patience = patience

    async def run_once(self) -> Sealed:
        """Seal what was committed before this call; any number of processes may try, one does it."""
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
UNSEALED = f"""
SELECT seq, id, date_trunc('month', created_at AT TIME ZONE 'UTC')::date AS month, {LEAF} AS leaf
FROM headrace.audit_events
WHERE seq > $1 AND seq <= $2
ORDER BY seq
LIMIT $3
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
        for first in range(0, len(of_month), BATCH):
            yield month, of_month[first : first + BATCH]


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
