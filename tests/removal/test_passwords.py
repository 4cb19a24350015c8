"""Documents that are locked: ordered with their password, which is nowhere to be read, and gone with the task. W-05"""

import asyncio
from collections.abc import AsyncIterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pikepdf
import pytest

from benchmarks.document_marks import marked_pdf
from headrace.removal.order import Stage, StageOrder
from tests.removal.stand import RIGHTS, Service, serving

PASSWORD = "correct horse, 水印"


@pytest.fixture
async def service(database_url: str, tmp_path: Path) -> AsyncIterator[Service]:
    async with serving(database_url, tmp_path) as opened:
        yield opened


async def test_a_password_opens_a_document_and_is_forgotten_with_its_task(service: Service, tmp_path: Path) -> None:
    locked = tmp_path / "locked.pdf"
    with pikepdf.open(marked_pdf("words", tmp_path, pages=3)[1]) as pdf:
        pdf.save(locked, encryption=pikepdf.Encryption(owner="other", user=PASSWORD))
    asset_id = await service.upload(locked)
    post = service.world.client.post

    async def refused(path: str, code: str, **more: Any) -> None:
        reply = await post(path, json={"asset_ids": [asset_id], **more})
        assert (reply.status_code, reply.json()["code"]) == (400, code), reply.text
        assert PASSWORD not in reply.text

    await refused("/v1/removals/quote", "document_encrypted")
    await refused("/v1/removals", "document_encrypted", rights=RIGHTS)
    await refused("/v1/removals", "password_wrong", rights=RIGHTS, password="wrong")
    quote = await post("/v1/removals/quote", json={"asset_ids": [asset_id], "password": PASSWORD})
    assert quote.json()["units"] == 3

    kept: list[asyncio.Task[Any]] = []

    def look(order: StageOrder) -> None:
        assert (order.order.password, PASSWORD in repr(order)) == (PASSWORD, False)
        if order.stage is Stage.DETECTING:
            kept.append(asyncio.ensure_future(service.rows("SELECT sealed FROM headrace.removal_passwords")))

    service.remover.before = look
    removal = await service.clean(asset_id, password=PASSWORD)
    assert (removal["status"], removal["units"]) == ("SUCCEEDED", 3), removal
    assert await service.ledger(removal["id"]) == [("HELD", 3), ("COMMITTED", 3)]
    (row,) = await kept[0]
    assert PASSWORD not in row["sealed"]
    assert await service.rows("SELECT FROM headrace.removal_passwords") == []
    result = (await service.world.send("GET", f"/v1/tasks/{removal['id']}/result/content")).content
    with pytest.raises(pikepdf.PasswordError):
        pikepdf.open(BytesIO(result))
    with pikepdf.open(BytesIO(result), password=PASSWORD) as pdf:
        assert len(pdf.pages) == 3
    tables = await service.rows(
        "SELECT relname FROM pg_class WHERE relnamespace = 'headrace'::regnamespace AND relkind = 'r'"
    )
    for (table,) in tables:
        text = await service.rows(f"SELECT FROM headrace.{table} AS it WHERE it::text LIKE $1", f"%{PASSWORD[:12]}%")
        assert text == [], table
    # A failure forgets it, too; a look takes it as an order does.
    seen = (await service.world.send("POST", f"/v1/assets/{asset_id}/detect", {"password": PASSWORD})).json()
    async with asyncio.timeout(60):
        while (ended := (await service.world.send("GET", f"/v1/tasks/{seen['id']}")).json())["status"] != "SUCCEEDED":
            assert ended["status"] != "FAILED", ended
            await asyncio.sleep(0.05)
    assert ended["result"]["outcome"] == "FOUND"
    failed = await service.clean(asset_id, password=PASSWORD, mode="MANUAL", candidates=[99])
    assert (failed["status"], failed["error_code"]) == ("FAILED", "NO_CANDIDATE")
    assert await service.rows("SELECT FROM headrace.removal_passwords") == []
    # So does whoever ends it without knowing of passwords: a program that was started before there were any.
    service.worker_stop.set()
    waiting = (await service.order(asset_id, password=PASSWORD))["items"][0]["id"]
    async with service.db.transaction() as tx:
        assert len(await tx.fetch("SELECT FROM headrace.removal_passwords")) == 1
        await tx.execute("UPDATE headrace.tasks SET status = 'CANCELED', finished_at = now() WHERE id = $1", waiting)
        assert await tx.fetch("SELECT FROM headrace.removal_passwords") == []
