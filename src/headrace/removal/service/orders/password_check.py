"""Whether a password opens the documents of an order, and how many pages they have: before anything is held for it."""

from collections.abc import Sequence
from dataclasses import replace

from headrace.access import Caller
from headrace.assets.errors import AssetNotFound
from headrace.assets.inspection.errors import FileEncrypted
from headrace.assets.model import Asset
from headrace.assets.previews import at_hand
from headrace.assets.service import Files
from headrace.assets.store import assets
from headrace.database import Database
from headrace.removal.service.orders.errors import OrderInvalid, PasswordWrong
from headrace.removal.service.orders.model import Wanted


async def unlock(files: Files, db: Database, caller: Caller, asset_ids: Sequence[str], wanted: Wanted) -> Wanted:
    """The same, with how many pages the password shows. ``PasswordWrong`` if it does not open all that are locked."""
    if wanted.password is None:
        return wanted
    async with db.transaction(readonly=True) as tx:
        found = [await assets.find(tx, each) for each in asset_ids]
    locked: list[Asset] = []
    for asset in found:
        if asset is None or asset.user_id != caller.user_id:
            raise AssetNotFound
        if (asset.meta_json or {}).get("encrypted"):
            locked.append(asset)
    if not locked:
        raise OrderInvalid("None of the files has a password: leave it out.")
    return replace(wanted, unlocked={asset.id: await _pages(files, asset, wanted.password) for asset in locked})


async def _pages(files: Files, asset: Asset, password: str) -> int:
    async with at_hand(files, asset) as path:
        try:
            facts = await files.inspector.inspect(
                path, limits=files.config.limits, tenant=asset.user_id, password=password
            )
        except FileEncrypted:
            raise PasswordWrong(f"The password does not open {asset.origin_name}.") from None
    return facts.pages or 1
