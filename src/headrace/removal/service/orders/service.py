"""Ordering removals: task, hold, declaration, event and trail in the caller's transaction; each for their own files."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headrace import audit, ids
from headrace.access import AdminOnly, Caller
from headrace.assets.errors import AssetNotFound
from headrace.assets.inspection.model import MediaType
from headrace.assets.model import Asset
from headrace.assets.store import assets
from headrace.audit import Action, Resource, ResourceType
from headrace.billing.features import features_of
from headrace.billing.holds import quota_error
from headrace.billing.store.entitlements import get_balance
from headrace.billing.store.ledger import find_charged
from headrace.database import Tx
from headrace.removal.images.shared_mark import MIN_VIEWS
from headrace.removal.order import RemovalOrder
from headrace.removal.service import passwords
from headrace.removal.service.orders import store
from headrace.removal.service.orders.errors import OrderInvalid, RemovalNotFound
from headrace.removal.service.orders.free_limits import count_detection
from headrace.removal.service.orders.model import Priced, Removal, Rights, Wanted
from headrace.removal.service.orders.pricing import price
from headrace.removal.service.task_types import DETECT, removal_types
from headrace.sql import Mark
from headrace.tasks import service as tasks_service
from headrace.tasks.catalog import declare_types
from headrace.tasks.errors import UnknownTaskType
from headrace.tasks.model import Media, Task, TaskSpec
from headrace.tasks.service import Tasks
from headrace.tasks.store import tasks as task_store
from headrace.vault import Vault

EVERYBODY = "*"


@dataclass(frozen=True, slots=True)
class Quote:
    priced: Sequence[Priced]
    left: int

    @property
    def units(self) -> int:
        return sum(each.units for each in self.priced)


@dataclass(frozen=True, slots=True)
class Ordered:
    """An order with its task, and what was found so far."""

    removal: Removal
    task: Task
    detected: Any = None
    held_back: str | None = None  # where a picture of a result is stored that may be taken as it is
    charged: int | None = None  # units; None before the end


async def quote(tx: Tx, caller: Caller, asset_ids: Sequence[str], wanted: Wanted) -> Quote:
    """What this would cost now, and what is left."""
    priced = await _price(tx, caller, asset_ids, wanted)
    return Quote(priced, (await get_balance(tx, caller.user_id)).left)


async def order(
    tx: Tx, tasks: Tasks, vault: Vault, caller: Caller, asset_ids: Sequence[str], wanted: Wanted, rights: Rights
) -> list[Ordered]:
    """Order one removal for each of the files: all of them, or none.

    ``AssetNotFound`` for a file that is not the caller's, also for administrators: rights are declared for one's own.
    ``QuotaExhausted`` if it costs more than is left.
    """
    priced = await _price(tx, caller, asset_ids, wanted)
    await _require_units(tx, caller, sum(each.units for each in priced))
    batch_id = ids.new("bat") if len(priced) > 1 else None
    placed = [await _place(tx, tasks, caller, each, wanted, rights, batch_id) for each in priced]
    for each in placed:
        await _keep_password(tx, vault, each.task, each.removal.asset_id, wanted)
    return placed


async def _require_units(tx: Tx, caller: Caller, needed: int) -> None:
    """Refuse an order as a whole, by what all of it costs; each of its tasks holds its own units afterwards."""
    balance = await get_balance(tx, caller.user_id)
    if needed > balance.left:
        raise quota_error(needed, balance.left, balance.renews_at)


async def _keep_password(tx: Tx, vault: Vault, task: Task, asset_id: str, wanted: Wanted) -> None:
    if wanted.password is not None and asset_id in wanted.unlocked:
        await passwords.keep(tx, vault, task.id, wanted.password)


async def detect(tx: Tx, tasks: Tasks, vault: Vault, caller: Caller, asset_id: str, wanted: Wanted) -> Task:
    """Detect marks in a file: a free task, whose result lists the candidates."""
    asset = await _own(tx, caller, asset_id)
    priced = price(asset, wanted, await features_of(tx, caller.user_id))
    await _know(tx, tasks, DETECT)
    spec = TaskSpec(DETECT, _payload(priced, wanted), title=f"Look for marks in {asset.origin_name}"[:255])
    task = await tasks_service.submit_task(tx, tasks, caller, spec, data={"asset_id": asset.id})
    await count_detection(tx, task.id, caller.user_id, asset.sha256)
    await _keep_password(tx, vault, task, asset.id, wanted)
    return task


async def get_removal(tx: Tx, caller: Caller, task_id: str) -> Ordered:
    removal = await store.find(tx, task_id)
    if removal is None or (removal.user_id != caller.user_id and not caller.is_admin):
        raise RemovalNotFound
    task = await tasks_service.get_task(tx, caller, task_id)
    detected, held_back = await store.find_detected(tx, task_id), await store.find_held_back(tx, task_id)
    charged = None if task.finished_at is None else await find_charged(tx, task_id)
    return Ordered(removal, task, detected, held_back, charged)


async def list_removals(
    tx: Tx,
    caller: Caller,
    *,
    user_id: str | None,
    batch_id: str | None = None,
    asset_id: str | None = None,
    older_than: Mark | None = None,
    limit: int,
) -> list[Ordered]:
    """Orders, newest first. Only administrators list another user's, or all (None)."""
    if user_id != caller.user_id:
        if not caller.is_admin:
            raise AdminOnly("Only an administrator may list other people's removals.")
        whose = {"user_id": user_id or EVERYBODY}
        await audit.record(tx, caller.who, Action.READ, Resource(ResourceType.TASK, EVERYBODY), data=whose)
    found = await store.list_removals(
        tx, user_id=user_id, batch_id=batch_id, asset_id=asset_id, older_than=older_than, limit=limit
    )
    tasks = await task_store.list_named(tx, [each.task_id for each in found])
    return [
        Ordered(each, tasks_service.seen_by(caller, tasks[each.task_id])) for each in found if each.task_id in tasks
    ]


