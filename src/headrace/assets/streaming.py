"""A file in one request."""

from collections.abc import AsyncIterator

from fastapi import Response

from headrace.access import Caller
from headrace.assets.errors import UploadNotFound
from headrace.assets.limits import limits_for
from headrace.assets.model import UploadMethod
from headrace.assets.receiving import receive
from headrace.assets.schemas import AssetOut
from headrace.assets.service import STREAM_LIFETIME, Files
from headrace.assets.store import uploads
from headrace.assets.uploading import Arrived, EqualGone, NewUpload, begin, give_up, inspect, place, register, tidy
from headrace.database import Database, Tx
from headrace.edge.idempotency import Answer, Once
from headrace.errors import HeadraceError


async def take(
    files: Files, db: Database, caller: Caller, new: NewUpload, body: AsyncIterator[bytes], once: Once
) -> Response:
    """Receive, inspect, store and register one file. After any failure, nothing of it stays."""
    async with db.transaction() as tx:
        limits = await limits_for(tx, files.config, caller.user_id)
        upload = await begin(tx, files, caller, new, method=UploadMethod.STREAM, limits=limits)

    async def alive() -> None:
        async with db.transaction() as tx:
            if not await uploads.renew(tx, upload.id, STREAM_LIFETIME):
                raise UploadNotFound

    path = files.spool / upload.id
    try:
        stalled_for = files.config.stalled_for
        received = await receive(body, path, most=limits.file.max_bytes, stalled_for=stalled_for, on_alive=alive)
        arrived = await inspect(files, db, upload, received, limits=limits)
        answer = await _register(files, db, caller, arrived, once)
    except BaseException as exc:
        code = exc.code if isinstance(exc, HeadraceError) else "upload_broken"
        await give_up(files, db, upload, code=code)
        raise
    if arrived.asset is None:  # the answer is an earlier one's: this was the same file once more
        await give_up(files, db, upload, code="repeated")
    else:
        await tidy(files, arrived)
    return answer


async def _register(files: Files, db: Database, caller: Caller, arrived: Arrived, once: Once) -> Response:
    # The digest of the request: the bytes themselves, and the requested options.
    upload = arrived.upload
    requested = f"{arrived.received.sha256} {upload.strip_location} {upload.origin_name}".encode()

    async def act(tx: Tx) -> Answer:
        asset = await register(tx, files, caller, arrived)
        return Answer(AssetOut.of(asset), status=201, headers={"Location": f"/v1/assets/{asset.id}"})

    while True:
        await place(files, arrived)
        try:
            return await once.run(db, act, body=requested)
        except EqualGone:
            continue
