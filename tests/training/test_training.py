"""The training code learns, and what is exported says what PyTorch says. Needs `make setup-training`."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="training needs PyTorch: run make setup-training")
pytest.importorskip("onnx", reason="training needs onnx: run make setup-training")

import onnxruntime  # noqa: E402
from PIL import Image  # noqa: E402

from training.export import export  # noqa: E402
from training.losses import loss  # noqa: E402
from training.network import Network, Planes  # noqa: E402
from training.pack import pack_photographs  # noqa: E402
from training.photographs import Photograph  # noqa: E402
from training.synthesis import Synthesis  # noqa: E402
from training.train import Plan, train  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Two small photographs, some bars as texts and discs as logos."""
    rng = np.random.default_rng(1)
    pictures = [
        Image.fromarray(rng.integers(60, 120, (24, 32, 3)).astype(np.uint8)).resize((320, 240)) for _ in range(2)
    ]
    pack_photographs([Photograph(f"p{i}", "photo", "none", picture) for i, picture in enumerate(pictures)], tmp_path)
    bars = np.zeros((8, 112, 300), np.uint8)
    bars[:, 20:90, ::40] = bars[:, 20:90, 10::40] = bars[:, 20:90, 5::40] = 255
    discs = np.zeros((4, 4, 160, 160), np.uint8)
    discs[:, :, 30:130, 30:130] = 248
    np.savez_compressed(tmp_path / "marks.npz", widths=np.full(8, 300, np.int32), ink=bars.ravel(), emblems=discs)
    return tmp_path


def test_a_short_run_learns(data: Path) -> None:
    torch.manual_seed(4)
    network, batch = Network(), Synthesis(data, torch.device("cpu"), seed=4).batch(4, 64)
    optimiser = torch.optim.AdamW(network.parameters(), lr=2e-3)
    losses = []
    for _ in range(25):
        total, _ = loss(batch, network(batch.marked))
        optimiser.zero_grad()
        total.backward()
        optimiser.step()
        losses.append(float(total))
    assert losses[-1] < 0.8 * losses[0]


def test_a_run_keeps_what_it_learned(data: Path, tmp_path: Path) -> None:
    first = Plan(data, tmp_path / "1", 1e9, 2, 1e-3, 0.01, 2, 64, 1, None, None)
    assert [row["step"] for row in train(first)] == [1, 2]
    again = dataclasses.replace(first, out=tmp_path / "2", start=tmp_path / "1" / "weights.pt")
    train(again)
    assert (tmp_path / "2" / "weights.pt").exists()


def test_the_export_says_what_the_network_says(tmp_path: Path) -> None:
    torch.manual_seed(2)
    network = Network().eval()
    assert sum(p.numel() for p in network.parameters()) <= 4_000_000
    export(network, tmp_path / "m.onnx", halve=False)
    picture = torch.rand(1, 3, 96, 128)
    with torch.no_grad():
        ours = Planes(network)(picture).numpy()
    theirs = onnxruntime.InferenceSession(tmp_path / "m.onnx").run(None, {"picture": picture.numpy()})[0]
    assert np.abs(ours - theirs).max() < 1e-4
