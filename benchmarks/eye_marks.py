"""Marks for the eye's benchmark, drawn by other means than training's: other code, fonts that training never saw.

The fonts are those inside OpenCV (Rubik, WenQuanYi Micro Hei) and Pillow (Aileron): every machine draws the same.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

Plane = NDArray[np.float32]

LATIN = (
    "Studio Nord",
    "SAMPLE",
    "© 2026 Mara Lind",
    "preview only",
    "hello@fjord.example",
    "PROOF 0417",
    "Tern & Gull",
)
CHINESE = ("版权所有", "仅供预览", "禁止转载", "王小明摄影", "内部资料", "样图 0417")


@dataclass(frozen=True)
class Mark:
    """What lies over a picture: marked = (1 - alpha) picture + colour."""

    alpha: Plane  # H W
    colour: Plane  # H W 3, times alpha, 0 to 1

    def over(self, picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
        mixed = (1 - self.alpha[..., None]) * picture + self.colour * 255
        return np.clip(np.rint(mixed), 0, 255).astype(np.uint8)


def ink(text: str, rng: np.random.Generator, *, weight: int = 0) -> Plane:
    """The text's coverage, 160 pixels high letters."""
    if rng.random() < 0.3 and text.isascii():
        font = ImageFont.load_default(160)
        left, top, right, bottom = font.getbbox(text)
        image = Image.new("L", (int(right - left) + 16, int(bottom - top) + 16))
        ImageDraw.Draw(image).text((8 - left, 8 - top), text, font=font, fill=255)
        drawn = np.asarray(image)
    else:
        face = cv2.FontFace("uni" if not text.isascii() else str(rng.choice(["sans", "italic"])))
        canvas = np.zeros((320, 160 * (len(text) + 2) * 2), np.uint8)
        cv2.putText(canvas, text, (40, 220), (255,), face, 160, weight or int(rng.choice([300, 400, 600, 800])))
        rows, columns = np.nonzero(canvas.max(1))[0], np.nonzero(canvas.max(0))[0]
        drawn = canvas[rows[0] - 8 : rows[-1] + 9, columns[0] - 8 : columns[-1] + 9]
    return drawn.astype(np.float32) / 255


