"""Locks over HTTP."""

from datetime import timedelta
from typing import Annotated

from fastapi import Depends, Query, Request, Response

from headrace.access import Caller, Scope
from headrace.database import Tx
from headrace.edge.authorization import Admin, scoped
from headrace.edge.errors import InvalidCursor
from headrace.edge.idempotency import ONCE, Answer, Once, idempotent
from headrace.edge.paging import Page, Paging
from headrace.edge.problem_details import problems
from headrace.edge.routing import Router
from headrace.edge.services import Db
from headrace.edge.vocabulary import AsShown
from headrace.locks import service
from headrace.locks.errors import LockHeld, LockLost, LockNotFound, TooManyLocks
from headrace.locks.model import LONGEST_KEY, LONGEST_NOTE, LockState
from headrace.locks.schemas import AcquireIn, ForceReleaseIn, GrantOut, LockOut, ReleaseIn, RenewLockIn
from headrace.locks.store import Filter
from headrace.locks.taking import when_free

router = Router(prefix="/v1/locks", tags=["Locks"])

Reader = Annotated[Caller, Depends(scoped(Scope.LOCKS_READ))]
Writer = Annotated[Caller, Depends(scoped(Scope.LOCKS_WRITE))]
AcquireOnce = Annotated[Once, Depends(idempotent("locks.acquire", secret=True))]


@router.post(
    "",
    status_code=201,
    response_model=GrantOut,
    summary="Take a lock",
    responses=problems(LockHeld, TooManyLocks, *ONCE),
)
async def acquire_lock(body: AcquireIn, caller: Writer, db: Db, once: AcquireOnce, request: Request) -> Response:
    """Take one of your locks, at once or within `wait_seconds`. Keys are names among your own locks: programs that
    share a lock act for the same user.

    Send an `Idempotency-Key`: if the answer is lost on its way, the same request gets the same token. As long as the
    lock is held by somebody else the same request may be sent again, with the same key; `wait_seconds` may be another.
    Whoever closes the connection waits no longer.
    """

    async def act(tx: Tx) -> Answer:
        grant = await service.acquire_lock(tx, caller, body.key, ttl=body.ttl, holder=body.holder, purpose=body.purpose)
        return Answer(GrantOut.granted(grant), status=201)

    # For how long one waits is not what one asks for.
    asked = body.model_dump_json(exclude={"wait_seconds"}).encode()
    wait = timedelta(seconds=body.wait_seconds)
    return await when_free(lambda: once.run(db, act, body=asked), wait=wait, gave_up=request.is_disconnected)


@router.post("/renew", response_model=LockOut, summary="Renew a lock", responses=problems(LockLost))
async def renew_lock(body: RenewLockIn, caller: Writer, db: Db) -> LockOut:
    """Hold on to a lock for `ttl_seconds` from now. Renew it well before it expires: a third of its time is usual."""
    async with db.transaction() as tx:
        ttl = timedelta(seconds=body.ttl_seconds)
        return LockOut.of(await service.renew_lock(tx, caller, body.key, body.token, ttl=ttl))


@router.post("/release", response_model=LockOut, summary="Release a lock", responses=problems(LockLost))
async def release_lock(body: ReleaseIn, caller: Writer, db: Db) -> LockOut:
    """Let a lock go. If it was lost before, the answer says so: what it guarded may have been done by another, too."""
    async with db.transaction() as tx:
        return LockOut.of(await service.release_lock(tx, caller, body.key, body.token))


@router.post("/force-release", response_model=LockOut, summary="Take a lock away", responses=problems(LockNotFound))
async def force_release_lock(body: ForceReleaseIn, caller: Admin, db: Db) -> LockOut:
    """End somebody's holding of a lock, for administrators. The holder learns it when it renews next; what it does
    until then can be refused by its fence."""
    async with db.transaction() as tx:
        owner = body.user_id or caller.user_id
        return LockOut.of(await service.force_release_lock(tx, caller, body.key, user_id=owner))


@router.get("", response_model=Page[LockOut], summary="List locks", responses=problems(InvalidCursor))
async def list_locks(
    caller: Reader,
    db: Db,
    paging: Paging,
    key: Annotated[str | None, Query(max_length=LONGEST_KEY, description="Exactly this one.")] = None,
    holder: Annotated[str | None, Query(max_length=LONGEST_NOTE, description="Exactly this one.")] = None,
    status: Annotated[
        AsShown[LockState] | None,
        Query(description="`ACTIVE` for what is held now. A lock whose time is over is `EXPIRED`."),
    ] = None,
    user_id: Annotated[
        str | None, Query(max_length=64, description="Whose, for administrators: a user's id, or `*` for everybody's.")
    ] = None,
) -> Page[LockOut]:
    """Who holds and who held your locks, newest first."""
    owner = user_id or caller.user_id
    listing = paging.of("locks", owner=owner, key=key, holder=holder, status=status)
    wanted = Filter(None if owner == service.EVERYBODY else owner, key, holder, status)
    before = int(listing.after[1]) if listing.after else None
    async with db.transaction() as tx:
        rows = await service.list_locks(tx, caller, wanted, before=before, limit=listing.fetch)
    return listing.page(rows, mark=lambda lock: (lock.acquired_at, str(lock.id)), item=LockOut.of)
