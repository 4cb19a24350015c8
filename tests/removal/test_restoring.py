"""Two ways of filling in a mark, the choice between them, and how likely the result is good. W-03, W-08"""

import dataclasses
import subprocess
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image

from headrace.removal.images import confidence, inpainting, restoring, stages
from headrace.removal.images.evidence import Evidence, measure_evidence
from headrace.removal.images.eye import detection_file
from headrace.removal.images.eye.detecting import detect
from headrace.removal.images.eye.hinting import Hints
from headrace.removal.images.eye.model import Detection, Mask, Picture, Region, Restoration
from headrace.removal.images.restoring import restore
from headrace.removal.order import FailureCode, Names, Order, Stage, StageOrder
from headrace.removal.report import Verdict, of_confidence
from headrace.removal.thresholds import MIN_CLEAN_CONFIDENCE, MIN_CONFIDENCE
from tests.e2e.program import HEADRACE, environment

needs_inpainter = pytest.mark.skipif(
    not inpainting.is_available(), reason="the inpainter's weights are not here: scripts/weights fetches them"
)


@pytest.fixture(scope="module")
def meadow() -> Picture:
    """Blades of grass: a smooth fill is seen on it."""
    rng = np.random.default_rng(11)
    grain = cv2.GaussianBlur(rng.normal(0, 60, (300, 420)).astype(np.float32), (0, 0), sigmaX=0.8, sigmaY=2.5)
    green = np.array([70, 110, 50], np.float32)
    picture: Picture = np.clip(green + grain[..., None], 0, 255).astype(np.uint8)
    return picture


@pytest.fixture(scope="module")
def plated(meadow: Picture) -> tuple[Picture, Detection]:
    """The meadow under an opaque plate, which the user drew."""
    mask = np.zeros(meadow.shape[:2], np.bool_)
    mask[180:230, 150:300] = True
    marked = meadow.copy()
    marked[mask] = (30, 60, 180)
    return marked, detect(marked, hints=Hints(mask=mask))


def blurred(picture: Picture, hole: Mask) -> Picture:
    """The picture with nothing but its mean in the hole."""
    result: Picture = picture.copy()
    result[hole] = picture[~hole].mean(0).astype(np.uint8)
    return result


@pytest.mark.long
@needs_inpainter
def test_the_inpainter_changes_nothing_outside_the_hole(meadow: Picture) -> None:
    hole = np.zeros(meadow.shape[:2], np.bool_)
    hole[100:140, 60:400] = True
    hole[20:40, 20:50] = True
    marked = meadow.copy()
    marked[hole] = 255
    drawn = inpainting.inpaint(marked, hole)
    assert drawn is not None
    assert (drawn[~hole] == marked[~hole]).all()
    assert drawn[hole].mean() < 160, "nothing of the white is left"
    again = inpainting.inpaint(marked, hole)
    assert again is not None
    assert (drawn == again).all()


