"""Removals over HTTP: what they cost, ordering them, and a look beforehand."""

from typing import Annotated, Any

from fastapi import Depends, Path, Query, Request, Response

from headrace.access import AdminOnly, Caller, Scope
from headrace.assets.errors import AssetNotFound
from headrace.assets.results import COMPARISON_MIME_TYPE
from headrace.assets.schemas import AssetOut
from headrace.assets.service import Files
from headrace.database import Tx
from headrace.edge.authorization import scoped
from headrace.edge.errors import InvalidCursor
from headrace.edge.etags import etag
from headrace.edge.idempotency import ONCE, Answer, Once, idempotent
from headrace.edge.paging import Page, Paging
from headrace.edge.problem_details import problems
from headrace.edge.routing import Router
from headrace.edge.services import Db, services_of
from headrace.errors import QuotaExhausted
from headrace.removal.errors import DocumentEncrypted, DocumentSigned
from headrace.removal.service.orders import service, store
from headrace.removal.service.orders.errors import (
    DetectionLimit,
    MediaUnsupported,
    NothingHeldBack,
    OrderInvalid,
    PasswordWrong,
    PreviewLimit,
    RemovalNotFound,
    ReturnLimit,
    ReturnRefused,
)
from headrace.removal.service.orders.free_limits import count_preview
from headrace.removal.service.orders.password_check import unlock
from headrace.removal.service.orders.returning import return_result
from headrace.removal.service.orders.service import EVERYBODY
from headrace.removal.service.passwords import PURPOSE
from headrace.removal.service.schemas import (
    DetectIn,
    NotOrderedOut,
    OrderedRemovalsOut,
    QuoteIn,
    QuoteOut,
    RemovalIn,
    RemovalItemOut,
    RemovalOut,
)
from headrace.storage import ObjectNotFound
from headrace.tasks.errors import OverCap, TooManyOpenTasks
from headrace.tasks.schemas import TaskOut
from headrace.tasks.service import Tasks
from headrace.vault import Vault

Reader = Annotated[Caller, Depends(scoped(Scope.TASKS_READ))]
FileReader = Annotated[Caller, Depends(scoped(Scope.FILES_READ))]
Writer = Annotated[Caller, Depends(scoped(Scope.TASKS_WRITE))]
AssetIdPath = Annotated[str, Path(max_length=64, examples=["ast_01h455vb4pex5vsknk084sn02q"])]
TaskIdPath = Annotated[str, Path(max_length=128, examples=["tsk_01h455vb4pex5vsknk084sn02q"])]
OrderOnce = Annotated[Once, Depends(idempotent("removals.create"))]
DetectOnce = Annotated[Once, Depends(idempotent("assets.detect"))]
_REFUSED = (AssetNotFound, MediaUnsupported, OrderInvalid, DocumentEncrypted, DocumentSigned, PasswordWrong)
_MAX_NEWEST_FILES = 50
_CAPPED = (OverCap, TooManyOpenTasks)
_JPEG: dict[int | str, dict[str, Any]] = {200: {"description": "A picture.", "content": {COMPARISON_MIME_TYPE: {}}}}


async def _tasks(request: Request) -> Tasks:
    tasks = request.state.tasks
    assert isinstance(tasks, Tasks)
    return tasks


async def _files(request: Request) -> Files:
    files = request.state.files
    assert isinstance(files, Files)
    return files


async def _vault(request: Request) -> Vault:
    return Vault(services_of(request).key(PURPOSE))


async def _returns(request: Request) -> int:
    most = request.state.returns
    assert isinstance(most, int)
    return most


ReturnsDep = Annotated[int, Depends(_returns)]
TasksDep = Annotated[Tasks, Depends(_tasks)]
FilesDep = Annotated[Files, Depends(_files)]
VaultDep = Annotated[Vault, Depends(_vault)]
removals = Router(prefix="/removals", tags=["Removals"])
looks = Router(prefix="/assets", tags=["Removals"])


def create_router(tasks: Tasks, files: Files, returns: int) -> Router:
    """Every route of this package, served with these tasks and files; ``returns`` limits returned results."""

    async def give(request: Request) -> None:
        request.state.tasks, request.state.files, request.state.returns = tasks, files, returns

    router = Router(prefix="/v1", dependencies=[Depends(give)])
    router.include(removals, looks)
    return router


@removals.post(
    "",
    status_code=201,
    response_model=OrderedRemovalsOut,
    summary="Order removals",
    responses=problems(*_REFUSED, *_CAPPED, QuotaExhausted, *ONCE),
)
async def order_removals(
    body: RemovalIn, caller: Writer, db: Db, deps: TasksDep, files: FilesDep, vault: VaultDep, once: OrderOnce
) -> Response:
    """Have the marks taken off files that are yours: one removal for each, all of them or none.

    What it costs is held now, and charged only if the mark is gone afterwards. `GET /v1/tasks/{id}` and its events tell
    how far each is, `GET /v1/tasks/{id}/result` has the file. A removal that fails with `NEEDS_REVIEW` has found what
    may be a mark: name it in `candidates` of a `MANUAL` order.
    """
    wanted = await unlock(files, db, caller, body.asset_ids, body.wanted())

    async def act(tx: Tx) -> Answer:
        placed = await service.order(tx, deps, vault, caller, body.asset_ids, wanted, body.rights.rights())
        first = placed[0].task
        headers = {"Location": f"/v1/removals/{first.id}"} if len(placed) == 1 else {}
        return Answer(OrderedRemovalsOut.of(placed), status=201, headers=headers, task_id=first.id)

    return await once.run(db, act)


