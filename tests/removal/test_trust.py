"""What a removal does not believe: a payload, a file's head, a child that was taken over."""

import os
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from headrace.assets.model import Asset
from headrace.billing.features import Features
from headrace.removal.messages import require_as_paid
from headrace.removal.order import Hint, changed_pages
from headrace.removal.service.orders.model import Wanted
from headrace.removal.service.orders.pricing import price
from headrace.removal.service.task_types import DETECT, removal_types
from headrace.removal.service.workspace import NotMade, Workspace, forget_leftovers
from headrace.storage import Storage, StorageConfig
from headrace.tasks.errors import Fatal
from headrace.tasks.model import MEDIA_TYPES


def test_looks_that_cost_nothing_do_not_go_before_orders() -> None:
    declared = removal_types()
    looks, *orders = (declared.get(name) for name in (DETECT, *MEDIA_TYPES))
    assert looks.priority <= min(each.priority for each in orders)
    assert (looks.limit_key, looks.max_running_per_key) == ("user", 1)


def film(**facts: Any) -> Asset:
    return cast(
        "Asset",
        SimpleNamespace(id="ast_1", media_type="VIDEO", meta_json={"format": "mp4", **facts}, origin_name="a.mp4"),
    )


def test_a_film_that_was_sped_up_costs_what_its_frames_cost() -> None:
    assert price(film(duration_ms=10_000, frames=300), Wanted(), Features()).units == 1
    assert price(film(duration_ms=10_000, frames=3_000), Wanted(), Features()).units == 10


def test_a_film_that_is_longer_than_was_paid_for_is_refused() -> None:
    inspected = {"duration_ms": 60_000, "frames": 1500}
    require_as_paid(inspected, {"seconds": 61.5, "frames": 1538})
    for clip in ({"seconds": 90.0, "frames": 1500}, {"seconds": 60.0, "frames": 60_000}):
        with pytest.raises(Fatal, match="longer than its file says") as refused:
            require_as_paid(inspected, clip)
        assert refused.value.error_code == "UNSUPPORTED"


async def test_only_what_a_child_has_made_is_stored(tmp_path: Path) -> None:
    (secret := tmp_path / "secret").write_text("the worker's own")
    storage = Storage(StorageConfig(f"file://{tmp_path / 'stored'}"))
    async with Workspace(tmp_path / "work", storage, task_id="tsk_1", user_id="u_1") as space:
        space.path("good").write_text("made here")
        space.path("link").symlink_to(secret)
        for name in (str(secret), "../../secret", "link", ".."):
            with pytest.raises(NotMade):
                await space.keep([name])
        (stored,) = (await space.keep(["good"])).values()
        assert stored.startswith("step/u_1/tsk_1/")
    await storage.close()
    assert "the worker's own" not in [each.read_text() for each in (tmp_path / "stored").rglob("*") if each.is_file()]


def test_what_a_killed_worker_left_behind_goes(tmp_path: Path) -> None:
    for name, days in (("old", 2), ("new", 0)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "source").write_text("somebody's")
        then = (tmp_path / name).stat().st_mtime - timedelta(days=days).total_seconds()
        os.utime(tmp_path / name, (then, then))
    forget_leftovers(tmp_path, older_than=timedelta(days=1))
    assert [each.name for each in tmp_path.iterdir()] == ["new"]


def test_boxes_for_some_pages_change_and_cost_those_alone() -> None:  # W-06
    box = (1, 1, 9, 9)
    some, other, all_of_them = Hint(boxes=[box], pages=(2, 5)), Hint(boxes=[box], pages=(9, 9)), Hint(boxes=[box])
    assert changed_pages([], [some, other], named=False) == [(2, 5), (9, 9)]
    assert changed_pages([(4, 9)], [some, other], named=False) == [(4, 5), (9, 9)]
    assert changed_pages([(7, 8)], [some], named=False) == [(0, 0)]  # none
    assert changed_pages([(4, 9)], [some, all_of_them], named=False) == [(4, 9)]
    assert changed_pages([], [some], named=True) == []
    assert changed_pages([], [Hint(keep=[box], pages=(1, 1))], named=False) == []
