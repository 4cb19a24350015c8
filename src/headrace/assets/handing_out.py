"""Serving files, previews and results, directly and by links."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta

from headrace import audit, clock
from headrace.access import Caller, Scope
from headrace.assets import links
from headrace.assets.content import OCTETS, Content, download_name
from headrace.assets.errors import LinkInvalid, ResultNotFound
from headrace.assets.links import Grant, Target
from headrace.assets.model import Asset, Result, object_name
from headrace.assets.previews import preview, preview_name
from headrace.assets.results import COMPARISON_MIME_TYPE
from headrace.assets.service import Files, resource_of
from headrace.assets.store import assets, results
from headrace.audit import Action, Resource, ResourceType, Who
from headrace.database import Database, Tx
from headrace.errors import Denied
from headrace.tasks import service as tasks


def content_of(asset: Asset, *, inline: bool = False) -> Content:
    name = download_name(asset.origin_name, asset.mime_type)
    return Content(asset.object_name, asset.size_bytes, asset.mime_type, asset.sha256, name, inline=inline)


def result_content(result: Result, *, inline: bool = False) -> Content:
    mime_type = result.mime_type or OCTETS
    return Content(
        object_name(result.result_bucket, result.result_key),
        result.size_bytes or 0,
        mime_type,
        result.sha256 or result.task_id,
        download_name(result.file_name or result.task_id, mime_type),
        inline=inline,
    )


def result_preview(result: Result) -> Content:
    if result.preview_key is None or result.preview_bucket is None:
        raise ResultNotFound("This result has no preview.")
    return Content(
        object_name(result.preview_bucket, result.preview_key),
        result.preview_size_bytes or 0,
        result.preview_mime_type or "image/webp",
        f"{result.sha256 or result.task_id}-p",
        f"{result.file_name or result.task_id}.preview",
        inline=True,
    )


def result_comparison(result: Result) -> Content:
    if result.comparison_key is None:
        raise ResultNotFound("This result has no comparison: files of its kind cannot be drawn here.")
    return Content(
        preview_name(result.comparison_key),
        result.comparison_size_bytes or 0,
        COMPARISON_MIME_TYPE,
        f"{result.sha256 or result.task_id}-c",
        f"{result.file_name or result.task_id}.comparison.jpg",
        inline=True,
    )


async def get_result(tx: Tx, caller: Caller, task_id: str) -> Result:
    """A task's files; ``TaskNotFound`` for a task that is not the caller's, ``ResultNotFound`` where there are none."""
    await tasks.get_task(tx, caller, task_id)
    result = await results.find(tx, task_id)
    if result is None:
        raise ResultNotFound
    return result


async def link_lifetime(files: Files, wanted: timedelta | None) -> timedelta:
    """How long a link that is made now is valid. Of the bucket's own links none outlives the keys that signed it."""
    lifetime = wanted or files.config.link_lifetime
    if files.config.links != "storage" or files.storage.bucket is None:
        return lifetime
    longest = await files.storage.bucket.max_link_lifetime()
    return lifetime if longest is None else min(lifetime, longest)


def grant(target: Target, row_id: str, *, lifetime: timedelta, inline: bool) -> Grant:
    until = clock.now() + lifetime
    return Grant(target, row_id, until.replace(microsecond=0), inline=inline)


async def url_of(files: Files, content: Content, link: Grant) -> str:
    """The storage's own link where it has one and clients reach it, else ours."""
    if files.config.links == "storage":
        left = link.expires_at - clock.now()
        if (url := await files.storage.link(content.name, expires_in=left, headers=content.headers())) is not None:
            return url
    return f"{files.public_url}/v1/content/{links.seal(files.link_key, link)}"


async def record_link(tx: Tx, who: Who, resource: Resource, link: Grant) -> None:
    """Record in the audit trail who makes a link, and until when it is valid."""
    until = {"expires_at": link.expires_at.isoformat(), "target": link.target.name.lower()}
    await audit.record(tx, who, Action.GRANTED, resource, data=until)


def result_resource(result: Result) -> Resource:
    return Resource(ResourceType.TASK, result.task_id, {"user_id": result.user_id, "file": result.file_name or ""})


def may_read_on(
    db: Database, again: Callable[[], Awaitable[Caller]], target: Target, row_id: str
) -> Callable[[], Awaitable[bool]]:
    """Whether the reader still has access: for long downloads."""
    scope = Scope.TASKS_READ if target.is_of_task else Scope.FILES_READ

    async def ask() -> bool:
        try:
            caller = await again()
        except Denied:
            return False
        owner = await _owner(db, target, row_id)
        return caller.may(scope) and owner is not None and (owner == caller.user_id or caller.is_admin)

    return ask


def is_there(db: Database, target: Target, row_id: str) -> Callable[[], Awaitable[bool]]:
    """Whether it still exists: for readers with a link, which is checked when reading begins."""

    async def ask() -> bool:
        return await _owner(db, target, row_id) is not None

    return ask


async def _owner(db: Database, target: Target, row_id: str) -> str | None:
    async with db.transaction(readonly=True) as tx:
        row = await (results if target.is_of_task else assets).find(tx, row_id)
    return None if row is None else row.user_id


async def redeem(files: Files, db: Database, who: Who, token: str) -> tuple[Grant, Content]:
    """A link's permission and its content; ``LinkInvalid`` for any fault of it.

    A read by another user is in the audit trail, once for each reader of a link and hour.
    """
    link = links.unseal(files.link_key, token)
    reader = (token, who.client_ip or "")
    is_new = files.readers.is_new(reader)
    content = await _redeem(files, db, link, who if is_new else None)
    if is_new:
        files.readers.note(reader)
    return link, content


async def _redeem(files: Files, db: Database, link: Grant, reader: Who | None) -> Content:
    if link.target.is_of_task:
        async with db.transaction() as tx:
            result = await results.find(tx, link.id)
            if result is None:
                raise LinkInvalid
            if reader is not None:
                await audit.record(tx, reader, Action.READ, result_resource(result), data={"by": "link"})
        small = link.target is Target.RESULT_PREVIEW
        return result_preview(result) if small else result_content(result, inline=link.inline)
    async with db.transaction() as tx:
        asset = await assets.find(tx, link.id)
        if asset is None:
            raise LinkInvalid
        if reader is not None:
            await audit.record(tx, reader, Action.READ, resource_of(asset), data={"by": "link"})
    if link.target is Target.PREVIEW:
        return replace(await preview(files, db, asset), inline=link.inline)
    return content_of(asset, inline=link.inline)
