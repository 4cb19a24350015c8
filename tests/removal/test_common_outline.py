"""A mark that eight pictures have in common: its outline adds up, and its opacity is read along its sides."""

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from headrace.removal.images import shared_mark
from headrace.removal.images.views import dissolved, persistence
from headrace.removal.images.views.solving import Guess
from tests.removal import clips

Picture = NDArray[np.uint8]
HEIGHT, WIDTH = 160, 240
ALPHA = 0.35


def scenes(count: int) -> list[Picture]:
    rng = np.random.default_rng(36)
    found = []
    for _ in range(count):
        soft = cv2.resize(rng.uniform(0, 255, (6, 9, 3)).astype(np.float32), (WIDTH, HEIGHT))
        rough = cv2.resize(rng.normal(0, 22, (40, 60, 3)).astype(np.float32), (WIDTH, HEIGHT))
        found.append(np.clip(soft + rough + rng.normal(0, 2, soft.shape), 0, 255).astype(np.uint8))
    return found


def logo() -> tuple[NDArray[np.float32], Picture]:
    """A red disc with a yellow square, and a blue word beside it: how much each pixel is covered, and its colour."""
    cover, colour = np.zeros((HEIGHT, WIDTH), np.uint8), np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    for shape, ink in (("disc", (200, 40, 40)), ("square", (240, 210, 50)), ("word", (40, 80, 200))):
        part = np.zeros_like(cover)
        if shape == "disc":
            cv2.circle(part, (70, 80), 34, 255, -1, cv2.LINE_AA)
        elif shape == "square":
            cv2.rectangle(part, (56, 66), (84, 94), 255, -1)
        else:
            cv2.putText(part, "Vista", (112, 92), cv2.FONT_HERSHEY_DUPLEX, 1.3, 255, 5, cv2.LINE_AA)
        cover = np.maximum(cover, part)
        colour[part > 0] = ink
    return cover.astype(np.float32) / np.float32(255), colour


def marked(pictures: list[Picture]) -> list[Picture]:
    cover, colour = logo()
    alpha = ALPHA * cover[..., None]
    return [np.rint(each * (1 - alpha) + colour * alpha).astype(np.uint8) for each in pictures]


def nothing() -> Guess:
    empty = np.zeros((HEIGHT, WIDTH), np.bool_)
    return Guess(empty, empty.copy(), np.zeros((HEIGHT, WIDTH), np.float32), np.zeros((HEIGHT, WIDTH, 3), np.float32))


def test_eight_pictures_tell_a_dissolved_logo_by_themselves() -> None:  # W-03
    """The network saw nothing of half-transparent coloured logos, or the disc without the word."""
    pictures = scenes(10)
    views, cover = marked(pictures), logo()[0]
    guess = persistence.completed(views, nothing())
    assert guess.tight[cover > 0.9].mean() > 0.9
    assert guess.tight[cover == 0].mean() < 0.05
    matte = dissolved.solve_dissolved(views, guess)
    assert matte is not None
    assert float(matte.alpha.max()) == pytest.approx(ALPHA, abs=0.08)
    mask = cover > 0.02
    for view, picture in zip(views, pictures, strict=True):
        result = shared_mark.take_off(view, matte).picture
        assert clips.inside(result, picture, mask) > clips.inside(view, picture, mask) + 6


def test_a_part_that_the_network_missed_is_completed() -> None:
    views, cover = marked(scenes(10)), logo()[0]
    known = nothing()
    known.tight[46:115, 36:105] = cover[46:115, 36:105] > 0.9
    known.alpha[known.tight] = 0.4
    completed = persistence.completed(views, known)
    assert completed.tight[:, 112:][cover[:, 112:] > 0.9].mean() > 0.9


def test_pictures_without_a_mark_and_views_of_one_window_have_no_common_outline() -> None:
    pictures = scenes(10)
    assert not persistence.outlines(pictures).any()
    assert not persistence.completed(pictures, nothing()).tight.any()
    window = marked([pictures[0]] * 10)  # screenshots: what they share is their content
    assert not persistence.outlines(window).any()
    gains = np.linspace(0.4, 1.15, 10)
    tripod = [np.clip(scene * gain, 0, 255).astype(np.uint8) for scene, gain in zip(window, gains, strict=True)]
    assert not persistence.outlines(tripod).any()
    assert not persistence.outlines(marked(pictures)[: persistence.MIN_VIEWS - 1]).any()