@removals.post("/quote", response_model=QuoteOut, summary="Ask what removals cost", responses=problems(*_REFUSED))
async def quote_removals(body: QuoteIn, caller: Reader, db: Db, files: FilesDep) -> QuoteOut:
    """What an order of this kind would cost now, and whether that is left. Nothing is held."""
    wanted = await unlock(files, db, caller, body.asset_ids, body.wanted())
    async with db.transaction(readonly=True) as tx:
        return QuoteOut.of(await service.quote(tx, caller, body.asset_ids, wanted))


@removals.get(
    "", response_model=Page[RemovalItemOut], summary="List removals", responses=problems(InvalidCursor, AdminOnly)
)
async def list_removals(
    caller: Reader,
    db: Db,
    paging: Paging,
    batch_id: Annotated[str | None, Query(max_length=64, description="Of one request.")] = None,
    asset_id: Annotated[str | None, Query(max_length=64, description="Of one file.")] = None,
    user_id: Annotated[
        str | None, Query(max_length=64, description="Whose, for administrators: a user's id, or `*` for everybody's.")
    ] = None,
) -> Page[RemovalItemOut]:
    """Your removals, newest first."""
    owner = caller.user_id if user_id is None else None if user_id == EVERYBODY else user_id
    listing = paging.of("removals", owner=owner, batch=batch_id, asset=asset_id)
    async with db.transaction() as tx:
        found = await service.list_removals(
            tx,
            caller,
            user_id=owner,
            batch_id=batch_id,
            asset_id=asset_id,
            older_than=listing.after,
            limit=listing.fetch,
        )
    return listing.page(
        found, mark=lambda each: (each.removal.declared_at, each.removal.task_id), item=RemovalItemOut.of
    )


@removals.get("/not-ordered", response_model=NotOrderedOut, summary="List files that were not ordered")
async def list_not_ordered(caller: FileReader, db: Db) -> NotOrderedOut:
    """Of your last fifty files those that you have uploaded and never ordered a removal for."""
    async with db.transaction(readonly=True) as tx:
        found = await store.list_not_ordered(tx, caller.user_id, newest=_MAX_NEWEST_FILES)
    return NotOrderedOut(items=[AssetOut.of(each) for each in found])


@removals.get("/{task_id}", response_model=RemovalOut, summary="Read a removal", responses=problems(RemovalNotFound))
async def get_removal(
    task_id: TaskIdPath, caller: Reader, db: Db, response: Response, returns: ReturnsDep
) -> RemovalOut:
    """One removal: how far it is, what was found in the file, what it costs, and what was declared."""
    async with db.transaction() as tx:
        found = await service.get_removal(tx, caller, task_id)
    response.headers["ETag"] = etag(found.task.version)
    return RemovalOut.of(found, returns=returns)


@removals.post(
    "/{task_id}/return",
    response_model=RemovalOut,
    summary="Return a result",
    responses=problems(RemovalNotFound, ReturnRefused, ReturnLimit),
)
async def return_removal(task_id: TaskIdPath, caller: Writer, db: Db, returns: ReturnsDep) -> RemovalOut:
    """Return a result that is not good, within 24 hours of its end, and have its units back. The ledger gets a credit.

    Again for one that was returned before, it changes nothing. A result that was accepted with `accept_poor` cannot be
    returned; each user can return a few in 30 days, 3 unless the deployment says otherwise."""
    async with db.transaction() as tx:
        return RemovalOut.of(await return_result(tx, caller, task_id, most=returns), returns=returns)


@removals.get(
    "/{task_id}/held-back",
    summary="See a result that was held back",
    response_class=Response,
    responses={**_JPEG, **problems(RemovalNotFound, NothingHeldBack, PreviewLimit)},
)
async def see_held_back(task_id: TaskIdPath, caller: Reader, db: Db, files: FilesDep) -> Response:
    """What you would get for `accept_poor`, before you pay for it: the whole picture before on the left and after on
    the right, each at half its size and 320 pixels at most, the right one stamped. It exists where `held_back` says
    so, for three removals of one file a day and thirty of one user."""
    async with db.transaction() as tx:
        found = await service.get_removal(tx, caller, task_id)
        if found.held_back is None:
            raise NothingHeldBack
        await count_preview(tx, task_id, found.removal.user_id, found.removal.asset_sha256)
    try:
        picture = await files.storage.read_bytes(found.held_back)
    except ObjectNotFound:
        raise NothingHeldBack from None
    headers = {"Cache-Control": "private, no-cache", "Cross-Origin-Resource-Policy": "same-site"}
    return Response(picture, headers=headers, media_type=COMPARISON_MIME_TYPE)


@looks.post(
    "/{asset_id}/detect",
    status_code=202,
    response_model=TaskOut,
    summary="Look for marks in a file",
    responses=problems(*_REFUSED, *_CAPPED, DetectionLimit, *ONCE),
)
async def detect_marks(
    asset_id: AssetIdPath,
    body: DetectIn,
    caller: Writer,
    db: Db,
    deps: TasksDep,
    files: FilesDep,
    vault: VaultDep,
    once: DetectOnce,
) -> Response:
    """Find out what may be a mark before anything is paid. It is a task that costs nothing: when it has succeeded, its
    `result` has the `candidates`, and `outcome` says what `AUTO` would do: `FOUND`, `NEEDS_REVIEW`, `AI_LABEL` or
    `NO_MARK`.
    One file can be looked into twenty times a day."""
    wanted = await unlock(files, db, caller, [asset_id], body.wanted())

    async def act(tx: Tx) -> Answer:
        task = await service.detect(tx, deps, vault, caller, asset_id, wanted)
        headers = {"Location": f"/v1/tasks/{task.id}", "ETag": etag(task.version)}
        return Answer(TaskOut.of(task), status=202, headers=headers, task_id=task.id)

    return await once.run(db, act)
