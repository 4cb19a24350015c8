"""Killed in each step, the child or the whole worker: the removal goes on at that step, elsewhere, to the same end."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest
from PIL import Image

from benchmarks.document_marks import marked_deck, marked_pdf
from headrace.removal.order import Stage, StageOrder
from headrace.removal.service.orders.free_limits import MAX_WAIVED_REPEATS_PER_FILE
from tests.e2e.program import CHEAP, SECRET_KEY, Program
from tests.removal import clips
from tests.removal.conftest import Picture
from tests.removal.stand import Service, serving

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

MEDIA = ("IMAGE", "PDF", "PPT", "VIDEO")
STEPS = [each.value for each in Stage]


@pytest.fixture
async def service(database_url: str, tmp_path: Path) -> AsyncIterator[Service]:
    async with serving(database_url, tmp_path) as opened:
        yield opened


def file_of(media: str, marked: Picture, folder: Path) -> Path:
    if media == "PDF":
        return marked_pdf("words", folder, pages=3)[1]
    if media == "PPT":
        return marked_deck("words on slides", folder, slides=3)[1]
    if media == "VIDEO":
        return clips.make(folder / "clip.mp4").path
    Image.fromarray(marked).save(folder / "photo.png")
    return folder / "photo.png"


@pytest.mark.parametrize("media", MEDIA)
async def test_a_child_killed_in_any_step(
    media: str, service: Service, marked: Picture, tmp_path: Path
) -> None:  # W-04
    asset_id = await service.upload(file_of(media, marked, tmp_path))
    await service.clean(asset_id)
    for number, step in enumerate(Stage):
        killed: list[int] = []

        def kill_once(order: StageOrder, step: Stage = step, killed: list[int] = killed) -> None:
            if order.stage is step and not killed:
                (pid,) = service.remover.pids
                killed.append(pid)
                os.kill(pid, signal.SIGSTOP)
                asyncio.get_running_loop().call_later(0.2, os.kill, pid, signal.SIGKILL)

        service.remover.before = kill_once
        async with asyncio.timeout(60):
            while len(service.remover.pids) != 1:  # the last one went with its file; a fresh one comes up
                await asyncio.sleep(0.01)
        removal = await service.clean(asset_id)
        assert (removal["status"], len(killed)) == ("SUCCEEDED", 1), removal
        at = STEPS.index(step)
        skipped = [(name, "SKIPPED", 2) for name in STEPS[:at]]
        again = [(name, "SUCCEEDED", 2) for name in STEPS[at:]]
        steps = await service.steps(removal["id"])
        assert steps == [*((name, "SUCCEEDED", 1) for name in STEPS[:at]), (step, "FAILED", 1), *skipped, *again]
        # The same bytes again are not charged, a few times a day.
        settled = "RELEASED" if number < MAX_WAIVED_REPEATS_PER_FILE else "COMMITTED"
        assert [status for status, _ in await service.ledger(removal["id"])] == ["HELD", settled]
    # Five removals of one file: one result.
    assert len(await service.rows("SELECT DISTINCT sha256 FROM headrace.task_results")) == 1
    assert len(await service.rows("SELECT FROM headrace.task_results")) == 5


async def caught(service: Service, asset_id: str, step: str) -> str:
    """The task of a removal that is in that step now; steps of documents are so short that one may slip through."""
    state = "SELECT status FROM headrace.task_steps WHERE task_id = $1 AND step_name = $2"
    async with asyncio.timeout(180):
        while True:
            task_id: str = (await service.order(asset_id))["items"][0]["id"]
            while not (rows := await service.rows(state, task_id, step)):
                await asyncio.sleep(0.001)
            if rows[0]["status"] == "RUNNING":
                return task_id
            await service.over(task_id)


@pytest.mark.parametrize("media", MEDIA)
@pytest.mark.parametrize("step", STEPS)
async def test_a_worker_killed_in_any_step_is_followed_by_another_one(
    step: str, media: str, service: Service, marked: Picture, database_url: str, tmp_path: Path
) -> None:  # W-04
    asset_id = await service.upload(file_of(media, marked, tmp_path))
    undisturbed = await service.clean(asset_id)
    assert undisturbed["status"] == "SUCCEEDED"
    # From here on only processes work: the one of this test is told to stop.
    service.worker_stop.set()

    def worker(name: str) -> Program:
        settings = {
            **CHEAP,
            **SECRET_KEY,
            "HEADRACE_DATABASE_URL": database_url,
            "HEADRACE_FILES_URL": str(service.world.files),
            "HEADRACE_DATA_DIR": str(tmp_path / name),  # another machine: nothing of the first one's is there
            "HEADRACE_WORKER_LEASE": "2s",
            "HEADRACE_REMOVAL_PROCESSES": "1",
        }
        (tmp_path / name).mkdir()
        return Program("worker", "--queues", "media", folder=tmp_path / name, settings=settings)

    first = worker("one")
    try:
        task_id = await caught(service, asset_id, step)
        children = first.process_info.children(recursive=True)
        first.process.kill()
        _, alive = psutil.wait_procs(children, timeout=30)
        assert alive == []  # its children died with it
        second = worker("two")
        try:
            removal = await service.over(task_id)
        finally:
            second.close()
    finally:
        first.close()
    assert removal["status"] == "SUCCEEDED", removal
    at = STEPS.index(step)
    steps = await service.steps(task_id)
    last = max(attempt for _, _, attempt in steps)
    assert last > 1
    # What was done before the kill was not done again.
    assert [each for each in steps if each[2] == last][:at] == [(name, "SKIPPED", last) for name in STEPS[:at]]
    # The same bytes as without the kill: not charged a second time.
    assert [status for status, _ in await service.ledger(task_id)] == ["HELD", "RELEASED"]
    assert len(await service.rows("SELECT DISTINCT sha256 FROM headrace.task_results")) == 1