def placed(shape: Plane, size: tuple[int, int], at: tuple[float, float], height: float, angle: float) -> Plane:
    """The shape, ``height`` pixels high, turned by ``angle`` degrees, its middle at x, y of an empty plane."""
    scale = height / shape.shape[0]
    if scale < 1:
        shape = cv2.resize(shape, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
        scale = 1.0
    matrix = cv2.getRotationMatrix2D((shape.shape[1] / 2, shape.shape[0] / 2), angle, scale)
    matrix[:, 2] += np.array(at) - np.array((shape.shape[1] / 2, shape.shape[0] / 2))
    return cv2.warpAffine(shape, matrix, (size[1], size[0]), flags=cv2.INTER_LINEAR)


def _repeated(shape: Plane, size: tuple[int, int], height: float, angle: float, rng: np.random.Generator) -> Plane:
    width = shape.shape[1] * height / shape.shape[0]
    across, down = width + height * rng.uniform(0.8, 2.5), height * rng.uniform(2.2, 4)
    plane, reach = np.zeros(size, np.float32), int(np.hypot(*size))
    turn = np.radians(angle)
    for row, v in enumerate(np.arange(-reach, reach, down)):
        for u in np.arange(-reach, reach, across) + (row % 2) * across / 2:
            x = size[1] / 2 + u * np.cos(turn) + v * np.sin(turn)
            y = size[0] / 2 - u * np.sin(turn) + v * np.cos(turn)
            if -width < x < size[1] + width and -width < y < size[0] + width:
                plane = np.maximum(plane, placed(shape, size, (x, y), height, angle))
    return plane


def _hue(rng: np.random.Generator) -> NDArray[np.float64]:
    kind = rng.random()
    if kind < 0.6:
        return np.ones(3)
    if kind < 0.75:
        return np.full(3, rng.uniform(0, 0.1))
    return np.full(3, rng.uniform(0.5, 0.8)) if kind < 0.85 else rng.random(3)


def _plain(coverage: Plane, alpha: float, colour: NDArray[np.float64]) -> Mark:
    a = coverage * np.float32(alpha)
    return Mark(a, a[..., None] * colour.astype(np.float32))


def _over(below: Mark, above: Mark) -> Mark:
    keep = 1 - above.alpha
    return Mark(below.alpha * keep + above.alpha, below.colour * keep[..., None] + above.colour)


def tiled(size: tuple[int, int], rng: np.random.Generator) -> Mark:
    shape = ink(str(rng.choice(LATIN)), rng)
    angle = float(rng.choice([-1, 1])) * rng.uniform(18, 40)
    plane = _repeated(shape, size, rng.uniform(24, 44), angle, rng)
    return _plain(plane, rng.uniform(0.25, 0.5), _hue(rng))


def large_text(size: tuple[int, int], rng: np.random.Generator) -> Mark:
    shape = ink(str(rng.choice(LATIN)), rng, weight=700)
    height = min(rng.uniform(90, 190), 0.85 * size[1] * shape.shape[0] / shape.shape[1])
    at = (size[1] * rng.uniform(0.42, 0.58), size[0] * rng.uniform(0.35, 0.65))
    return _plain(placed(shape, size, at, height, rng.uniform(-30, 30)), rng.uniform(0.3, 0.6), _hue(rng))


def outlined(size: tuple[int, int], rng: np.random.Generator) -> Mark:
    shape = ink(str(rng.choice(LATIN)), rng, weight=700)
    height = min(rng.uniform(60, 120), 0.8 * size[1] * shape.shape[0] / shape.shape[1])
    at = (size[1] * rng.uniform(0.45, 0.55), size[0] * rng.uniform(0.2, 0.8))
    inner = placed(shape, size, at, height, rng.uniform(-15, 15))
    grown = cv2.dilate(inner, cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (5, 5)))
    ring, alpha = np.clip(grown - inner, 0, 1), rng.uniform(0.4, 0.8)
    line = _plain(ring, alpha, np.full(3, rng.uniform(0, 0.2)))
    return _over(line, _plain(inner, alpha * rng.uniform(0.4, 1), np.ones(3)))


def _corner(size: tuple[int, int], radius: float, rng: np.random.Generator) -> tuple[float, float]:
    gap = radius + rng.uniform(12, 40)
    x = gap if rng.random() < 0.5 else size[1] - gap
    return x, gap if rng.random() < 0.4 else size[0] - gap


def _shield(rng: np.random.Generator) -> Plane:
    """A shield or a disc with letters or a bird cut out of it."""
    plane = np.zeros((320, 320), np.float32)
    if rng.random() < 0.5:
        outline = np.array([(20, 30), (160, 8), (300, 30), (290, 180), (160, 312), (30, 180)])
        cv2.fillPoly(plane, [outline], 1.0, cv2.LINE_AA)
    else:
        cv2.circle(plane, (160, 160), 150, 1.0, -1, cv2.LINE_AA)
    if rng.random() < 0.5:
        letters = ink(str(rng.choice(["N", "TG", "fjd", "海", "M7"])), rng, weight=700)
        scale = min(190 / letters.shape[1], 150 / letters.shape[0])
        return plane * (1 - placed(letters, plane.shape, (160, 160), letters.shape[0] * scale, 0))  # type: ignore[arg-type]
    wings = np.array([(50, 120), (150, 150), (160, 130), (170, 150), (270, 120), (185, 190), (160, 240), (135, 190)])
    cut = np.zeros_like(plane)
    cv2.fillPoly(cut, [wings], 1.0, cv2.LINE_AA)
    return plane * (1 - cut)


def _logo(size: tuple[int, int], rng: np.random.Generator, alpha: float) -> Mark:
    radius = rng.uniform(40, 75)
    plane = placed(_shield(rng), size, _corner(size, radius, rng), 2 * radius, 0)
    return _plain(plane, alpha, _hue(rng))


def logo_opaque(size: tuple[int, int], rng: np.random.Generator) -> Mark:
    return _logo(size, rng, 1.0)


def logo_semi(size: tuple[int, int], rng: np.random.Generator) -> Mark:
    return _logo(size, rng, rng.uniform(0.4, 0.7))


