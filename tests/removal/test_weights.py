"""Model files: loaded once, and what is wrong with one is told as what it is."""

import os
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from numpy.typing import NDArray
from PIL import Image

import headrace
from headrace.removal.errors import ModelDamaged
from headrace.removal.images.eye import weights
from headrace.removal.order import Order
from headrace.removal.runner import carry_out


def test_threads_that_come_together_load_a_model_once(monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[object] = []
    together = threading.Barrier(4)

    def load(*_: object, **__: object) -> object:
        loads.append(object())
        time.sleep(0.05)  # as a real one takes, in which others come
        return loads[-1]

    def ask() -> object:
        together.wait(5)
        return weights._session(weights.DETECTOR, True)

    weights._load.cache_clear()
    monkeypatch.setattr(onnxruntime, "InferenceSession", load)
    try:
        with ThreadPoolExecutor(4) as threads:
            sessions = {asked.result() for asked in [threads.submit(ask) for _ in range(4)]}
    finally:
        weights._load.cache_clear()
    assert (len(loads), len(sessions)) == (1, 1)


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "content", "how"),
    [
        ("refiner.onnx", b"half a file", "is not the one that this release was made with"),
        ("detector.onnx", None, "cannot be read (No such file or directory)"),
    ],
)
def test_a_damaged_installation_is_not_the_pictures_fault(
    marked: NDArray[np.uint8],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    content: bytes | None,
    how: str,
) -> None:
    package = tmp_path / "installed" / "headrace"
    shutil.copytree(headrace.__path__[0], package, copy_function=os.symlink)
    model = package / "removal" / "images" / "eye" / name
    model.unlink()
    if content is not None:
        model.write_bytes(content)
    monkeypatch.setenv("PYTHONPATH", str(package.parent))
    Image.fromarray(marked).save(tmp_path / "photo.png")
    with pytest.raises(ModelDamaged) as told:
        carry_out(Order(str(tmp_path / "photo.png"), result=str(tmp_path / "clean.png")))
    assert f"the model file {model} {how}" in told.value.message
    assert "pip install --force-reinstall" in told.value.message
    assert not (tmp_path / "clean.png").exists()
