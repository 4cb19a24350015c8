"""Archives and months over HTTP, for administrators."""

from typing import Annotated

from fastapi import Path, Query

from headrace.archive import archives, partitions, store
from headrace.archive.errors import ArchiveNotFound
from headrace.archive.model import ArchiveState
from headrace.archive.schemas import ARCHIVE_ID, ArchiveOut, MadeOut, PartitionOut
from headrace.edge.authorization import Admin
from headrace.edge.errors import InvalidCursor
from headrace.edge.paging import Page, Paging
from headrace.edge.problem_details import problems
from headrace.edge.routing import Router
from headrace.edge.services import Db

router = Router(prefix="/v1/admin", tags=["Operations"])


@router.get("/archives", response_model=Page[ArchiveOut], summary="List archives", responses=problems(InvalidCursor))
async def list_archives(
    caller: Admin,  # noqa: ARG001 - asked for to be let in
    db: Db,
    paging: Paging,
    table: Annotated[str | None, Query(max_length=63, examples=["audit_events"])] = None,
    status: ArchiveState | None = None,
) -> Page[ArchiveOut]:
    """Months that have left their table, the last to leave first: their places, contents and hashes."""
    listing = paging.of("archives", table=table, status=status)
    async with db.transaction(readonly=True) as tx:
        archives = await store.list_archives(
            tx, table=table, states=[status] if status else None, older_than=listing.after, limit=listing.fetch
        )
    return listing.page(archives, mark=lambda archive: (archive.detached_at, archive.id), item=ArchiveOut.of)


@router.get(
    "/archives/{archive_id}",
    response_model=ArchiveOut,
    summary="Read an archive's summary",
    responses=problems(ArchiveNotFound),
)
async def get_archive(
    archive_id: Annotated[str, Path(max_length=128, examples=[ARCHIVE_ID])],
    caller: Admin,  # noqa: ARG001 - asked for to be let in
    db: Db,
) -> ArchiveOut:
    """One archive, by its id or by its month's name."""
    async with db.transaction(readonly=True) as tx:
        return ArchiveOut.of(await archives.get_archive(tx, archive_id))


@router.get("/partitions", response_model=Page[PartitionOut], summary="List partitions")
async def list_partitions(caller: Admin, db: Db) -> Page[PartitionOut]:  # noqa: ARG001 - asked for to be let in
    """Every month of every table that is kept by months, with its size."""
    async with db.transaction(readonly=True) as tx:
        return Page(items=[PartitionOut.of(partition) for partition in await store.list_partitions(tx)])


@router.post("/partitions", response_model=MadeOut, summary="Make the months ahead")
async def make_months_ahead(caller: Admin, db: Db) -> MadeOut:
    """Make the months that are missing, from this one to three ahead. Running processes do so by themselves, too."""
    made = await partitions.make_months_ahead(db, caller.who)
    return MadeOut(made=list(made.partitions), problems=list(made.problems))