@pytest.mark.parametrize(("height", "width"), [(300, 420), (1400, 2300), (90, 2000)])
def test_windows_cover_the_hole_and_stay_within_the_picture(height: int, width: int) -> None:
    hole = np.zeros((height, width), np.bool_)
    hole[height // 3 : height // 2, width // 10 : width - 5] = True
    hole[2:9, 3:12] = True
    covered = np.zeros_like(hole)
    for rows, columns in inpainting._windows(hole):
        assert 0 <= rows.start < rows.stop <= height
        assert 0 <= columns.start < columns.stop <= width
        assert max(rows.stop - rows.start, columns.stop - columns.start) <= 512
        covered[rows, columns] = True
    assert covered[hole].all()


def test_a_hole_of_too_many_windows_is_left_to_the_solver() -> None:
    hole = np.zeros((6000, 6000), np.bool_)
    hole[::700, ::700] = True
    assert inpainting.inpaint(np.zeros((6000, 6000, 3), np.uint8), hole) is None


@pytest.mark.long
@needs_inpainter
def test_the_better_result_of_two_is_taken_and_the_other_kept_as_a_variant(plated: tuple[Picture, Detection]) -> None:
    marked, detection = plated
    best = restore(marked, detection, high=True, looks_twice=False, variant=True)
    assert best.variant is not None
    assert (best.variant != best.picture).any()
    plain = restore(marked, detection)
    assert plain.variant is None
    assert plain.confidence <= best.confidence


@needs_inpainter
def test_only_a_result_that_is_not_clean_costs_the_inpainter_at_standard_quality(
    plated: tuple[Picture, Detection], monkeypatch: pytest.MonkeyPatch
) -> None:
    marked, detection = plated
    drawn: list[Mask] = []

    def inpaint(picture: Picture, hole: Mask) -> Picture:
        drawn.append(hole)
        return picture.copy()

    monkeypatch.setattr(inpainting, "inpaint", inpaint)
    for chance, standard, high in ((0.9, 0, 1), (0.3, 1, 1)):
        monkeypatch.setattr(confidence, "of_computed", lambda *_, chance=chance: chance)
        for quality, calls in ((False, standard), (True, high)):
            drawn.clear()
            restore(marked, detection, high=quality, looks_twice=False)
            assert len(drawn) == calls


@pytest.mark.parametrize(("chance", "drawn"), [(0.45, False), (0.65, True)])
def test_an_invented_fill_is_taken_only_where_it_is_clearly_likelier_good(
    plated: tuple[Picture, Detection], monkeypatch: pytest.MonkeyPatch, chance: float, drawn: bool
) -> None:
    """36: damage is worse than a trace. The solver's result has 0.3 here."""
    marked, detection = plated
    other = marked // 2
    monkeypatch.setattr(inpainting, "is_available", lambda: True)
    monkeypatch.setattr(inpainting, "inpaint", lambda *_: other.copy())
    monkeypatch.setattr(confidence, "of_computed", lambda *_: 0.3)
    monkeypatch.setattr(confidence, "of_drawn", lambda *_: chance)
    best = restore(marked, detection)
    assert (best.picture == other).all() == drawn
    assert best.confidence == pytest.approx(chance if drawn else 0.3)


def test_without_the_weights_the_solver_works_alone(
    plated: tuple[Picture, Detection], monkeypatch: pytest.MonkeyPatch
) -> None:
    marked, detection = plated
    monkeypatch.setattr(inpainting, "is_available", lambda: False)
    alone = restore(marked, detection, high=True, looks_twice=False, variant=True)
    assert alone.refused is None
    assert alone.variant is None


def test_repeated_marks_and_large_holes_stay_with_the_solver(plated: tuple[Picture, Detection]) -> None:
    _, detection = plated
    assert not restoring._suits(dataclasses.replace(detection, repeated=True))
    large = np.ones_like(detection.loose)
    assert not restoring._suits(dataclasses.replace(detection, loose=large))


def test_a_blurred_patch_and_a_ghost_are_less_likely_good_than_the_picture_itself(
    meadow: Picture, plated: tuple[Picture, Detection]
) -> None:
    marked, detection = plated
    ghost = np.rint(0.75 * meadow + 0.25 * marked).astype(np.uint8)
    results = (meadow, blurred(marked, detection.mask_loose), ghost, marked)
    perfect, patch, faint, untouched = (
        confidence.of_computed(measure_evidence(marked, each, detection)) for each in results
    )
    assert perfect > max(patch, faint)
    assert min(patch, faint) > untouched
    assert of_confidence(untouched) is Verdict.POOR
    assert perfect > MIN_CONFIDENCE


def test_a_net_of_words_that_is_still_legible_is_told(meadow: Picture) -> None:
    """36, part 3: a net that can be read at 150 % is not clean."""
    calm: Picture = cv2.GaussianBlur(meadow, (0, 0), 6).astype(np.uint8)
    net = np.zeros(calm.shape[:2], np.uint8)
    for top in range(30, 300, 45):
        for left in range(-60, 420, 130):
            cv2.putText(net, "preview", (left + top % 60, top), cv2.FONT_HERSHEY_SIMPLEX, 0.7, (255,), 2, cv2.LINE_AA)
    share = net[..., None] / np.float32(255)
    marked, rest = (np.rint(calm + alpha * share * (235 - calm)).astype(np.uint8) for alpha in (0.4, 0.04))
    tight = net > 60
    loose = cv2.dilate(tight.view(np.uint8), np.ones((5, 5), np.uint8)).view(np.bool_)
    plane = loose.view(np.uint8) * np.uint8(100)
    mark = Detection(
        300, 420, 1, tight, loose, plane, plane, np.repeat(plane[..., None], 3, 2), plane, 1.0,
        (Region(0, 0, 420, 300, 1.0, int(tight.sum())),), repeated=True,
    )  # fmt: skip
    gone, legible = (confidence.of_computed(measure_evidence(marked, each, mark)) for each in (calm, rest))
    assert of_confidence(gone) is Verdict.CLEAN
    assert of_confidence(legible) is not Verdict.CLEAN


@pytest.mark.slow
def test_the_evidence_on_a_large_picture_is_gathered_on_a_smaller_copy(plated: tuple[Picture, Detection]) -> None:
    marked, detection = plated
    wide = np.zeros((2000, 2400), np.bool_)
    wide[100:1900:300, 100:2300] = True
    picture = cv2.resize(marked, (2400, 2000)).astype(np.uint8)
    plane = wide.view(np.uint8) * np.uint8(200)
    tint = np.repeat(plane[..., None], 3, 2)
    large = dataclasses.replace(
        detection, height=2000, width=2400, tight=wide, loose=wide, likely=plane, strength=plane, tint=tint,
        doubt=plane, certainty=None, allowed=None,
    )  # fmt: skip
    evidence = measure_evidence(picture, picture, large)
    assert all(np.isfinite(each) for each in evidence)
    assert len(evidence) == len(Evidence._fields)


def test_one_limit_divides_clean_look_and_poor() -> None:
    assert of_confidence(MIN_CLEAN_CONFIDENCE) is Verdict.CLEAN
    assert of_confidence(MIN_CLEAN_CONFIDENCE - 0.01) is Verdict.LOOK
    assert of_confidence(MIN_CONFIDENCE - 0.01) is Verdict.POOR


@pytest.mark.parametrize(
    ("chance", "verdict", "refused"),
    [(0.7, Verdict.CLEAN, None), (0.5, Verdict.LOOK, None), (0.39, None, FailureCode.POOR_RESULT)],
)
@pytest.mark.parametrize("accepted", [False, True])
def test_only_a_poor_result_is_held_back_and_only_unless_it_is_accepted(
    plated: tuple[Picture, Detection],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    chance: float,
    verdict: Verdict | None,
    refused: FailureCode | None,
    accepted: bool,
) -> None:
    """What is held back is not charged: the service fails the task with the code."""
    marked, detection = plated
    Image.fromarray(marked).save(tmp_path / "source.png")
    detection_file.save(detection, str(tmp_path / Names.DETECTION))
    done = Restoration(marked // 2, chance, 10, 20)
    monkeypatch.setattr(stages, "restore", lambda *_, **__: done)
    order = Order(str(tmp_path / "source.png"), str(tmp_path / "result.png"), media="IMAGE", accept_poor=accepted)
    report = stages.inpaint(StageOrder(order, Stage.INPAINTING, str(tmp_path)), lambda _: None)
    assert report.refused is (None if accepted else refused)
    assert report.facts["verdict"] is (verdict or Verdict.POOR)
    assert report.keeps == [Names.RESTORED if report.refused is None else Names.HELD_BACK]


@pytest.mark.slow
@needs_inpainter
def test_the_command_writes_both_ways_of_filling_in(tmp_path: Path, plated: tuple[Picture, Detection]) -> None:
    Image.fromarray(plated[0]).save(tmp_path / "meadow.png")
    mask = np.zeros(plated[0].shape[:2], np.uint8)
    mask[180:230, 150:300] = 255
    Image.fromarray(mask).save(tmp_path / "mask.png")
    options = ("--mask", "mask.png", "--variants", "--accept-poor")

    def remove(*words: str) -> subprocess.CompletedProcess[str]:
        command = [*HEADRACE, "remove", *words]
        return subprocess.run(
            command, env=environment(), cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
        )

    done = remove("meadow.png", *options)
    assert done.returncode == 0, done.stderr
    assert "meadow.clean.variant.png" in done.stderr
    first, second = (Image.open(tmp_path / f"meadow.clean{each}.png") for each in ("", ".variant"))
    assert first.size == second.size
    assert first.tobytes() != second.tobytes()
    (tmp_path / "mask.png").unlink()
    folder = remove(".", "--accept-poor", "--force")
    assert "variant" not in folder.stdout + folder.stderr, "a variant is a result, no source"
