"""Commands' requests to the routes in this process, on the database of the settings: as the operator, and audited."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TypeVar, cast

import asyncpg

from headrace import ids, logs
from headrace.access import Caller, Credentials, Role
from headrace.assembly.deployment import Deployment, database_of
from headrace.assembly.inprocess import AppByNoun, Parts
from headrace.audit import Who
from headrace.cli.output import LOOKING, progress, say
from headrace.cli.requests import EVERYBODY, ActingFor, Api
from headrace.cli.session import operator
from headrace.client.connection import Connection
from headrace.client.retrying import RetryPolicy
from headrace.database import Database, Isolation, Tx
from headrace.edge.services import Services
from headrace.migrations import verify_current
from headrace.settings import Settings, load
from headrace.vault import derive_key

T = TypeVar("T")

_URL = "http://headrace"
_OPERATOR = "operator"
_NO_LIMIT = timedelta(days=1)


class JoinedDatabase(Database):
    """A database whose transactions are one as long as ``together`` is open."""

    _open: Tx | None = None

    @asynccontextmanager
    async def together(self) -> AsyncIterator[None]:
        async with super().transaction() as tx:
            self._open = tx
            try:
                yield
            finally:
                self._open = None

    @asynccontextmanager
    async def transaction(
        self,
        *,
        isolation: Isolation = "read_committed",
        readonly: bool = False,
        opening: str = "",
        defers: bool = False,
    ) -> AsyncIterator[Tx]:
        if self._open is not None:
            if opening:
                await self._begin_within(self._open, opening)
            yield self._open
            return
        async with super().transaction(isolation=isolation, readonly=readonly, opening=opening, defers=defers) as tx:
            yield tx

    @staticmethod
    async def _begin_within(tx: Tx, opening: str) -> None:
        """An opening that is refused leaves the transaction around it usable."""
        await tx.execute("SAVEPOINT opening")
        try:
            await tx.execute(opening)
        except asyncpg.PostgresError:
            await tx.execute("ROLLBACK TO SAVEPOINT opening; RELEASE SAVEPOINT opening")
            raise

    @asynccontextmanager
    async def autocommit(self) -> AsyncIterator[Tx]:
        if self._open is not None:
            yield self._open
            return
        async with super().autocommit() as tx:
            yield tx


@dataclass(frozen=True, slots=True)
class LocalServices(Services):
    """The dependencies of routes here. Cursors do not outlive the process; other keys need the deployment's secret."""

    stored_secret: Callable[[], bytes] = field(kw_only=True, repr=False)

    def key(self, purpose: str) -> bytes:
        return derive_key(self.secret if purpose == "cursor" else self.stored_secret(), purpose)


class LocalApi(Api):
    is_remote = False
    everybody = EVERYBODY

    def __init__(self, connection: Connection, db: JoinedDatabase) -> None:
        super().__init__(connection)
        self._db = db

    @asynccontextmanager
    async def together(self) -> AsyncIterator[None]:
        async with self._db.together():
            yield

    def _identity(self, acting_for: ActingFor | None) -> dict[str, str]:
        return {"Authorization": f"Bearer {acting_for.user_id} {acting_for.role}"} if acting_for else {}


def perform(command: str, act: Callable[[Api], Awaitable[T]]) -> T:
    """Do this on the database of the settings."""
    settings = load()
    logs.configure_later(format=settings.log_format, level=settings.log_level)
    with ExitStack() as stack:
        with progress(LOOKING) as report:
            deployment = stack.enter_context(database_of(settings, role=command, report=report))
        # Requests come one at a time: one connection is enough, and one for what watches beside it.
        alone = replace(deployment, app=replace(deployment.app, pool_min=1, pool_max=2))
        return asyncio.run(_perform(settings, alone, command, act))  # uvloop takes longer to load than it saves


def perform_without_database(command: str, act: Callable[[Api], Awaitable[T]]) -> T:
    """Do this where a route answers from the code alone."""
    return asyncio.run(_perform_without_database(load(), command, act))


async def _perform_without_database(settings: Settings, command: str, act: Callable[[Api], Awaitable[T]]) -> T:
    async with connected(settings, cast("JoinedDatabase", None), operator(command), embedded=False) as api:
        return await act(api)


async def _perform(settings: Settings, deployment: Deployment, command: str, act: Callable[[Api], Awaitable[T]]) -> T:
    await verify_current(deployment.app)
    async with (
        await JoinedDatabase.connect(deployment.app) as db,
        connected(settings, db, operator(command), embedded=deployment.embedded) as api,
    ):
        return await act(api)


@asynccontextmanager
async def connected(settings: Settings, db: JoinedDatabase, who: Who, *, embedded: bool) -> AsyncIterator[LocalApi]:
    logging.getLogger("httpx2").setLevel(logging.WARNING)  # it notes each request
    from headrace.cli.transport import InProcess

    async with Parts(settings, db, embedded=embedded, notify=say) as parts:
        services = LocalServices(
            db=db,
            authenticate=_authenticator(who),
            secret=parts.process_secret,
            stored_secret=parts.stored_secret,
            idempotency_lifetime=settings.idempotency_lifetime,
        )
        transport = InProcess(AppByNoun(parts, services))
        connection = Connection(_URL, _OPERATOR, timeout=_NO_LIMIT, retry=RetryPolicy(retries=0), transport=transport)
        try:
            yield LocalApi(connection, db)
        finally:
            await connection.close()


def _authenticator(who: Who) -> Callable[[Database, Who, Credentials, bool], Awaitable[Caller]]:
    """A person with access to the database is the operator, with the rights of the product itself."""

    async def authenticate(db: Database, anonymous: Who, credentials: Credentials, changes: bool) -> Caller:  # noqa: ARG001
        assert credentials.bearer is not None
        if credentials.bearer == _OPERATOR:
            return Caller(who, ids.SYSTEM_USER, Role.ADMIN)
        user_id, _, role = credentials.bearer.partition(" ")
        return Caller(who, user_id, Role(role))

    return authenticate