async def _price(tx: Tx, caller: Caller, asset_ids: Sequence[str], wanted: Wanted) -> list[Priced]:
    if len(set(asset_ids)) < len(asset_ids):
        raise OrderInvalid("A file is named twice.")
    if len(asset_ids) > 1 and (wanted.candidates or wanted.mask_asset_id):
        raise OrderInvalid("Candidates and masks are one file's own: order one file at a time.")
    if wanted.mask_asset_id is not None:
        mask = await _own(tx, caller, wanted.mask_asset_id)
        if mask.media_type != MediaType.IMAGE:
            raise OrderInvalid("The mask is not a picture.")
    features = await features_of(tx, caller.user_id)
    priced = [price(await _own(tx, caller, each), wanted, features) for each in asset_ids]
    if wanted.same_mark:
        _require_one_mark(priced)
    return priced


def _require_one_mark(priced: Sequence[Priced]) -> None:
    other = next((each.asset for each in priced if each.asset.media_type != MediaType.IMAGE), None)
    if other is not None:
        raise OrderInvalid(f"Only pictures have a mark in common: {other.origin_name} is none.")
    if len(priced) < MIN_VIEWS:
        raise OrderInvalid(
            f"{MIN_VIEWS} pictures at least tell of the mark that they have in common: there are {len(priced)}."
        )


async def _own(tx: Tx, caller: Caller, asset_id: str) -> Asset:
    asset = await assets.find(tx, asset_id)
    if asset is None or asset.user_id != caller.user_id:
        raise AssetNotFound
    return asset


async def _place(
    tx: Tx, tasks: Tasks, caller: Caller, priced: Priced, wanted: Wanted, rights: Rights, batch_id: str | None
) -> Ordered:
    asset = priced.asset
    await _know(tx, tasks, asset.media_type)
    spec = TaskSpec(
        asset.media_type,
        _payload(priced, wanted, batch_id),
        title=wanted.title or asset.origin_name,
        media=Media(asset.id, wanted.quality, wanted.mode, priced.output_format),
    )
    declared = {"asset_id": asset.id, "sha256": asset.sha256, "rights": str(rights.basis)}
    if wanted.ai_label_reason is not None:
        declared["ai_label_reason"] = wanted.ai_label_reason
    task = await tasks_service.submit_task(tx, tasks, caller, spec, data=declared)
    who = caller.who
    await store.insert(
        tx,
        *(task.id, caller.user_id, asset.id, asset.sha256, priced.units, batch_id, rights.basis, rights.statement),
        *(who.principal.uid, caller.api_key_id, who.client_ip, who.user_agent, who.request_id),
    )
    removal = await store.find(tx, task.id)
    assert removal is not None
    return Ordered(removal, task)


async def _know(tx: Tx, tasks: Tasks, name: str) -> None:
    """Declare the types where no worker has so far: orders wait for one, and `why` says for what."""
    try:
        await tasks.catalog.get(tx, name)
    except UnknownTaskType:
        await declare_types(tx, removal_types())


def _payload(priced: Priced, wanted: Wanted, batch_id: str | None = None) -> dict[str, Any]:
    asset = priced.asset
    frames = (asset.meta_json or {}).get("frames") or 1 if asset.media_type == MediaType.IMAGE else 1
    # What an order does not need is left out: a worker that was started before there was such a thing takes it, too.
    special: dict[str, Any] = {"frames": frames} if frames > 1 else {}
    if wanted.same_mark:
        special["batch_id"] = batch_id
    if wanted.ai_label_reason is not None:
        special["ai_label_reason"] = wanted.ai_label_reason
    return RemovalOrder(
        asset_id=asset.id,
        sha256=asset.sha256,
        format=(asset.meta_json or {})["format"],
        units=priced.units,
        quality=wanted.quality,
        mode=wanted.mode,
        output_format=priced.output_format,
        hints=list(wanted.hints),
        mask_asset_id=wanted.mask_asset_id,
        candidates=list(wanted.candidates),
        pages=list(wanted.pages),
        break_signature=wanted.break_signature,
        accept_poor=wanted.accept_poor,
        **special,
    ).model_dump(mode="json", exclude={"frames", "batch_id", "ai_label_reason"} - special.keys())
