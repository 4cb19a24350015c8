"""The training code learns, and what is exported says what PyTorch says. Needs `make setup-training`."""

import dataclasses
import itertools
import json
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest

from tests.missing_programs import missing

torch = pytest.importorskip("torch", reason=missing("PyTorch"))
pytest.importorskip("onnx", reason=missing("PyTorch"))

import onnxruntime  # noqa: E402
from PIL import Image  # noqa: E402

from headrace.removal.images.eye import blocks, drafting, weights  # noqa: E402
from headrace.removal.images.eye.model import Detection  # noqa: E402
from training import refiner  # noqa: E402
from training.compound import CompoundMarker  # noqa: E402
from training.drafting import drafted  # noqa: E402
from training.drawing import Dice, Emblems, Lettering  # noqa: E402
from training.export import export, export_file  # noqa: E402
from training.lettering import phrases, signature  # noqa: E402
from training.losses import NAMES, loss  # noqa: E402
from training.network import Network, Planes, Seen  # noqa: E402
from training.pack import pack_photographs  # noqa: E402
from training.photographs import Photograph  # noqa: E402
from training.refiner import INPUTS, Finished, Refiner, bared  # noqa: E402
from training.refiner import loss as refiner_loss  # noqa: E402
from training.reopen import weights_of  # noqa: E402
from training.scenes import Photographs, _barred, string_wires  # noqa: E402
from training.sizes import TEXT_HEIGHT, TEXT_WIDTH  # noqa: E402
from training.synthesis import Batch, Synthesis  # noqa: E402
from training.train import Plan, train  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Two small photographs, one of them for the refiner, some bars as texts and discs as logos."""
    rng = np.random.default_rng(1)
    pictures = [
        Image.fromarray(rng.integers(60, 120, (24, 32, 3)).astype(np.uint8)).resize((320, 240)) for _ in range(2)
    ]
    roles = ("photo", "refiner")
    pack_photographs(
        [Photograph(role, role, "none", *rest) for role, *rest in zip(roles, pictures, strict=True)], tmp_path
    )
    bars = np.zeros((8, TEXT_HEIGHT, 300), np.uint8)
    bars[:, 15:65, ::40] = bars[:, 15:65, 10::40] = bars[:, 15:65, 5::40] = 255
    discs = np.zeros((4, 4, 160, 160), np.uint8)
    discs[:, :, 30:130, 30:130] = 248
    kinds = np.array([0, 0, 0, 0, 0, 0, 1, 2], np.int8)
    np.savez_compressed(
        tmp_path / "marks.npz", widths=np.full(8, 300, np.int32), ink=bars.ravel(), kinds=kinds, emblems=discs
    )
    return tmp_path


def test_eye_and_refiner_have_photographs_of_their_own(data: Path) -> None:
    device = torch.device("cpu")
    sizes = {len(Photographs(data, device, for_refiner=for_refiner)._pixels) for for_refiner in (False, True)}
    rows = json.loads((data / "photographs-0.json").read_text())
    (data / "photographs-0.json").write_text(json.dumps(rows[:1]))
    assert {len(Photographs(data, device)._pixels)} == sizes, "one photograph each, both as large"
    with pytest.raises(ValueError, match="for the refiner"):
        Photographs(data, device, for_refiner=True)


def test_a_crop_is_never_larger_than_its_picture(tmp_path: Path) -> None:
    """A ramp stays a ramp: nothing is mirrored to fill the crop."""
    ramp = Image.fromarray(np.tile(np.linspace(0, 255, 300).astype(np.uint8)[None, :, None], (200, 1, 3)))
    pack_photographs([Photograph("ramp", "photo", "none", ramp)], tmp_path)
    photographs = Photographs(tmp_path, torch.device("cpu"))
    photographs._developed = lambda picture, *_: picture
    crops, with_text = photographs.crops(24, 256, Dice(3, torch.device("cpu")))
    assert crops.shape == (24, 3, 256, 256)
    assert not with_text.any()
    steps = crops.mean(1)[:, 128].diff(dim=1)[:, ::8]
    framed = (crops[:, :, 0] - crops[:, :, 128]).abs().amax((1, 2)) > 0.1
    one_way = ((steps >= -0.05).all(1) | (steps <= 0.05).all(1)) | framed
    assert one_way.all()


def test_pictures_are_packed_into_parcels_that_can_be_carried(tmp_path: Path) -> None:
    pictures = [Photograph(str(i), "photo", "none", Image.effect_noise((160, 120), 80)) for i in range(4)]
    parcels = pack_photographs(pictures, tmp_path, most=20_000)
    assert parcels == len(list(tmp_path.glob("photographs-*.bin"))) > 1
    names = [row["name"] for path in sorted(tmp_path.glob("*.json")) for row in json.loads(path.read_text())]
    assert names == ["0", "1", "2", "3"]
    assert len(Photographs(tmp_path, torch.device("cpu"))._rows) == 4


def test_some_crops_have_bars_that_are_no_mark() -> None:
    torch.manual_seed(1)
    barred = _barred(torch.rand(200, 3, 64, 64), Dice(2, torch.device("cpu")))
    plain = (barred[:, :, 0].std(2) < 1e-3).all(1) | (barred[:, :, :, 0].std(2) < 1e-3).all(1)
    assert 0 < plain.sum() < 40


def test_wires_run_through_some_scenes_from_border_to_border() -> None:
    """Issue 36: a winding road was taken for a signature."""
    torch.manual_seed(1)
    scenes = torch.full((100, 3, 64, 64), 0.5)
    strung = (string_wires(scenes, Dice(4, torch.device("cpu"))) - scenes).abs().amax(1) > 0.02
    some = strung[strung.any(1).any(1)]
    assert 0 < len(some) < 30
    at_borders = some[:, 0].any(1) | some[:, -1].any(1) | some[:, :, 0].any(1) | some[:, :, -1].any(1)
    assert at_borders.float().mean() > 0.9
    assert (scenes == 0.5).all()


def test_a_small_alarm_counts_in_clean_places_and_not_beside_a_mark() -> None:
    """Issue 36: an alarm of a few hundred pixels changes a clean photograph, and a mean over all pixels hides it."""
    size, plain = (1, 1, 128, 128), torch.zeros(1, 3, 128, 128)
    alpha = torch.zeros(size)
    alpha[..., 40:60, 40:60] = 0.6

    def alarms(top: int) -> float:
        mask = torch.full(size, -9.0)
        mask[..., 40:60, 40:60] = 9.0
        mask[..., top : top + 4, 40:60] = 9.0
        seen = Seen(mask, alpha, plain, torch.zeros(size))
        return float(loss(Batch(plain, plain, alpha, plain), seen)[1][NAMES.index("alarms")])

    assert alarms(62) < 0.01 < 0.1 < alarms(100)


def test_compound_marks_keep_off_the_spared_crops(data: Path) -> None:
    device = torch.device("cpu")
    marker = CompoundMarker(Lettering(data, device), Emblems(data, device), Dice(5, device), (0.0,) * 5)
    spared = np.arange(24) % 2 == 0
    layers = marker.marks(24, 64, spared)
    marked = layers.alpha.amax((1, 2, 3)) > 0
    assert not marked[torch.from_numpy(spared)].any()
    assert marked.any()
    assert (layers.colour <= layers.alpha + 1e-5).all()


def test_a_signature_is_thin_and_fills_its_bitmap() -> None:
    for seed in range(6):
        bitmap = signature(np.random.default_rng(seed))
        assert bitmap.shape[0] == TEXT_HEIGHT
        assert 16 <= bitmap.shape[1] <= TEXT_WIDTH
        assert 0.005 < (bitmap > 127).mean() < 0.4


def test_phrases_have_long_lines_and_chinese_names() -> None:
    phrases_drawn = list(itertools.islice(phrases(np.random.default_rng(3), [0x6C34, 0x5C71]), 300))
    assert max(map(len, phrases_drawn)) > 40
    assert any("水" in phrase or "山" in phrase for phrase in phrases_drawn)


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_run_keeps_what_it_learned(data: Path, tmp_path: Path) -> None:
    first = Plan(data, tmp_path / "1", 1e9, 2, 1e-3, 0.01, 2, 64, 1, None)
    assert [row["step"] for row in train(first)] == [1, 2]
    again = dataclasses.replace(first, out=tmp_path / "2", start=tmp_path / "1" / "weights.pt")
    train(again)
    assert (tmp_path / "2" / "weights.pt").exists()


@pytest.mark.parametrize(("made", "channels"), [(lambda: Planes(Network()), 3), (lambda: Finished(Refiner()), INPUTS)])
def test_the_export_says_what_the_network_says(
    tmp_path: Path, made: Callable[[], Planes | Finished], channels: int
) -> None:
    torch.manual_seed(2)
    network = made().eval()
    export(network, tmp_path / "m.onnx", halve=False)
    given = torch.rand(1, channels, 96, 128)
    with torch.no_grad():
        ours = network(given).numpy()
    theirs = onnxruntime.InferenceSession(tmp_path / "m.onnx").run(None, {"given": given.numpy()})[0]
    assert np.abs(ours - theirs).max() < 1e-4


def test_eye_and_refiner_have_six_million_parameters_at_the_most() -> None:
    assert sum(p.numel() for network in (Network(), Refiner()) for p in network.parameters()) <= 6_000_000


@pytest.mark.slow
def test_the_refiner_begins_with_the_draft_and_learns_to_better_it() -> None:
    torch.manual_seed(3)
    finished = Finished(Refiner())
    optimiser = torch.optim.AdamW(finished.parameters(), lr=3e-3)
    draft, clean = torch.rand(2, INPUTS, 32, 32), torch.full((2, 3, 32, 32), 0.5)
    losses = []
    for _ in range(12):
        everywhere = torch.ones(2, 1, 32, 32)
        total, _ = refiner_loss(finished.finished(draft), draft, clean, everywhere * 0.5, everywhere)
        optimiser.zero_grad()
        total.backward()
        optimiser.step()
        losses.append(float(total))
    assert losses[-1] < losses[0] - 0.2


def test_a_refiner_is_taught_with_what_an_eye_sees(data: Path, tmp_path: Path) -> None:
    plan = Plan(data, tmp_path / "eye", 1e9, 1, 1e-3, 0.01, 1, 64, 1, None)
    train(plan)
    taught = dataclasses.replace(plan, out=tmp_path / "refiner", eye=tmp_path / "eye" / "weights.pt")
    assert set(train(taught)[0]) >= set(refiner.NAMES)
    assert export_file(tmp_path / "refiner" / "weights.pt", tmp_path / "refiner.onnx")


def test_drafts_are_the_products_own() -> None:
    """A ring in one ink over a rough ground, and planes as a good eye would see them."""
    rng = np.random.default_rng(5)
    clean = cv2.resize(rng.integers(40, 160, (16, 16, 3)).astype(np.uint8), (128, 128), interpolation=cv2.INTER_CUBIC)
    drawn = np.zeros((128, 128), np.uint8)
    cv2.circle(drawn, (64, 64), 40, (255,), 12, cv2.LINE_AA)
    ink = drawn.astype(np.float32) / 255
    alpha = 0.45 * ink
    marked = np.rint(clean * (1 - alpha[..., None]) + 255 * alpha[..., None]).astype(np.uint8)
    likely = cv2.dilate((ink > 0.02).astype(np.float32), np.ones((3, 3), np.uint8))
    planes = np.stack([likely, alpha * 1.05, *(alpha,) * 3, np.zeros_like(alpha)]).astype(np.float32)
    batch = torch.from_numpy(marked).permute(2, 0, 1)[None].float() / 255
    ours = drafted(batch, torch.from_numpy(planes)[None], 0.3)
    levels = np.rint(planes * 255).astype(np.uint8)
    tight = likely > 0
    loose = cv2.dilate(tight.view(np.uint8), np.ones((5, 5), np.uint8)).view(np.bool_)
    tint = np.ascontiguousarray(np.moveaxis(levels[2:5], 0, 2))
    detection = Detection(128, 128, 1, tight, loose, levels[0], levels[1], tint, levels[5], 1.0, ())
    theirs = drafting.drafted(blocks.cut(marked, detection, (0, 128, 0, 128)))
    for mine, product in (
        (ours.smooth, theirs.filled),
        (ours.computed, theirs.computed),
        (ours.blend, theirs.blend),
        (ours.colour, theirs.colour),
    ):
        assert np.abs(mine[0].permute(1, 2, 0).numpy() - product)[loose].mean() < 1


def test_a_second_draft_leaves_alone_what_is_bare() -> None:
    torch.manual_seed(7)
    picture, alpha = torch.rand(1, 3, 96, 96), torch.zeros(1, 1, 96, 96)
    alpha[..., 16:80, 16:80] = 1
    alpha[..., 40:56, 40:56] = 0  # cut out, but the eye takes it for ink
    planes = torch.zeros(1, 6, 96, 96)
    planes[:, :5, 16:80, 16:80] = 1
    draft = drafted(picture * (1 - alpha) + alpha, planes, 0.3, bared(alpha))
    inner = np.s_[0, :, 44:52, 44:52]
    assert not draft.loose[inner].any()
    assert torch.equal(draft.blend[inner], draft.marked[inner])
    assert draft.loose[..., 20:36, 20:36].all()


def test_weights_out_of_a_shipped_file_tell_the_same() -> None:
    network = Finished(Refiner())
    network.load_state_dict(weights_of(weights.REFINER.file, network))
    given = np.random.default_rng(4).random((INPUTS, 64, 96), np.float32)
    with torch.no_grad():
        told = network.eval()(torch.from_numpy(given)[None])[0].numpy()
    assert np.abs(told - weights.run(weights.REFINER, given)).max() < 1e-3


def test_the_shipped_detector_is_the_network_that_training_makes() -> None:
    network = Network()
    network.load_state_dict(weights_of(weights.DETECTOR.file, network))
    given = np.random.default_rng(4).random((3, 64, 96), np.float32)
    with torch.no_grad():
        told = Planes(network).eval()(torch.from_numpy(given)[None])[0].numpy()
    assert np.abs(told - weights.run(weights.DETECTOR, given)).max() < 1e-3
