"""Bad files get a code each, and harm nobody."""

import asyncio
import os
import signal
from pathlib import Path

import pytest
from PIL import Image

from headrace.assets.inspection import service
from headrace.assets.inspection.errors import (
    REFUSALS,
    FileRefused,
    InspectionCrashed,
    InspectionMemory,
    InspectionStopped,
    InspectionTimeout,
)
from headrace.assets.inspection.model import FileLimits
from headrace.assets.inspection.service import Inspector, InspectorConfig
from tests.assets.inspection import bad, good
from tests.assets.inspection.bad_files import CONFIG, largest_child, send_all
from tests.assets.inspection.conftest import Keep

pytestmark = pytest.mark.asyncio(loop_scope="module")
LIMITS = FileLimits()


async def test_each_kind_of_bad_file_has_its_code(inspector: Inspector, tmp_path: Path) -> None:  # W-02
    crafted = bad.crafted()
    files = ((name, content) for name, (_, content) in crafted.items())
    outcomes = await send_all(inspector, files, tmp_path)
    assert {outcome.name: outcome.code for outcome in outcomes} == {name: code for name, (code, _) in crafted.items()}
    for outcome in outcomes:
        assert outcome.message.endswith(".")
        assert ":" in outcome.message, "it says what to do"


async def test_harmed_files_are_taken_or_refused_by_a_code(inspector: Inspector, tmp_path: Path) -> None:  # W-02
    await _send_mutations(inspector, tmp_path, 110, seed=7)


@pytest.mark.slow
@pytest.mark.timeout(1500)
async def test_thousands_of_harmed_files_neither_crash_nor_hang_anything(inspector: Inspector, tmp_path: Path) -> None:
    await _send_mutations(inspector, tmp_path, 4000, seed=11)


async def _send_mutations(inspector: Inspector, folder: Path, count: int, *, seed: int) -> None:
    outcomes = await send_all(inspector, bad.mutations(count, seed), folder)
    assert len(outcomes) == count
    assert {outcome.code for outcome in outcomes} <= {"ok", *REFUSALS}
    assert largest_child(inspector) < CONFIG.memory_bytes
    assert sum(outcome.code.startswith("inspection_") for outcome in outcomes) <= count // 100
    path = folder / "good"
    path.write_bytes(good.all_kinds()["jpeg"])
    assert (await inspector.inspect(path, limits=LIMITS)).width == 96


async def test_a_file_that_takes_too_long_is_refused_and_the_child_replaced(keep: Keep) -> None:  # W-02
    path = keep(good.all_kinds()["png"])
    async with Inspector(InspectorConfig(processes=1)) as inspector:
        await inspector.inspect(path, limits=LIMITS)
        (child,) = inspector.pids
        patient, inspector._types = inspector._types, service._types(InspectorConfig(wall_seconds=1))
        os.kill(child, signal.SIGSTOP)  # it hangs, as over a file that never ends
        with pytest.raises(InspectionTimeout, match="took too long"):
            await inspector.inspect(path, limits=LIMITS)
        inspector._types = patient
        assert (await inspector.inspect(path, limits=LIMITS)).width == 96
        assert child not in inspector.pids


async def test_a_file_that_crashes_its_reader_is_refused_and_the_child_replaced(keep: Keep) -> None:  # W-02
    path = keep(good.all_kinds()["png"])
    async with Inspector(InspectorConfig(processes=1)) as inspector:
        await inspector.inspect(path, limits=LIMITS)
        (child,) = inspector.pids
        os.kill(child, signal.SIGSTOP)
        inspection = asyncio.create_task(inspector.inspect(path, limits=LIMITS))
        await asyncio.sleep(0.2)
        os.kill(child, signal.SIGSEGV)
        os.kill(child, signal.SIGCONT)
        with pytest.raises(InspectionCrashed, match="crashed the program"):
            await inspection
        assert (await inspector.inspect(path, limits=LIMITS)).width == 96
        assert inspector.pids != {child}


async def test_a_file_that_takes_too_much_memory_is_refused(keep: Keep) -> None:  # W-02
    path = keep(good.packed(Image.new("RGB", (6000, 6000)), "WEBP", lossless=True, method=0))
    async with Inspector(InspectorConfig(processes=1, memory_bytes=64 * 1024**2)) as inspector:
        with pytest.raises(InspectionMemory, match="too much memory"):
            await inspector.inspect(path, limits=LIMITS)
        assert (await inspector.inspect(keep(good.all_kinds()["png"]), limits=LIMITS)).width == 96


async def test_a_stop_is_not_blamed_on_the_file(keep: Keep) -> None:
    path = keep(good.all_kinds()["png"])
    async with Inspector(InspectorConfig(processes=1)) as inspector:
        await inspector.inspect(path, limits=LIMITS)
        (child,) = inspector.pids
        os.kill(child, signal.SIGSTOP)  # so that both are still there when it closes
        running, waiting = (asyncio.create_task(inspector.inspect(path, limits=LIMITS)) for _ in range(2))
        await asyncio.sleep(0.1)
    for inspection in (running, waiting):
        with pytest.raises(InspectionStopped, match="send it again"):
            await inspection


async def test_a_broken_preview_leaves_nothing_behind(inspector: Inspector, keep: Keep, tmp_path: Path) -> None:
    facts = await inspector.inspect(keep(good.all_kinds()["webp"]), limits=LIMITS)
    target = tmp_path / "preview.webp"
    with pytest.raises(FileRefused):
        await inspector.preview(keep(b"RIFF\0\0\0\0WEBP nonsense"), facts, target, longest_side=64)
    assert not target.exists()
