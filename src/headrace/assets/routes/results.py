"""The files that tasks have made."""

from typing import Annotated, Any

from fastapi import Depends, Path, Query, Request, Response
from pydantic import Field

from headrace.access import Caller, Scope
from headrace.assets import handing_out
from headrace.assets.errors import BytesMissing, DrawingBusy, PageNotFound, ResultNotFound
from headrace.assets.inspection.errors import InspectionBusy
from headrace.assets.links import Target
from headrace.assets.pages import serve_page
from headrace.assets.reading import serve
from headrace.assets.routes.dependencies import BINARY, PICTURE, FilesDep, PageNumber
from headrace.assets.schemas import LinkIn, LinkOut, ResultOut
from headrace.assets.zipping import Entry, serve_archive
from headrace.edge.authorization import Again, scoped
from headrace.edge.problem_details import problems
from headrace.edge.routing import Router
from headrace.edge.services import Db
from headrace.storage import StorageUnreachable
from headrace.tasks.errors import TaskNotFound

router = Router(prefix="/tasks/{task_id}/result", tags=["Files"])
compared = Router(prefix="/tasks/{task_id}", tags=["Files"])
archive = Router(prefix="/results", tags=["Files"])

Reader = Annotated[Caller, Depends(scoped(Scope.TASKS_READ))]
TaskIdPath = Annotated[str, Path(max_length=128, examples=["tsk_01h455vb4pex5vsknk084sn02q"])]
_MISSING = (TaskNotFound, ResultNotFound)
_MAX_ARCHIVE_FILES = 100
_ARCHIVE: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "A ZIP file.",
        "content": {"application/zip": {"schema": {"type": "string", "format": "binary"}}},
    }
}


@router.get("", response_model=ResultOut, summary="Read about a task's result file", responses=problems(*_MISSING))
async def get_result(task_id: TaskIdPath, caller: Reader, db: Db) -> ResultOut:
    """The file that a task has made: its size and kind, its metrics, and its expiry."""
    async with db.transaction() as tx:
        return ResultOut.of(await handing_out.get_result(tx, caller, task_id))


@router.get(
    "/content",
    summary="Read a task's result file",
    response_class=Response,
    responses={**BINARY, **problems(*_MISSING, BytesMissing, StorageUnreachable)},
)
async def read_result(
    request: Request,
    task_id: TaskIdPath,
    caller: Reader,
    again: Again,
    db: Db,
    files: FilesDep,
    preview: Annotated[bool, Query(description="The preview instead.")] = False,
    inline: Annotated[bool, Query(description="Let a browser show it; pictures and videos only.")] = False,
) -> Response:
    """The bytes, or one range of them."""
    async with db.transaction() as tx:
        result = await handing_out.get_result(tx, caller, task_id)
    content = handing_out.result_preview(result) if preview else handing_out.result_content(result, inline=inline)
    is_allowed = handing_out.may_read_on(db, again, Target.RESULT, task_id)
    return await serve(request, files.storage, content, is_allowed=is_allowed)


@router.get(
    "/pages/{page}",
    summary="See a page of a task's result file",
    response_class=Response,
    responses={
        **PICTURE,
        **problems(*_MISSING, PageNotFound, BytesMissing, StorageUnreachable, DrawingBusy, InspectionBusy),
    },
)
async def read_result_page(
    request: Request, task_id: TaskIdPath, page: PageNumber, caller: Reader, db: Db, files: FilesDep
) -> Response:
    """One page of a PDF, or one slide, as a WebP picture: as of files."""
    async with db.transaction() as tx:
        result = await handing_out.get_result(tx, caller, task_id)
    return await serve_page(request, files, handing_out.result_content(result), page, slides_key=result.slides_key)


@compared.get(
    "/preview",
    summary="See a small picture of a task's result",
    response_class=Response,
    responses={**BINARY, **problems(*_MISSING, BytesMissing, StorageUnreachable)},
)
async def read_result_preview(
    request: Request, task_id: TaskIdPath, caller: Reader, again: Again, db: Db, files: FilesDep
) -> Response:
    """The preview of the file that the task has made, as WebP."""
    async with db.transaction() as tx:
        result = await handing_out.get_result(tx, caller, task_id)
    is_allowed = handing_out.may_read_on(db, again, Target.RESULT_PREVIEW, task_id)
    return await serve(request, files.storage, handing_out.result_preview(result), is_allowed=is_allowed)


@compared.get(
    "/compare",
    summary="See before and after",
    response_class=Response,
    responses={**BINARY, **problems(*_MISSING, BytesMissing, StorageUnreachable)},
)
async def compare_result(
    request: Request, task_id: TaskIdPath, caller: Reader, again: Again, db: Db, files: FilesDep
) -> Response:
    """The changed part as a JPEG of two halves: before on the left, after on the right. It was made
    with the result. Slides cannot be drawn here, and have none."""
    async with db.transaction() as tx:
        result = await handing_out.get_result(tx, caller, task_id)
    is_allowed = handing_out.may_read_on(db, again, Target.RESULT_PREVIEW, task_id)
    return await serve(request, files.storage, handing_out.result_comparison(result), is_allowed=is_allowed)


@archive.get(
    "/archive",
    summary="Read several tasks' result files as one archive",
    response_class=Response,
    responses={**_ARCHIVE, **problems(*_MISSING, BytesMissing, StorageUnreachable)},
)
async def read_archive(
    request: Request,
    caller: Reader,
    again: Again,
    db: Db,
    files: FilesDep,
    task_id: Annotated[
        list[Annotated[str, Field(max_length=128)]],
        Query(min_length=1, max_length=_MAX_ARCHIVE_FILES, description="Whose results; named once for each."),
    ],
) -> Response:
    """A ZIP file that is written while it is sent. Files of one name get a number. All must be there: where one is
    not, the answer is that of reading it alone."""
    wanted = list(dict.fromkeys(task_id))
    async with db.transaction() as tx:
        results = [await handing_out.get_result(tx, caller, each) for each in wanted]
    entries = [
        Entry(handing_out.result_content(each), handing_out.may_read_on(db, again, Target.RESULT, each.task_id))
        for each in results
    ]
    made_at = max(each.created_at for each in results)
    return await serve_archive(request, files.storage, entries, name="results.zip", made_at=made_at)


@router.post(
    "/links",
    status_code=201,
    response_model=LinkOut,
    summary="Make a link to a task's result file",
    responses=problems(*_MISSING),
)
async def create_result_link(task_id: TaskIdPath, body: LinkIn, caller: Reader, db: Db, files: FilesDep) -> LinkOut:
    """A link that expires and lets its holder read the file."""
    target = Target.RESULT_PREVIEW if body.preview else Target.RESULT
    lifetime = await handing_out.link_lifetime(files, body.lifetime)
    async with db.transaction() as tx:
        result = await handing_out.get_result(tx, caller, task_id)
        content = (
            handing_out.result_preview(result)
            if body.preview
            else handing_out.result_content(result, inline=body.inline)
        )
        link = handing_out.grant(target, task_id, lifetime=lifetime, inline=body.inline)
        await handing_out.record_link(tx, caller.who, handing_out.result_resource(result), link)
    return LinkOut(url=await handing_out.url_of(files, content, link), expires_at=link.expires_at)
