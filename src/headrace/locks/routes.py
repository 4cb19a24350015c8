"""Routes of locks."""

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
from headrace.locks.model import MAX_KEY_LENGTH, MAX_NOTE_LENGTH, LockState
from headrace.locks.schemas import AcquireIn, ForceReleaseIn, GrantOut, LockOut, ReleaseIn, RenewLockIn
from headrace.locks.store import Filter
from headrace.locks.taking import retry_while_held

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
    """Take one of your locks, at once or within `wait_seconds`. Keys are per user: programs that
    share a lock act for the same user.

    Send an `Idempotency-Key`: if the answer is lost, the same request gets the same token. While another holder has the
    lock, the same request may be repeated with the same key, also with another `wait_seconds`. Closing the connection
    ends the wait.
    """

    async def act(tx: Tx) -> Answer:
        grant = await service.acquire_lock(tx, caller, body.key, ttl=body.ttl, holder=body.holder, purpose=body.purpose)
        return Answer(GrantOut.granted(grant), status=201)

    # wait_seconds is not part of the request's identity.
    request_body = body.model_dump_json(exclude={"wait_seconds"}).encode()
    wait = timedelta(seconds=body.wait_seconds)
    return await retry_while_held(
        lambda: once.run(db, act, body=request_body), wait=wait, caller_gone=request.is_disconnected
    )


@router.post("/renew", response_model=LockOut, summary="Renew a lock", responses=problems(LockLost))
async def renew_lock(body: RenewLockIn, caller: Writer, db: Db) -> LockOut:
    """Extend a lock to `ttl_seconds` from now. Renew it well before it expires, usually after a third of the TTL."""
    async with db.transaction() as tx:
        ttl = timedelta(seconds=body.ttl_seconds)
        return LockOut.of(await service.renew_lock(tx, caller, body.key, body.token, ttl=ttl))


@router.post("/release", response_model=LockOut, summary="Release a lock", responses=problems(LockLost))
async def release_lock(body: ReleaseIn, caller: Writer, db: Db) -> LockOut:
    """Release a lock. If it was lost before, the answer says so: another holder may have done the guarded work."""
    async with db.transaction() as tx:
        return LockOut.of(await service.release_lock(tx, caller, body.key, body.token))


@router.post("/force-release", response_model=LockOut, summary="Force-release a lock", responses=problems(LockNotFound))
async def force_release_lock(body: ForceReleaseIn, caller: Admin, db: Db) -> LockOut:
    """End another user's holding of a lock, for administrators. The holder notices at its next renewal; until then its
    writes can be refused by the fence."""
    async with db.transaction() as tx:
        owner = body.user_id or caller.user_id
        return LockOut.of(await service.force_release_lock(tx, caller, body.key, user_id=owner))


@router.get("", response_model=Page[LockOut], summary="List locks", responses=problems(InvalidCursor))
async def list_locks(
    caller: Reader,
    db: Db,
    paging: Paging,
    key: Annotated[str | None, Query(max_length=MAX_KEY_LENGTH, description="Exact match.")] = None,
    holder: Annotated[str | None, Query(max_length=MAX_NOTE_LENGTH, description="Exact match.")] = None,
    status: Annotated[
        AsShown[LockState] | None,
        Query(description="`ACTIVE`: held now. `EXPIRED`: not renewed in time."),
    ] = None,
    user_id: Annotated[
        str | None, Query(max_length=64, description="For administrators: the owner's id, or `*` for all users.")
    ] = None,
) -> Page[LockOut]:
    """Present and past holdings of your locks, newest first."""
    owner = user_id or caller.user_id
    listing = paging.of("locks", owner=owner, key=key, holder=holder, status=status)
    wanted = Filter(None if owner == service.EVERY_USER else owner, key, holder, status)
    before = int(listing.after[1]) if listing.after else None
    async with db.transaction() as tx:
        rows = await service.list_locks(tx, caller, wanted, before=before, limit=listing.fetch)
    return listing.page(rows, mark=lambda lock: (lock.acquired_at, str(lock.id)), item=LockOut.of)
