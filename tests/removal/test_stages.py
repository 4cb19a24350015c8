"""What a child tells of a stage that broke off."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headrace.errors import HeadraceError
from headrace.removal import stages
from headrace.removal.errors import PictureUnreadable
from headrace.removal.order import RemovalOrder, Stage, StageOrder
from headrace.tasks.errors import Fatal, LeaseLost
from headrace.tasks.isolation.errors import ReportFailed

VERBS = ("prepare", "detect", "inpaint", "package")


class Context:
    """Whose reports go nowhere."""

    def __init__(self, error: HeadraceError) -> None:
        self._error = error

    def progress(self, _: int) -> None:
        raise self._error


def run(monkeypatch: pytest.MonkeyPatch, folder: Path, error: HeadraceError) -> Any:
    def detect(_: StageOrder, progress: Callable[[int], object]) -> None:
        progress(50)

    monkeypatch.setattr(stages, "stages_of", lambda _, **__: SimpleNamespace(**dict.fromkeys(VERBS, detect)))
    order = RemovalOrder(asset_id="", sha256="", format="png", units=1, output_format="png")
    told = {**asdict(StageOrder("IMAGE", Stage.DETECTING, str(folder), order)), "order": order.model_dump(mode="json")}
    return stages.run_stage(Context(error), told)  # type: ignore[arg-type]


@pytest.mark.parametrize("error", [ReportFailed("The database is away."), LeaseLost()])
def test_a_report_that_could_not_be_written_is_no_fault_of_the_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: HeadraceError
) -> None:
    """Progress that met a database that was away ended good files for good as UNSUPPORTED; found by chaos."""
    with pytest.raises(type(error)):
        run(monkeypatch, tmp_path, error)


def test_what_is_wrong_with_the_file_ends_the_removal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(Fatal):
        run(monkeypatch, tmp_path, PictureUnreadable("It is no picture."))
