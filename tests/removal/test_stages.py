"""What a child tells of a stage that broke off."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headrace.errors import HeadraceError
from headrace.removal import runner, stages
from headrace.removal.errors import PictureUnreadable
from headrace.removal.order import Order, Stage, StageOrder
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
    order = StageOrder(Order(str(folder / "source"), media="IMAGE"), Stage.DETECTING, str(folder))
    return runner.run_stage(Context(error), runner.payload_of(order))  # type: ignore[arg-type]


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
