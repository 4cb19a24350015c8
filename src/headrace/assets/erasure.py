"""What files forget of a user whose account goes: the bytes first, then the names. Ids and sizes stay with the
rows that tasks and the ledger refer to."""

from collections.abc import AsyncGenerator, Callable

from headrace.assets.expiry import let_go
from headrace.assets.model import Kind
from headrace.assets.service import Files
from headrace.assets.store import assets, results, uploads
from headrace.database import Database
from headrace.erasure import NotYet
from headrace.outbox.store import blank_of_user

_BATCH = 500


class ForgetFiles:
    """Files, uploads under way, results and previews, and what steps have kept."""

    name = "files"

    def __init__(self, files: Callable[[], Files]) -> None:
        self._open = files  # the storage is looked at when there is something to remove

    async def erase(self, db: Database, user_id: str) -> AsyncGenerator[int, None]:
        for statement in (uploads.ABORT_OF_USER, assets.DELETE_OF_USER, results.DELETE_OF_USER):
            while True:
                async with db.transaction() as tx:
                    gone = await tx.count(statement, user_id, _BATCH)
                yield gone
                if gone < _BATCH:
                    break
        done = await let_go(self._open(), db, user_id=user_id)
        yield done.purged
        async with db.transaction() as tx:
            left = await tx.fetchval(assets.COUNT_NOT_PURGED, user_id)
            await tx.execute(uploads.DELETE_COMPLETED_OF_USER, user_id)
        if left or done.failed:
            raise NotYet(f"{left or done.failed} files could not be removed from storage yet.")
        storage = self._open().storage
        for name in await storage.list_names(f"{Kind.STEP}/{user_id}/"):
            await storage.delete(name)
            yield 1
        async with db.transaction() as tx:
            blanked = await blank_of_user(tx, user_id)
        yield blanked
        while True:
            async with db.transaction() as tx:
                blanked = await tx.count(assets.BLANK, user_id, _BATCH)
            yield blanked
            if blanked < _BATCH:
                break
