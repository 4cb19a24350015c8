"""No file is lost: what is in the way or cannot be written is said before anything is computed."""

import os
import resource
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from headrace.removal import runner
from headrace.removal.errors import TargetExists, TargetUnusable
from headrace.removal.order import Order
from headrace.removal.paths import require_mask, require_result, written_at_once
from tests.cli.conftest import Call, call

__all__ = ["call"]

Picture = NDArray[np.uint8]


@pytest.fixture
def nothing_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    def child(*_: object, **__: object) -> None:
        pytest.fail("the child was started")

    monkeypatch.setattr(runner, "run_single", child)


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    Image.new("RGB", (64, 64)).save(tmp_path / "p.jpg")
    return tmp_path / "p.jpg"


@pytest.mark.usefixtures("nothing_computed")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("remove p.jpg --to p.jpg", "p.jpg is the picture itself"),
        ("remove p.jpg --to link.jpg", "link.jpg is the picture itself"),
        ("remove p.jpg --to other.png", "other.png exists: name another file, or add --force"),
        ("remove p.jpg", "p.clean.jpg exists"),
        ("detect p.jpg --mask other.png", "other.png exists"),
        ("detect p.jpg --mask link.png --force", "link.png is the picture itself, with --force, too"),
        ("detect p.jpg --mask p.jpg", "let p.jpg end in .png"),
        ("detect p.jpg --mask -", "not to standard output"),
        ("remove p.jpg --to -", "not to standard output"),
        (
            "remove p.jpg --to out.xyz",
            "out.xyz has an ending that is not known: let --to name a file that ends in .jpg, ",
        ),
        ("remove p.jpg --to /proc/out.jpg", "/proc/out.jpg cannot be written"),
        ("remove p.jpg --to nowhere/out.jpg", "nowhere for out.jpg"),
        ("remove p.jpg --to full.jpg --force", "full.jpg is a folder, a pipe or a device"),
        ("detect folder.jpg", "folder.jpg is no file but a folder"),
        ("detect fifo", "fifo is no file but a pipe"),
        ("detect /dev/zero", "/dev/zero is no file"),
        ("detect empty.jpg", "The file is empty: empty.jpg"),
        ("detect https://example.org/p.jpg", "only files are read"),
        ("detect nowhere.jpg", "There is no file nowhere.jpg"),
    ],
)
def test_what_cannot_be_is_said_first(call: Call, photo: Path, words: str, said: str) -> None:
    folder = photo.parent
    before = photo.read_bytes()
    (folder / "link.jpg").symlink_to(photo)
    (folder / "link.png").hardlink_to(photo)
    for name in ("other.png", "p.clean.jpg"):
        (folder / name).write_text("mine")
    (folder / "folder.jpg").mkdir()
    (folder / "full.jpg").symlink_to("/dev/full")
    (folder / "empty.jpg").touch()
    os.mkfifo(folder / "fifo")
    done = call(*words.split())
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert photo.read_bytes() == before
    assert (folder / "other.png").read_text() == (folder / "p.clean.jpg").read_text() == "mine"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_allows_no_files_is_named(photo: Path) -> None:
    (photo.parent / "shut").mkdir(mode=0o500)
    with pytest.raises(TargetUnusable, match="allows no new files"):
        require_result(photo.parent / "shut" / "out.jpg", photo, force=False)


def test_force_allows_what_is_there(photo: Path) -> None:
    (photo.parent / "mask.png").touch()
    require_result(photo, photo, force=True)
    require_mask(photo.parent / "mask.png", photo, force=True)


def test_results_appear_whole_or_not_at_all(tmp_path: Path) -> None:
    target, link = tmp_path / "out.png", tmp_path / "link.png"
    link.symlink_to(target)
    with written_at_once(str(link), force=False) as draft:
        Path(draft or "").write_text("whole")
        assert not target.exists()
    target.chmod(0o640)
    with pytest.raises(RuntimeError), written_at_once(str(link), force=True) as draft:
        Path(draft or "").write_text("ha")
        raise RuntimeError
    with pytest.raises(TargetExists, match="by now"), written_at_once(str(link), force=False) as draft:
        Path(draft or "").write_text("late")
    assert target.read_text() == "whole"
    with written_at_once(str(link), force=True) as draft:
        Path(draft or "").write_text("new")
    assert (target.read_text(), target.stat().st_mode & 0o777, link.is_symlink()) == ("new", 0o640, True)
    with written_at_once(str(tmp_path / "none.png"), force=False):
        pass  # a mark that is left alone
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.png", "out.png"]


def test_a_full_disk_is_not_the_pictures_fault(marked: Picture, tmp_path: Path) -> None:
    Image.fromarray(marked).save(tmp_path / "photo.png")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(TargetUnusable, match=r"out\.png could not be written: File too large"):
            runner.carry_out(Order(str(tmp_path / "photo.png"), result=str(tmp_path / "out.png")))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [path.name for path in tmp_path.iterdir()] == ["photo.png"]


def test_what_a_killed_process_left_is_swept_and_what_a_live_one_writes_stays(tmp_path: Path) -> None:
    gone = os.fork()
    if gone == 0:
        os._exit(0)
    os.waitpid(gone, 0)
    left, live, others = (
        tmp_path / name for name in (f".headrace-{gone}-0123456789ab.png", f".headrace-{os.getpid()}-0123456789ab.png",
                                     ".headrace-notes")
    )  # fmt: skip
    for file in (left, live, others):
        file.touch()
    with written_at_once(str(tmp_path / "a.png"), force=False) as draft:
        assert draft is not None
        assert Path(draft).name.startswith(f".headrace-{os.getpid()}-")
    assert (left.exists(), live.exists(), others.exists()) == (False, True, True)
