"""How files go: by their time, by their owner, with the account, and what the sweep finds. W-18."""

import asyncio
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from headrace import ids
from headrace.archive.config import RetentionConfig
from headrace.archive.retention import purge_rows
from headrace.assembly.followers import followers
from headrace.assets.erasure import ForgetFiles
from headrace.assets.errors import SweepRefused
from headrace.assets.expiry import let_go
from headrace.assets.results import ResultFiles
from headrace.assets.retention import ASSETS
from headrace.assets.service import Files
from headrace.assets.sweep import sweep
from headrace.database import Database
from headrace.erasure import NotYet
from headrace.storage import Storage, StorageConfig
from headrace.tasks.context import TaskContext
from headrace.tasks.registry import Registry
from headrace.tasks.worker.config import WorkerConfig
from headrace.tasks.worker.loop import Worker
from tests.assets.stand import png
from tests.assets.test_streaming import on_disk, rows

AT_ONCE = timedelta(seconds=-5)  # whatever was stored up to now, and what a clock may be ahead


async def sent(ada: httpx2.AsyncClient, shade: int = 0) -> dict[str, Any]:
    reply = await ada.post("/v1/assets", content=png(shade=shade))
    assert reply.status_code == 201, reply.text
    made: dict[str, Any] = reply.json()
    return made


async def task_on(db: Database, asset: dict[str, Any]) -> str:
    task_id = ids.new("tsk")
    async with db.transaction() as tx:
        await tx.execute(
            "INSERT INTO headrace.tasks "
            "(id, user_id, task_type, title, input_asset_id, quality_level, mode, output_format) "
            "VALUES ($1, $2, 'IMAGE', 't', $3, 'HIGH', 'AUTO', 'png')",
            task_id,
            asset["user_id"],
            asset["id"],
        )
    return task_id


async def test_originals_go_after_their_time_but_not_while_a_task_needs_them(
    ada: httpx2.AsyncClient, files: Files, db: Database
) -> None:  # W-18
    needed, done_with = await sent(ada, 1), await sent(ada, 2)
    await task_on(db, needed)
    later = datetime.now(UTC) + timedelta(days=8)
    assert (await let_go(files, db, now=datetime.now(UTC) + timedelta(days=6))).expired == 0
    gone = await let_go(files, db, now=later)
    assert (gone.expired, gone.purged) == (1, 1)
    assert on_disk(files) == [f"media/{needed['user_id']}/{needed['id']}"]
    assert (await ada.get(f"/v1/assets/{done_with['id']}")).status_code == 404
    events = await db.fetch_alone("SELECT payload_json FROM headrace.outbox_events WHERE event_type = 'asset.deleted'")
    assert [row["payload_json"]["reason"] for row in events] == ["expired"]

    # Deleted by hand, it is out of reach at once; its bytes wait for the task.
    assert (await ada.delete(f"/v1/assets/{needed['id']}")).status_code == 204
    await let_go(files, db)
    assert len(on_disk(files)) == 1
    async with db.transaction() as tx:
        await tx.execute("UPDATE headrace.tasks SET status = 'CANCELED', finished_at = now()")
    assert (await let_go(files, db)).purged == 1
    assert on_disk(files) == []


async def test_the_sweep_takes_what_is_nobodys_and_nothing_else(
    ada: httpx2.AsyncClient, files: Files, db: Database
) -> None:
    kept = await sent(ada)
    begun = (await ada.post("/v1/uploads", json={"name": "x", "size_bytes": 100})).json()
    task_id = await task_on(db, kept)
    user = kept["user_id"]
    alive = [f"result/{user}/{task_id}/1", f"step/{user}/{task_id}/mask", f"media/{user}/{begun['asset_id']}"]
    dead = [f"media/{user}/ast_nobody", f"result/{user}/tsk_nobody/1", f"preview/{user}/ast_gone.webp", "step/a/b/c"]
    for name in (*alive, *dead):
        await files.storage.put_bytes(name, b"bytes")
    assert (await sweep(files, db, older_than=timedelta(hours=1))).orphans == 0  # they are young
    swept = await sweep(files, db, older_than=AT_ONCE)
    assert (swept.orphans, swept.orphan_bytes, swept.missing) == (4, 20, 0)
    assert set(on_disk(files)) == {f"media/{user}/{kept['id']}", *alive}
    # The task is over, and wrote none of it down.
    async with db.transaction() as tx:
        await tx.execute("UPDATE headrace.tasks SET status = 'CANCELED', finished_at = now() - interval '2 days'")
    assert (await sweep(files, db, older_than=AT_ONCE)).orphans == 2


