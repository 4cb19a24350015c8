"""Reaching, listing and deleting files: each user's own; administrators all, and that is audited."""

from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Protocol

from headrace import audit, outbox
from headrace.access import AdminOnly, Caller
from headrace.assets.config import FileConfig
from headrace.assets.drawing import Drawing
from headrace.assets.errors import AssetNotFound
from headrace.assets.inspection.model import Facts, FileLimits
from headrace.assets.links import Readers
from headrace.assets.model import Asset
from headrace.assets.store import assets as store
from headrace.assets.store.assets import Filter
from headrace.audit import Action, Resource, ResourceType, Who
from headrace.database import Tx
from headrace.edge.open_bodies import OpenBodies
from headrace.outbox import Event
from headrace.sql import Mark
from headrace.storage import Storage
from headrace.walks import Found

EVERYBODY = "*"


class Inspects(Protocol):
    """What looks into files: ``inspection.service.Inspector``."""

    async def inspect(
        self, path: Path, *, limits: FileLimits, tenant: str | None = None, password: str | None = None
    ) -> Facts: ...

    async def preview(
        self, path: Path, facts: Facts, target: Path, *, longest_side: int, tenant: str | None = None
    ) -> None: ...

    async def draw_page(
        self,
        path: Path,
        number: int,
        target: Path,
        *,
        longest_side: int,
        tenant: str | None = None,
        owner: str | None = None,
    ) -> bool: ...

    async def as_pdf(self, path: Path, kind: str, target: Path, *, folder: Path, tenant: str | None = None) -> bool: ...

    async def strip_location(self, path: Path, target: Path, *, tenant: str | None = None) -> bool: ...


# Files that are being sent. A request whose body is a file is at work meanwhile, so that it cannot make way for others.
MAX_FILES_PER_USER, MAX_FILES_PER_ADDRESS = 32, 128


def _open_files() -> OpenBodies:
    return OpenBodies(per_user=MAX_FILES_PER_USER, per_address=MAX_FILES_PER_ADDRESS)


@dataclass(frozen=True, slots=True)
class Files:
    """What the verbs of files work with."""

    storage: Storage
    inspector: Inspects
    config: FileConfig
    scratch: Path  # where bytes lie that are not a file of anybody's yet, unless the storage is a folder
    link_key: bytes = field(repr=False)
    public_url: str = ""
    readers: Readers = field(default_factory=Readers, repr=False, compare=False)
    bodies: OpenBodies = field(default_factory=_open_files, repr=False, compare=False)
    drawing: Drawing = field(default_factory=Drawing, repr=False, compare=False)

    @property
    def spool(self) -> Path:
        """Where uploads are written: beside the files, where moving one in is renaming it."""
        return self.storage.folder.incoming if self.storage.folder is not None else self.scratch


async def get_asset(tx: Tx, caller: Caller, asset_id: str) -> Asset:
    """One file; ``AssetNotFound`` also for another user's. Administrators reach all, which the trail shows."""
    asset = await store.find(tx, asset_id)
    if asset is None or (asset.user_id != caller.user_id and not caller.is_admin):
        raise AssetNotFound
    if asset.user_id != caller.user_id:
        await audit.record(tx, caller.who, Action.READ, resource_of(asset))
    return asset


async def list_assets(tx: Tx, caller: Caller, wanted: Filter, *, older_than: Mark | None, limit: int) -> Found[Asset]:
    """Files, newest first. Only administrators list another user's, or everyone's."""
    if wanted.user_id != caller.user_id:
        if not caller.is_admin:
            raise AdminOnly("Only an administrator may list other people's files.")
        whose = {"user_id": wanted.user_id or EVERYBODY}
        await audit.record(tx, caller.who, Action.READ, Resource(ResourceType.ASSET, EVERYBODY), data=whose)
    return await store.list_assets(tx, wanted, older_than=older_than, limit=limit)


async def delete_asset(tx: Tx, caller: Caller, asset_id: str) -> Asset:
    """Make it unreachable; its bytes go within minutes, when no task and no equal file needs them."""
    deleted = await store.delete(tx, asset_id, user_id=None if caller.is_admin else caller.user_id)
    if deleted is None:
        raise AssetNotFound
    await tell_deleted(tx, caller.who, deleted, reason="deleted")
    return deleted


async def tell_deleted(tx: Tx, who: Who, asset: Asset, *, reason: str) -> None:
    """Into the trail and the outbox. ``reason``: deleted, expired, or lost where its bytes were not found."""
    await audit.record(tx, who, Action.DELETED, resource_of(asset), old=asset, data={"reason": reason})
    await outbox.append(tx, [event_of(asset, "asset.deleted", who, reason=reason)])


async def tell_uploaded(tx: Tx, who: Who, asset: Asset) -> None:
    await audit.record(tx, who, Action.CREATED, resource_of(asset), new=asset)
    await outbox.append(tx, [event_of(asset, "asset.uploaded", who)])


def event_of(asset: Asset, kind: str, who: Who, **more: str) -> Event:
    payload = {
        "asset_id": asset.id,
        "user_id": asset.user_id,
        "name": asset.origin_name,
        "media_type": asset.media_type,
        "mime_type": asset.mime_type,
        "size_bytes": asset.size_bytes,
        "sha256": asset.sha256,
        **more,
    }
    return Event(
        kind, "asset", asset.id, payload, user_id=asset.user_id, trace_id=who.trace_id, request_id=who.request_id
    )


def resource_of(asset: Asset) -> Resource:
    return Resource(ResourceType.ASSET, asset.id, {"name": asset.origin_name, "user_id": asset.user_id})


STREAM_LIFETIME = timedelta(minutes=5)  # without a sign of life; one is given every minute
