"""``context.save_result``: a handler of one's own gives its user a file."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from headrace import Headrace
from headrace.assets.expiry import let_go
from headrace.assets.service import Files
from headrace.assets.sweep import sweep
from headrace.database import Database
from headrace.tasks.model import Task, TaskStatus
from tests.assets.saving_program import CONFIG, registry
from tests.assets.test_expiry import AT_ONCE, sent
from tests.assets.test_streaming import on_disk
from tests.conftest import ROOT

WITHIN = timedelta(seconds=60)


@pytest.fixture
async def hr(database_url: str, files: Files) -> AsyncIterator[Headrace]:
    assert files.storage.folder is not None
    async with Headrace(database_url, registry, files_url=str(files.storage.folder.top)) as opened:
        yield opened


async def ran(hr: Headrace, user_id: str, name: str, payload: Any) -> Task:
    task_id = await hr.submit(name, payload, user_id=user_id)
    async with hr.working(CONFIG):
        return await hr.wait(task_id, within=WITHIN)


def results(files: Files) -> list[str]:
    return [name for name in on_disk(files) if name.startswith("result/")]


async def test_a_file_that_a_handler_saves_is_downloaded_by_the_tasks_owner_alone(
    ada: httpx2.AsyncClient, eve: httpx2.AsyncClient, files: Files, db: Database, hr: Headrace
) -> None:
    user_id = (await sent(ada, 9))["user_id"]
    task = await ran(hr, user_id, "report", {"name": "März.csv"})
    assert (task.status, task.result) == (TaskStatus.SUCCEEDED, "done")
    path = f"/v1/tasks/{task.id}/result"
    found = (await ada.get(path)).json()
    assert (found["name"], found["mime_type"], found["size_bytes"]) == ("März.csv", "text/csv", 4)
    read = await ada.get(f"{path}/content", params={"inline": True})
    assert (read.text, read.headers["x-content-type-options"]) == ("a,b\n", "nosniff")
    assert read.headers["content-disposition"].startswith("attachment")
    assert (await eve.get(f"{path}/content")).json()["code"] == "task_not_found"
    assert (await sweep(files, db, older_than=AT_ONCE)).orphans == 0
    # It goes after its time, as results of removals do.
    assert (await let_go(files, db, now=datetime.now(UTC) + timedelta(days=31))).results == 1
    assert results(files) == []


async def test_a_saved_file_goes_with_its_task(
    ada: httpx2.AsyncClient, files: Files, db: Database, hr: Headrace
) -> None:
    task = await ran(hr, (await sent(ada, 9))["user_id"], "report", {})
    async with db.transaction() as tx:
        await tx.execute("UPDATE headrace.tasks SET deleted_at = now() WHERE id = $1", task.id)
    assert len(results(files)) == 1
    await let_go(files, db)
    assert results(files) == []


async def test_the_last_saved_file_counts_and_a_failed_attempt_leaves_none(
    ada: httpx2.AsyncClient, files: Files, db: Database, hr: Headrace
) -> None:
    user_id = (await sent(ada, 9))["user_id"]
    last = await ran(hr, user_id, "report", {"texts": ["one", "two"], "name": "page.html", "mime_type": "image/png"})
    read = await ada.get(f"/v1/tasks/{last.id}/result/content")
    assert (read.text, len(results(files))) == ("two", 1)
    assert 'filename="page.html.png"' in read.headers["content-disposition"]
    failed = await ran(hr, user_id, "report", {"fails": True})
    assert failed.status is TaskStatus.FAILED
    assert (await ada.get(f"/v1/tasks/{failed.id}/result")).json()["code"] == "result_not_found"
    assert (await sweep(files, db, older_than=AT_ONCE)).orphans == 1


@pytest.mark.parametrize(
    ("path", "reason"),
    [("/nowhere/x", "No such file"), ("SCRATCH", "is none"), ("SCRATCH/pipe", "is none")],
)
async def test_a_wrong_path_fails_the_task_for_good_and_names_the_path(
    ada: httpx2.AsyncClient, hr: Headrace, path: str, reason: str
) -> None:
    task = await ran(hr, (await sent(ada, 9))["user_id"], "wrong", path)
    assert (task.status, task.error_code, task.attempt) == (TaskStatus.FAILED, "bad_result", 1)
    assert "save_result" in str(task.error_message)
    assert reason in str(task.error_message)


async def test_a_type_that_is_no_media_type_fails_the_task(ada: httpx2.AsyncClient, hr: Headrace) -> None:
    user_id = (await sent(ada, 9))["user_id"]
    task = await ran(hr, user_id, "report", {"mime_type": "text/html\r\nSet-Cookie: a=b"})
    assert (task.status, task.error_code) == (TaskStatus.FAILED, "bad_result")


@pytest.mark.parametrize(("name", "text"), [("threaded", "from a thread"), ("confined", "from a process")])
async def test_blocking_handlers_save_files_too(ada: httpx2.AsyncClient, hr: Headrace, name: str, text: str) -> None:
    task = await ran(hr, (await sent(ada, 9))["user_id"], name, {})
    assert task.status is TaskStatus.SUCCEEDED, task.error_message
    assert (await ada.get(f"/v1/tasks/{task.id}/result/content")).text == text


async def test_the_worker_reads_no_file_for_a_child_process_outside_of_its_folder(
    ada: httpx2.AsyncClient, hr: Headrace, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("not for a confined handler")
    task = await ran(hr, (await sent(ada, 9))["user_id"], "confined", {"link": str(tmp_path / "secret")})
    assert (task.status, task.error_code) == (TaskStatus.FAILED, "bad_result")
    assert "context.scratch" in str(task.error_message)


async def test_without_storage_the_handler_is_told_what_to_set(ada: httpx2.AsyncClient, database_url: str) -> None:
    async with Headrace(database_url, registry) as bare:
        task = await ran(bare, (await sent(ada, 9))["user_id"], "report", {})
    assert "files_url" in str(task.error_message)


async def test_a_killed_worker_leaves_no_result_and_the_next_attempt_gives_its_own(
    ada: httpx2.AsyncClient, files: Files, db: Database, database_url: str, hr: Headrace, tmp_path: Path
) -> None:
    assert files.storage.folder is not None
    saved = tmp_path / "saved"
    task_id = await hr.submit("killed", str(saved), user_id=(await sent(ada, 9))["user_id"])
    command = [sys.executable, "-m", "tests.assets.saving_program", database_url, str(files.storage.folder.top)]
    with subprocess.Popen(command, cwd=ROOT) as process:
        try:
            async with asyncio.timeout(60):
                while not saved.exists():
                    assert process.poll() is None
                    await asyncio.sleep(0.05)
        finally:
            process.kill()
    assert len(results(files)) == 1
    assert (await ada.get(f"/v1/tasks/{task_id}/result")).json()["code"] == "result_not_found"
    async with hr.working(CONFIG):
        task = await hr.wait(task_id, within=WITHIN)
    assert (task.status, task.result) == (TaskStatus.SUCCEEDED, 2)
    assert (await ada.get(f"/v1/tasks/{task_id}/result/content")).text == "attempt 2"
    assert (await sweep(files, db, older_than=AT_ONCE)).orphans == 1
    assert (await ada.get(f"/v1/tasks/{task_id}/result/content")).text == "attempt 2"


async def test_a_late_worker_changes_nothing_by_its_saved_file(
    ada: httpx2.AsyncClient, files: Files, db: Database, hr: Headrace, tmp_path: Path
) -> None:
    """Its task was given to another worker while it ran: its end, and with it its file, does not count."""
    user_id = (await sent(ada, 9))["user_id"]
    task_id = await hr.submit("killed", str(tmp_path / "saved"), user_id=user_id)
    async with hr.working(CONFIG), asyncio.timeout(60):
        while not (tmp_path / "saved").exists():
            await asyncio.sleep(0.02)
        async with db.transaction() as tx:  # as if it had been silent: another attempt has it now
            await tx.execute("UPDATE headrace.task_queue SET attempt = attempt + 1 WHERE task_id = $1", task_id)
    assert (await ada.get(f"/v1/tasks/{task_id}/result")).json()["code"] == "result_not_found"