async def test_a_row_without_bytes_does_not_claim_to_be_there(
    ada: httpx2.AsyncClient, files: Files, db: Database
) -> None:
    lost, cut, fine = await sent(ada, 1), await sent(ada, 2), await sent(ada, 3)
    assert files.storage.folder is not None
    files.storage.folder.path(f"media/{lost['user_id']}/{lost['id']}").unlink()
    files.storage.folder.path(f"media/{cut['user_id']}/{cut['id']}").write_bytes(b"half")
    missing = await ada.get(f"/v1/assets/{lost['id']}/content")
    assert (missing.status_code, missing.json()["code"]) == (503, "bytes_missing")
    assert (await sweep(files, db)).missing == 2
    assert [each["id"] for each in (await ada.get("/v1/assets")).json()["items"]] == [fine["id"]]


async def test_a_file_deleted_during_the_check_is_not_lost(
    ada: httpx2.AsyncClient, files: Files, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    deleted, kept = await sent(ada, 1), await sent(ada, 2)
    size_of = files.storage.size_of

    async def delete_first(name: str) -> int:
        if name.endswith(deleted["id"]):
            await ada.delete(f"/v1/assets/{deleted['id']}")
        return await size_of(name)

    monkeypatch.setattr(files.storage, "size_of", delete_first)
    swept = await sweep(files, db)
    assert (swept.checked, swept.missing) == (2, 0)
    assert [each["id"] for each in (await ada.get("/v1/assets")).json()["items"]] == [kept["id"]]


async def test_who_sends_a_lost_file_again_gets_it_back(ada: httpx2.AsyncClient, files: Files, db: Database) -> None:
    lost = await sent(ada, 1)
    assert files.storage.folder is not None
    files.storage.folder.path(f"media/{lost['user_id']}/{lost['id']}").unlink()
    again = await sent(ada, 1)  # as bytes_missing says: equal bytes are not there to be shared
    assert (await ada.get(f"/v1/assets/{again['id']}/content")).content == png(shade=1)
    assert (await sweep(files, db)).missing == 1
    await let_go(files, db)
    assert [each["id"] for each in (await ada.get("/v1/assets")).json()["items"]] == [again["id"]]
    assert (await ada.get(f"/v1/assets/{again['id']}/content")).content == png(shade=1)


async def test_a_deleted_file_frees_its_bytes_at_once(ada: httpx2.AsyncClient, files: Files) -> None:
    """They stayed on the disk until the next run of the retention."""
    first, same = await sent(ada, 1), await sent(ada, 1)
    await ada.delete(f"/v1/assets/{first['id']}")
    assert len(on_disk(files)) == 1, "an equal file needs them"
    await ada.delete(f"/v1/assets/{same['id']}")
    assert on_disk(files) == []


async def test_a_mask_that_is_deleted_stays_until_its_order_is_over(
    ada: httpx2.AsyncClient, files: Files, db: Database
) -> None:
    """Its bytes went with the request that deleted it, and the order that waited could not be done."""
    picture, mask = await sent(ada, 1), await sent(ada, 2)
    task_id = await task_on(db, picture)
    async with db.transaction() as tx:
        await tx.execute("UPDATE headrace.tasks SET payload = $1", {"mask_asset_id": mask["id"]})
    await ada.delete(f"/v1/assets/{mask['id']}")
    await let_go(files, db)
    assert len(on_disk(files)) == 2
    await db.fetch_alone("UPDATE headrace.tasks SET status = 'CANCELED', finished_at = now() WHERE id = $1", task_id)
    assert (await let_go(files, db)).purged == 1


async def test_rows_of_deleted_files_go_long_after_their_bytes(
    ada: httpx2.AsyncClient, files: Files, db: Database
) -> None:
    named, gone, not_purged, kept = [await sent(ada, shade) for shade in range(4)]
    task_id = await task_on(db, named)
    async with db.transaction() as tx:
        await tx.execute("UPDATE headrace.tasks SET status = 'CANCELED', finished_at = now() WHERE id = $1", task_id)
    for each in (named, gone):
        await ada.delete(f"/v1/assets/{each['id']}")
    assert (await let_go(files, db)).purged == 0  # done with the request
    reading = await task_on(db, not_purged)
    await ada.delete(f"/v1/assets/{not_purged['id']}")
    await db.fetch_alone("UPDATE headrace.tasks SET status = 'CANCELED', finished_at = now() WHERE id = $1", reading)
    keep = RetentionConfig().assets
    assert (await purge_rows(db, ASSETS, keep)).removed_rows == 0
    later = datetime.now(UTC) + timedelta(days=91)
    assert (await purge_rows(db, ASSETS, keep, now=later)).removed_rows == 1
    left = await db.fetch_alone("SELECT id FROM headrace.assets ORDER BY created_at")
    assert [row["id"] for row in left] == [named["id"], not_purged["id"], kept["id"]]


@pytest.mark.parametrize("count", [2, 12])
async def test_the_wrong_storage_is_not_taken_for_the_loss_of_everything(
    ada: httpx2.AsyncClient, files: Files, db: Database, tmp_path: Path, count: int
) -> None:
    for shade in range(count):
        await sent(ada, shade)
    elsewhere = replace(files, storage=Storage(StorageConfig(f"file://{tmp_path}/elsewhere")))
    await elsewhere.storage.put_bytes("media/u_another/ast_theirs", b"of another installation")
    with pytest.raises(SweepRefused):
        await sweep(elsewhere, db, older_than=AT_ONCE)
    assert len((await ada.get("/v1/assets")).json()["items"]) == count
    assert await elsewhere.storage.size_of("media/u_another/ast_theirs") == 23


async def test_an_empty_database_does_not_take_a_full_storage_for_orphans(files: Files, db: Database) -> None:
    for number in range(11):
        await files.storage.put_bytes(f"media/u_another/ast_{number}", b"of another database")
    with pytest.raises(SweepRefused):
        await sweep(files, db, older_than=AT_ONCE)
    assert len(on_disk(files)) == 11


@pytest.mark.parametrize("seconds", [1, pytest.param(60, marks=pytest.mark.slow)])
async def test_a_sweep_beside_eight_uploaders_takes_nothing_alive(
    ada: httpx2.AsyncClient, files: Files, db: Database, seconds: int
) -> None:  # W-18
    end = time.monotonic() + seconds
    alive: dict[str, bytes] = {}
    swept = 0

    async def upload(number: int) -> None:
        count = 0
        while time.monotonic() < end or count < 3:
            count += 1
            content = png(shade=number * 100_000 + count)
            if count % 3 == 0:
                asked = {"name": "p", "size_bytes": len(content)}
                begun = (await ada.post("/v1/uploads", json=asked)).json()
                await ada.put(f"/v1/uploads/{begun['id']}/parts/1", content=content)
                reply = await ada.post(f"/v1/uploads/{begun['id']}/complete")
            else:
                reply = await ada.post("/v1/assets", content=content)
            assert reply.is_success, reply.text
            alive[reply.json()["id"]] = content
            if count % 4 == 0:
                gone = next(iter(alive))
                del alive[gone]
                await ada.delete(f"/v1/assets/{gone}")

    async def clean() -> None:
        nonlocal swept
        while time.monotonic() < end:
            await let_go(files, db)
            found = await sweep(files, db, older_than=AT_ONCE)
            assert found.missing == 0
            swept += found.orphans

    await asyncio.gather(*(upload(number) for number in range(8)), clean())
    await let_go(files, db)
    await sweep(files, db, older_than=AT_ONCE)
    for asset_id, content in alive.items():
        assert (await ada.get(f"/v1/assets/{asset_id}/content")).content == content
    assert len(on_disk(files)) == len(alive)


async def test_an_account_goes_with_its_bytes_before_its_rows(
    ada: httpx2.AsyncClient, eve: httpx2.AsyncClient, files: Files, db: Database
) -> None:
    mine, hers = await sent(ada), await sent(eve)
    await ada.post("/v1/uploads", json={"name": "x", "size_bytes": 100})
    eraser = ForgetFiles(lambda: files)
    # While the storage cannot be written to, nothing is forgotten.
    assert files.storage.folder is not None
    broken = replace(files, storage=Storage(StorageConfig(f"file://{files.storage.folder.top}")))
    broken.storage.delete = _refuse  # type: ignore[method-assign,assignment]
    with pytest.raises(NotYet):
        async for _ in ForgetFiles(lambda: broken).erase(db, mine["user_id"]):
            pass
    names = await db.fetch_alone("SELECT origin_name FROM headrace.assets WHERE user_id = $1", mine["user_id"])
    assert [row["origin_name"] for row in names] == ["file"]
    assert sum([gone async for gone in eraser.erase(db, mine["user_id"])]) > 0
    assert on_disk(files) == [f"media/{hers['user_id']}/{hers['id']}"]
    (row,) = await db.fetch_alone("SELECT * FROM headrace.assets WHERE user_id = $1", mine["user_id"])
    assert (row["status"], row["origin_name"], row["sha256"], row["meta_json"]) == ("DELETED", "(deleted)", None, None)
    assert await rows(db, "uploads") == 0
    assert [gone async for gone in eraser.erase(db, mine["user_id"]) if gone] == []


async def _refuse(_: str) -> None:
    from headrace.storage import StorageUnreachable

    raise StorageUnreachable


# -- results


@pytest.fixture
def made_by(files: Files, tmp_path: Path) -> Registry:
    registry = Registry()

    @registry.task("makes", followers=("results",), max_attempts=1)
    async def makes(context: TaskContext, payload: Any) -> Any:
        """Stores a result, and ends as it is told to."""
        file, small = tmp_path / f"{context.task_id}.png", tmp_path / f"{context.task_id}.webp"
        file.write_bytes(png())
        small.write_bytes(b"RIFF....WEBP")
        made = await ResultFiles(files.storage).store(
            context.task_id, context.user_id, file, name="cat.png", mime_type="image/png", preview=small
        )
        if payload == "fails":
            raise ValueError
        if payload == "foreign":
            made = replace(made, file=replace(made.file, key="u_other/tsk_other/1"))
        if payload == "no file":
            return {"result_file": 7}
        return made.as_json(metrics={"psnr": 41.5}, note="fine")

    return registry


async def run_one(db: Database, registry: Registry, user_id: str, payload: Any, tmp_path: Path) -> str:
    from headrace.tasks.catalog import StoredCatalog, declare_types
    from headrace.tasks.model import TaskSpec
    from headrace.tasks.submit import Submitter

    following = followers()
    async with db.transaction() as tx:
        await declare_types(tx, registry)
        spec = TaskSpec("makes", payload)
        task_id = str(await Submitter(StoredCatalog(), following).submit(tx, spec, user_id=user_id))
    stop = asyncio.Event()
    config = WorkerConfig(poll_every=timedelta(milliseconds=50), scratch=tmp_path / "scratch")
    working = asyncio.create_task(Worker(db, registry, following, config).run(stop))
    async with asyncio.timeout(60):
        while not await db.fetch_alone(
            "SELECT FROM headrace.tasks WHERE id = $1 AND (finished_at IS NOT NULL OR run_at > now())", task_id
        ):
            await asyncio.sleep(0.02)
    stop.set()
    await working
    return task_id


async def test_a_result_is_written_with_the_end_and_read_by_its_owner(
    ada: httpx2.AsyncClient, eve: httpx2.AsyncClient, files: Files, db: Database, made_by: Registry, tmp_path: Path
) -> None:  # W-07
    user_id = (await sent(ada, 9))["user_id"]
    task_id = await run_one(db, made_by, user_id, None, tmp_path)
    path = f"/v1/tasks/{task_id}/result"
    found = (await ada.get(path)).json()
    assert (found["name"], found["size_bytes"], found["metrics"]) == ("cat.png", len(png()), {"psnr": 41.5})
    assert found["preview"]["mime_type"] == "image/webp"
    assert (await ada.get(f"{path}/content")).content == png()
    assert (await ada.get(f"{path}/content", params={"preview": True})).content == b"RIFF....WEBP"
    link = (await ada.post(f"{path}/links", json={})).json()["url"].removeprefix("http://test")
    assert (await eve.get(link)).content == png()
    for each in (path, f"{path}/content"):
        assert (await eve.get(each)).json()["code"] == "task_not_found"
    swept = await sweep(files, db, older_than=AT_ONCE)
    assert swept.orphans == 0

    done = await let_go(files, db, now=datetime.now(UTC) + timedelta(days=31))
    assert done.results == 1
    assert (await ada.get(path)).json()["code"] == "result_not_found"
    assert (await eve.get(link)).json()["code"] == "link_invalid"
    assert not [name for name in on_disk(files) if not name.startswith("media/")]


async def test_a_result_whose_end_was_not_written_is_an_orphan(
    ada: httpx2.AsyncClient, files: Files, db: Database, made_by: Registry, tmp_path: Path
) -> None:  # W-07
    user_id = (await sent(ada, 9))["user_id"]
    task_id = await run_one(db, made_by, user_id, "fails", tmp_path)
    assert (await ada.get(f"/v1/tasks/{task_id}/result")).json()["code"] == "result_not_found"
    assert (await sweep(files, db, older_than=AT_ONCE)).orphans == 2


@pytest.mark.parametrize("payload", ["foreign", "no file"])
async def test_a_result_that_names_no_file_of_its_task_fails_it_for_good(
    ada: httpx2.AsyncClient, files: Files, db: Database, made_by: Registry, tmp_path: Path, payload: str
) -> None:  # W-07
    user_id = (await sent(ada, 9))["user_id"]
    task_id = await run_one(db, made_by, user_id, payload, tmp_path)
    (row,) = await db.fetch_alone("SELECT status, error_code, error_message FROM headrace.tasks WHERE id = $1", task_id)
    assert (row["status"], row["error_code"]) == ("FAILED", "bad_result")
    assert "result" in row["error_message"]
    assert (await sweep(files, db, older_than=AT_ONCE)).orphans == 2