def logo_colours(size: tuple[int, int], rng: np.random.Generator) -> Mark:
    """Rings and wedges in three colours, opaque or nearly."""
    radius, turn = rng.uniform(40, 75), rng.uniform(0, 360)
    at, alpha = _corner(size, radius, rng), rng.uniform(0.75, 1)
    mark = _plain(np.zeros(size, np.float32), 0, np.zeros(3))
    for k, reach in enumerate((150, 110, 60)):
        plane = np.zeros((320, 320), np.float32)
        spread = 360 if k == 0 else 230
        cv2.ellipse(plane, (160, 160), (reach, reach), turn + 70 * k, 0, spread, 1.0, -1, cv2.LINE_AA)
        mark = _over(mark, _plain(placed(plane, size, at, 2 * radius, 0), 1.0, rng.random(3)))
    return Mark(mark.alpha * np.float32(alpha), mark.colour * np.float32(alpha))


def logo_shadow(size: tuple[int, int], rng: np.random.Generator) -> Mark:
    """A word in the corner with a soft shadow below it."""
    shape = ink(str(rng.choice(LATIN)), rng, weight=600)
    height = rng.uniform(26, 44)
    width = shape.shape[1] * height / shape.shape[0]
    at = (size[1] - width / 2 - 20, size[0] - height - rng.uniform(5, 40))
    plane, alpha = placed(shape, size, at, height, 0), rng.uniform(0.7, 1)
    lower = cv2.GaussianBlur(placed(shape, size, (at[0] + 2, at[1] + 3), height, 0), (0, 0), 2)
    return _over(_plain(lower, alpha * 0.7, np.zeros(3)), _plain(plane, alpha, np.ones(3)))


def stamp(size: tuple[int, int], rng: np.random.Generator) -> Mark:
    """A red seal: a ring, words along it, a star."""
    plane = np.zeros((400, 400), np.float32)
    cv2.circle(plane, (200, 200), 185, 1.0, int(rng.integers(8, 20)), cv2.LINE_AA)
    words = str(rng.choice(CHINESE)).replace(" ", "") + "2026"
    for i, letter in enumerate(words):
        turn = -130 + 260 * i / (len(words) - 1)
        angle = np.radians(turn - 90)
        at = (200 + 140 * np.cos(angle), 200 + 140 * np.sin(angle))
        drawn = ink(letter, rng, weight=600)
        plane = np.maximum(plane, placed(drawn, plane.shape, at, 44, -turn))  # type: ignore[arg-type]
    tips = [(200 + r * np.sin(k * np.pi / 5), 200 - r * np.cos(k * np.pi / 5)) for k, r in enumerate([60, 24] * 5)]
    cv2.fillPoly(plane, [np.rint(tips).astype(np.int32)], 1.0, cv2.LINE_AA)
    at = (size[1] * rng.uniform(0.2, 0.8), size[0] * rng.uniform(0.25, 0.75))
    red = np.array([rng.uniform(0.7, 0.95), rng.uniform(0, 0.2), rng.uniform(0, 0.2)])
    angle = rng.uniform(-20, 20)
    return _plain(placed(plane, size, at, rng.uniform(130, 230), angle), rng.uniform(0.55, 0.9), red)


def chinese(size: tuple[int, int], rng: np.random.Generator) -> Mark:
    shape = ink(str(rng.choice(CHINESE)), rng)
    if rng.random() < 0.5:
        plane = _repeated(shape, size, rng.uniform(28, 46), rng.uniform(15, 35), rng)
        return _plain(plane, rng.uniform(0.25, 0.5), _hue(rng))
    height = min(rng.uniform(80, 150), 0.8 * size[1] * shape.shape[0] / shape.shape[1])
    plane = placed(shape, size, (size[1] / 2, size[0] * rng.uniform(0.3, 0.7)), height, rng.uniform(-25, 25))
    return _plain(plane, rng.uniform(0.3, 0.6), _hue(rng))


KINDS: Mapping[str, Callable[[tuple[int, int], np.random.Generator], Mark]] = {
    "tiled": tiled,
    "large_text": large_text,
    "outlined": outlined,
    "logo_opaque": logo_opaque,
    "logo_semi": logo_semi,
    "logo_colours": logo_colours,
    "logo_shadow": logo_shadow,
    "stamp": stamp,
    "chinese": chinese,
}
