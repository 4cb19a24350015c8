"""The password that the first administrator is given: kept in a file of the data folder until it was used."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

from headrace.accounts.administration import FirstAdmin
from headrace.accounts.store import users
from headrace.database import Database, DatabaseConfig
from headrace.embedded_postgres import files
from headrace.loops import repeat

_CHECK_INTERVAL = timedelta(seconds=2)


@dataclass(frozen=True, slots=True)
class FirstPassword:
    """Where it lies. The file holds the username and the password, a line each, for its owner alone."""

    file: Path

    @classmethod
    def within(cls, folder: Path) -> "FirstPassword":
        return cls(folder / "first-password")

    def keep(self, admin: FirstAdmin) -> None:
        """Write the password before the administrator is committed: a crash in between must not lose it."""
        files.write(self.file, f"{admin.user.username}\n{admin.password}\n", durable=True)

    def read(self) -> tuple[str, str] | None:
        """Username and password, unless they were used."""
        lines = files.tail(self.file, lines=2)
        return (lines[0], lines[1]) if len(lines) == 2 else None

    async def forget_if_used(self, db: Database) -> None:
        """Remove it after the first login, or after the password was replaced: then it is no longer needed."""
        if (kept := self.read()) is None:
            return
        async with db.transaction(readonly=True) as tx:
            user = await users.find_by_name(tx, kept[0])
        if user is None or user.last_login_at is not None or user.version > 0:
            self.file.unlink(missing_ok=True)

    @asynccontextmanager
    async def watched(self, config: DatabaseConfig) -> AsyncIterator[None]:
        """Check periodically whether it was used."""
        if not self.file.exists():
            yield
            return
        async with await Database.connect(replace(config.for_role("up"), pool_min=0, pool_max=1)) as db:
            watching = asyncio.create_task(
                repeat(lambda: self.forget_if_used(db), _CHECK_INTERVAL, failed="first_password.not_checked")
            )
            try:
                yield
                await self.forget_if_used(db)  # by a login just now
            finally:
                watching.cancel()
                with suppress(asyncio.CancelledError):
                    await watching
