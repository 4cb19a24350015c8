"""Carries deletions out, step by step, and survives the death of any process.

The state is in the database. Any process claims a due deletion, holds it while it renews its lease, and continues where
the last one stopped: each finished step is recorded. An interrupted step runs again on the remaining rows. The end is
one transaction, so it happens once: the user is blanked, event and notification are written, the deletion is completed.
"""

from collections.abc import Sequence
from contextlib import aclosing
from datetime import datetime, timedelta

from headrace import audit, logs, outbox
from headrace.accounts.config import DeletionConfig
from headrace.accounts.deletion.service import account_resource
from headrace.accounts.model import Deletion
from headrace.accounts.store import deletions as store
from headrace.audit import Action, Who
from headrace.database import Database
from headrace.erasure import Eraser, NotYet
from headrace.errors import HeadraceError
from headrace.loops import repeat

log = logs.get(__name__)


class _LeaseLost(Exception):
    """Another process holds the lease now."""


class Deletions:
    """The deletion loop of one process; any number may run."""

    def __init__(self, db: Database, erasers: Sequence[Eraser], config: DeletionConfig) -> None:
        if len({eraser.name for eraser in erasers}) < len(erasers):
            raise ValueError("two steps of a deletion have one name")
        self._db = db
        self._erasers = erasers
        self._config = config

    async def run_once(self, *, now: datetime | None = None) -> bool:
        """Carry one deletion as far as possible; False when none is due."""
        async with self._db.transaction() as tx:
            deletion = await store.claim(tx, lease=self._config.lease, now=now)
        if deletion is None:
            return False
        try:
            await self._carry_out(deletion)
        except NotYet as exc:
            await self._postpone(deletion, self._config.look_again, exc.message)
        except _LeaseLost:
            log.warning("deletion.lease_lost", deletion_id=deletion.id)
        except Exception as exc:  # a failure must not block other deletions
            log.exception("deletion.failed", deletion_id=deletion.id)
            await self._postpone(deletion, self._config.retry_after, _kind_of(exc))
        return True

    async def run(self, every: timedelta) -> None:
        await repeat(self._run_all_due, every, failed="deletions.failed")

    async def _run_all_due(self) -> None:
        while await self.run_once():
            pass

    async def _carry_out(self, deletion: Deletion) -> None:
        for eraser in self._erasers:
            if eraser.name not in deletion.steps_done:
                await self._erase(deletion, eraser)
        await self._complete(deletion)
        log.info("deletion.completed", deletion_id=deletion.id)

    async def _erase(self, deletion: Deletion, eraser: Eraser) -> None:
        gone = 0
        async with aclosing(eraser.erase(self._db, deletion.user_id)) as batches:
            async for batch in batches:
                gone += batch
                async with self._db.transaction() as tx:
                    if not await store.renew(tx, deletion, lease=self._config.lease):
                        raise _LeaseLost
        async with self._db.transaction() as tx:
            if not await store.step_done(tx, deletion, eraser.name, lease=self._config.lease):
                raise _LeaseLost
            facts = {"deletion_id": deletion.id, "step": eraser.name, "removed": str(gone)}
            await audit.record(tx, Who.system(), Action.UPDATED, account_resource(deletion), data=facts)

    async def _complete(self, deletion: Deletion) -> None:
        event = outbox.Event(
            "account.deleted",
            "account",
            deletion.user_id,
            {"user_id": deletion.user_id, "deletion_id": deletion.id, "requested_by": deletion.requested_by},
        )
        async with self._db.transaction() as tx:
            await store.lock_user(tx, deletion.user_id)  # locks the user before the deletion, as undoing does
            if not await store.complete(tx, deletion):
                raise _LeaseLost
            blanked = await store.blank_user(tx, deletion.user_id)
            assert blanked, "a user under deletion stays suspended"
            await outbox.append(tx, [event])
            await store.notify_completed(tx, deletion, event_id=event.id)
            facts = {"deletion_id": deletion.id}
            await audit.record(tx, Who.system(), Action.DELETED, account_resource(deletion), data=facts)

    async def _postpone(self, deletion: Deletion, delay: timedelta, obstacle: str) -> None:
        log.info("deletion.postponed", deletion_id=deletion.id, obstacle=obstacle)
        async with self._db.transaction() as tx:
            await store.postpone(tx, deletion, delay=delay, obstacle=obstacle)


def _kind_of(exc: Exception) -> str:
    # Without the message, which may quote data to be erased.
    return exc.code if isinstance(exc, HeadraceError) else type(exc).__name__
