"""The families of ``benchmarks.eye_wild``: marks as strangers put them on, in sizes that fit the picture.

Drawn by other code than training's, with the fonts inside OpenCV and Pillow, which training never saw.
"""

from collections.abc import Callable, Mapping
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from benchmarks.eye_marks import Mark, Plane, ink, placed

Size = tuple[int, int]
Rng = np.random.Generator
Colour = NDArray[Any]

WHITE, BLACK = np.ones(3), np.zeros(3)
_NAMES = ("Nordlys Foto", "Ida Ravn", "kelp & stone", "Atelier Vey", "J. Ostrow", "blue harbour", "Moss&Co")
_STOCK = ("pictora", "STOCKHAUS", "imagewell", "fotovia", "lumapix")
_CHINESE = ("微博 @青山见", "小红书 @阿满", "视觉中国", "图虫 @老陈", "知乎 @远山", "抖音号 88213")


def _plain(coverage: Plane, alpha: float, colour: Colour) -> Mark:
    a = coverage * np.float32(alpha)
    return Mark(a, a[..., None] * colour.astype(np.float32))


def _over(below: Mark, above: Mark) -> Mark:
    keep = 1 - above.alpha
    return Mark(below.alpha * keep + above.alpha, below.colour * keep[..., None] + above.colour)


def _blurred(plane: Plane, sigma: float) -> Plane:
    return cv2.GaussianBlur(plane, (0, 0), max(sigma, 0.3))  # type: ignore[return-value]


def _unit(size: Size) -> float:
    """A thousandth of the shorter side: marks grow with the picture."""
    return min(size) / 1000


def _fitted(shape: Plane, size: Size, height: float, share: float = 0.85) -> float:
    """The height that keeps the shape within that share of the picture's width; never too small to be seen."""
    return max(9.0, min(height, share * size[1] * shape.shape[0] / shape.shape[1]))


def _in_corner(shape: Plane, size: Size, height: float, rng: Rng, *, right: bool | None = None) -> Plane:
    height = _fitted(shape, size, height, 0.6)
    width = shape.shape[1] * height / shape.shape[0]
    gap = min(size) * rng.uniform(0.02, 0.05)
    to_right = bool(rng.random() < 0.6) if right is None else right
    x = size[1] - gap - width / 2 if to_right else gap + width / 2
    y = size[0] - gap - height / 2 if rng.random() < 0.8 else gap + height / 2
    return placed(shape, size, (x, y), height, 0)


def _strewn(shape: Plane, size: Size, height: float, pitch: tuple[float, float], angle: float) -> Plane:
    """Copies all over, in rows that are set off by half a step, turned as a whole."""
    reach = int(np.hypot(*size)) + 8
    plane = np.zeros((reach, reach), np.float32)
    small = placed(shape, (int(height) + 3, int(shape.shape[1] * height / shape.shape[0]) + 3),
                   (shape.shape[1] * height / shape.shape[0] / 2 + 1, height / 2 + 1), height, 0)  # fmt: skip
    for row, top in enumerate(np.arange(0, reach - small.shape[0], pitch[1]).astype(int)):
        for left in np.arange((row % 2) * pitch[0] / 2, reach - small.shape[1], pitch[0]).astype(int):
            part = plane[top : top + small.shape[0], left : left + small.shape[1]]
            np.maximum(part, small, out=part)
    matrix = cv2.getRotationMatrix2D((reach / 2, reach / 2), angle, 1.0)
    matrix[:, 2] += np.array((size[1] - reach, size[0] - reach)) / 2
    return cv2.warpAffine(plane, matrix, (size[1], size[0]), flags=cv2.INTER_LINEAR)  # type: ignore[return-value]


def _emblem(rng: Rng) -> list[Plane]:
    """Parts of an emblem on 320 x 320, from below: a shape, what is cut out of it or drawn on it."""
    shape, sign = np.zeros((320, 320), np.float32), np.zeros((320, 320), np.float32)
    kind = int(rng.integers(4))
    if kind == 0:
        cv2.circle(shape, (160, 160), 150, 1.0, -1, cv2.LINE_AA)
        cv2.ellipse(sign, (160, 160), (95, 95), 0, 30, 300, 1.0, 34, cv2.LINE_AA)
    elif kind == 1:
        cv2.fillPoly(shape, [np.array([(160, 10), (310, 290), (10, 290)])], 1.0, cv2.LINE_AA)
        cv2.circle(sign, (160, 200), 52, 1.0, -1, cv2.LINE_AA)
    elif kind == 2:
        cv2.fillPoly(
            shape, [np.array([(160, 8), (296, 84), (296, 236), (160, 312), (24, 236), (24, 84)])], 1.0, cv2.LINE_AA
        )
        letters = ink(str(rng.choice(["K", "VX", "海", "A3"])), rng, weight=700)
        sign = placed(letters, (320, 320), (160, 160), min(150, 180 * letters.shape[0] / letters.shape[1]), 0)
    else:
        cv2.circle(shape, (160, 160), 146, 1.0, 26, cv2.LINE_AA)
        peaks = np.array([(40, 230), (120, 110), (165, 180), (205, 130), (285, 230)])
        cv2.fillPoly(shape, [peaks], 1.0, cv2.LINE_AA)
    return [shape, sign]


def _with_words(shape: Plane, words: str, rng: Rng) -> Plane:
    """The shape with words to its right, 320 high."""
    letters = ink(words, rng)
    high = 130.0
    wide = int(letters.shape[1] * high / letters.shape[0])
    plane = np.zeros((320, 350 + wide + 10), np.float32)
    plane[:, :320] = shape
    return np.maximum(plane, placed(letters, plane.shape, (350 + wide / 2, 160), high, 0))  # type: ignore[arg-type]


def stock_net(size: Size, rng: Rng) -> Mark:
    """Thin lines that cross all over the picture, a name at every crossing."""
    unit, lines = _unit(size), np.zeros(size, np.float32)
    pitch = int(max(70, unit * rng.uniform(220, 380)))
    thick = max(1, round(unit * rng.uniform(1.2, 3)))
    for start in range(-size[0], size[1] + size[0], pitch):
        cv2.line(lines, (start, 0), (start + size[0], size[0]), 1.0, thick, cv2.LINE_AA)
        cv2.line(lines, (start, 0), (start - size[0], size[0]), 1.0, thick, cv2.LINE_AA)
    shape = ink(str(rng.choice(_STOCK)), rng)
    words = _strewn(shape, size, _fitted(shape, size, unit * rng.uniform(34, 56), 0.25), (pitch, pitch / 2), 0)
    alpha, colour = rng.uniform(0.25, 0.5), WHITE if rng.random() < 0.8 else np.full(3, 0.15)
    return _plain(np.maximum(words, 0.8 * lines), alpha, colour)


def centred_logo(size: Size, rng: Rng) -> Mark:
    shape, sign = _emblem(rng)
    high = min(size) * rng.uniform(0.28, 0.5)
    at = (size[1] * rng.uniform(0.45, 0.55), size[0] * rng.uniform(0.42, 0.58))
    alpha = float(rng.choice([rng.uniform(0.3, 0.6), rng.uniform(0.6, 0.9), 1.0]))
    colour = WHITE if rng.random() < 0.6 else rng.random(3)
    return _plain(placed(shape * (1 - sign), size, at, high, 0), alpha, colour)


def signature(size: Size, rng: Rng) -> Mark:
    """A name written by hand: loops along a line, thin and thick with the pen's way, and a flourish below."""
    t = np.linspace(0, 1, 900)
    waves = sum(rng.uniform(0.3, 1) * np.sin(2 * np.pi * (k * t + rng.random())) for k in (5, 9, 14))
    x = 60 + 900 * t + 34 * np.sin(2 * np.pi * 11 * t + rng.uniform(0, 6))
    y = 150 + 42 * waves * (0.35 + 0.65 * np.exp(-3 * ((t * 3) % 1)))
    plane = np.zeros((320, 1060), np.float32)
    pen = 4 + 3 * np.sin(np.arctan2(np.gradient(y), np.gradient(x)) - 0.6)
    for i in range(len(t) - 1):
        ends = [(int(8 * px), int(8 * py)) for px, py in ((x[i], y[i]), (x[i + 1], y[i + 1]))]
        cv2.line(plane, ends[0], ends[1], 1.0, max(1, round(float(pen[i]))), cv2.LINE_AA, 3)
    cv2.ellipse(plane, (520, 40), (430, 240), 0, 62, 118, 1.0, 4, cv2.LINE_AA)
    colour = WHITE if rng.random() < 0.6 else BLACK if rng.random() < 0.6 else np.array((0.1, 0.15, 0.5))
    return _plain(_in_corner(plane, size, _unit(size) * rng.uniform(110, 190), rng), rng.uniform(0.65, 1), colour)


_SEGMENTS = ("abcdef", "bc", "abged", "abgcd", "fgbc", "afgcd", "afgedc", "abc", "abcdefg", "abcdfg")
_LINES = {
    "a": (0, 0, 1, 0),
    "b": (1, 0, 1, 1),
    "c": (1, 1, 1, 2),
    "d": (0, 2, 1, 2),
    "e": (0, 1, 0, 2),
    "f": (0, 0, 0, 1),
    "g": (0, 1, 1, 1),
}


def date_stamp(size: Size, rng: Rng) -> Mark:
    """Orange digits of a camera, of segments or plain letters, that glow into the film."""
    date = f"{rng.integers(1, 13):02} {rng.integers(1, 29):02} '{rng.integers(88, 100)}"
    if rng.random() < 0.6:
        shape = np.zeros((240, 130 * len(date)), np.float32)
        for i, sign in enumerate(date):
            if sign == "'":
                cv2.line(shape, (130 * i + 60, 30), (130 * i + 50, 70), 1.0, 18, cv2.LINE_AA)
            for segment in _SEGMENTS[int(sign)] if sign.isdigit() else ():
                x0, y0, x1, y1 = _LINES[segment]
                ends = [(130 * i + 30 + 70 * x, 30 + 90 * y) for x, y in ((x0, y0), (x1, y1))]
                cv2.line(shape, ends[0], ends[1], 1.0, 18, cv2.LINE_AA)
    else:
        shape = ink(date.replace(" ", "."), rng)
    high = max(12, _unit(size) * rng.uniform(32, 55))
    core = _in_corner(shape, size, high, rng, right=True)
    hue = np.array((1.0, rng.uniform(0.35, 0.7), rng.uniform(0.05, 0.25)))
    glow = _plain(
        np.clip(_blurred(core, high * rng.uniform(0.12, 0.3)) * 1.6, 0, 1),
        rng.uniform(0.35, 0.7),
        hue * np.array((1, 0.6, 0.4)),
    )
    return _over(glow, _plain(_blurred(core, high * 0.02), rng.uniform(0.85, 1), np.clip(hue * 1.05, 0, 1)))


def shot_on(size: Size, rng: Rng) -> Mark:
    """A phone's line: two rings and what it was shot on."""
    icon = np.zeros((320, 320), np.float32)
    for x in (90, 220):
        cv2.circle(icon, (x, 160), 62, 1.0, 22, cv2.LINE_AA)
    shape = _with_words(icon, str(rng.choice(["SHOT ON NOVA 9", "SHOT ON KITE 12 PRO", "AI QUAD CAMERA"])), rng)
    plane = _in_corner(shape, size, max(16, _unit(size) * rng.uniform(60, 95)), rng, right=False)
    return _plain(plane, rng.uniform(0.75, 1), WHITE)


def social(size: Size, rng: Rng) -> Mark:
    """An app's mark and a name, white, with a wide soft shadow."""
    icon = np.zeros((320, 320), np.float32)
    cv2.rectangle(icon, (60, 60), (260, 260), 1.0, 26, cv2.LINE_AA)
    cv2.circle(icon, (160, 160), 56, 1.0, 24, cv2.LINE_AA)
    shape = _with_words(icon, f"@{str(rng.choice(_NAMES)).replace(' ', '_').lower()}", rng)
    high = max(16, _unit(size) * rng.uniform(60, 110))
    core = _in_corner(shape, size, high, rng)
    drop = np.roll(core, round(high * 0.02), (0, 1))
    shade = np.clip(_blurred(drop, high * rng.uniform(0.05, 0.16)) * rng.uniform(1.2, 2), 0, 1)
    return _over(_plain(shade, rng.uniform(0.35, 0.75), BLACK), _plain(core, rng.uniform(0.8, 1), WHITE))


def chinese_corner(size: Size, rng: Rng) -> Mark:
    shape = ink(str(rng.choice(_CHINESE)), rng)
    core = _in_corner(shape, size, max(13, _unit(size) * rng.uniform(32, 60)), rng)
    mark = _plain(core, rng.uniform(0.6, 0.95), WHITE)
    if rng.random() < 0.5:
        edge = cv2.dilate(core, np.ones((3, 3), np.uint8))
        mark = _over(_plain(edge, 0.45, BLACK), mark)
    return mark


def worn_stamp(size: Size, rng: Rng) -> Mark:
    """A rubber stamp: a frame and a word, the ink uneven and worn off in places."""
    word = str(rng.choice(["APPROVED", "SAMPLE", "样品", "COPY", "作废", "PAID"]))
    letters = ink(word, rng, weight=800)
    wide = int(letters.shape[1] * 150 / letters.shape[0])
    shape = np.zeros((300, wide + 120), np.float32)
    if rng.random() < 0.6:
        cv2.rectangle(shape, (16, 16), (shape.shape[1] - 16, 284), 1.0, 16, cv2.LINE_AA)
    else:
        cv2.ellipse(shape, (shape.shape[1] // 2, 150), (shape.shape[1] // 2 - 14, 136), 0, 0, 360, 1.0, 14, cv2.LINE_AA)
    shape = np.maximum(shape, placed(letters, shape.shape, (shape.shape[1] / 2, 150), 130, 0))  # type: ignore[arg-type]
    noise = rng.random(shape.shape).astype(np.float32)
    wear = 0.6 * _blurred(noise, 9) * 9 + 0.4 * _blurred(noise, 1.5) * 2
    wear = (wear - wear.mean()) / wear.std()
    shape *= np.clip(1.15 - 0.55 * np.clip(wear, 0, 2.2), 0.05, 1)
    at = (size[1] * rng.uniform(0.25, 0.75), size[0] * rng.uniform(0.25, 0.75))
    high = _fitted(shape, size, min(size) * rng.uniform(0.16, 0.32), 0.6)
    colour = np.array((rng.uniform(0.7, 0.9), rng.uniform(0.02, 0.2), rng.uniform(0.05, 0.2)))
    if rng.random() < 0.2:
        colour = np.array((0.1, 0.15, 0.6))
    return _plain(placed(shape, size, at, high, rng.uniform(-25, 25)), rng.uniform(0.65, 0.95), colour)


def dense_grey(size: Size, rng: Rng) -> Mark:
    shape = ink(str(rng.choice(["INTERNAL USE", "内部资料 请勿外传", "preview", "u10482 ida", "confidential"])), rng)
    high = max(11, _unit(size) * rng.uniform(22, 38))
    wide = shape.shape[1] * high / shape.shape[0]
    pitch = (wide + high * rng.uniform(1, 2.5), high * rng.uniform(2.2, 3.5))
    plane = _strewn(shape, size, high, pitch, rng.uniform(15, 40) * rng.choice([-1, 1]))
    return _plain(plane, rng.uniform(0.2, 0.42), np.full(3, rng.uniform(0.45, 0.7)))


def outline(size: Size, rng: Rng) -> Mark:
    """A large word that is nothing but its outline."""
    shape = ink(str(rng.choice(["PREVIEW", "Sample", "PROOF", "Ida Ravn"])), rng, weight=800)
    high = _fitted(shape, size, min(size) * rng.uniform(0.14, 0.3))
    at = (size[1] * rng.uniform(0.46, 0.54), size[0] * rng.uniform(0.35, 0.65))
    inner = placed(shape, size, at, high, rng.uniform(-25, 25))
    width = max(3, round(high * rng.uniform(0.025, 0.05)) | 1)
    grown = cv2.dilate(inner, cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (width, width)))
    return _plain(np.clip(grown - inner, 0, 1), rng.uniform(0.45, 0.95), WHITE if rng.random() < 0.75 else BLACK)


def gradient_logo(size: Size, rng: Rng) -> Mark:
    """An emblem in a corner whose colour runs from one hue to another, a white sign on it."""
    shape, sign = _emblem(rng)
    high = max(34, min(size) * rng.uniform(0.12, 0.24))
    gap = high / 2 + min(size) * rng.uniform(0.02, 0.06)
    at = (size[1] - gap if rng.random() < 0.6 else gap, size[0] - gap if rng.random() < 0.6 else gap)
    plate, above = placed(shape, size, at, high, 0), placed(sign * shape, size, at, high, 0)
    turn = rng.uniform(0, 2 * np.pi)
    rows, columns = np.indices(size, np.float32)
    ramp = np.clip(((columns - at[0]) * np.cos(turn) + (rows - at[1]) * np.sin(turn)) / high + 0.5, 0, 1)[..., None]
    one, other = (np.array(cv2.cvtColor(np.uint8([[[rng.integers(180), 230, 240]]]), cv2.COLOR_HSV2RGB)[0, 0]) / 255
                  for _ in range(2))  # fmt: skip
    alpha = float(rng.choice([1.0, rng.uniform(0.6, 0.95)]))
    a = plate * np.float32(alpha)
    below = Mark(a, (a[..., None] * (one + (other - one) * ramp)).astype(np.float32))
    return _over(below, _plain(above, alpha, WHITE))


def tiled_logo(size: Size, rng: Rng) -> Mark:
    shape, sign = _emblem(rng)
    high = max(22, _unit(size) * rng.uniform(60, 110))
    pitch = (high * rng.uniform(1.8, 3), high * rng.uniform(1.6, 2.6))
    plane = _strewn(shape * (1 - sign), size, high, pitch, rng.uniform(-35, 35))
    return _plain(plane, rng.uniform(0.16, 0.4), WHITE if rng.random() < 0.7 else BLACK)


def band(size: Size, rng: Rng) -> Mark:
    """A strip from edge to edge with words on it."""
    thick = max(16.0, min(size) * rng.uniform(0.06, 0.14))
    shape = ink(str(rng.choice([*_NAMES, "www.fotovia.example", "仅供预览 请勿转载"])), rng)
    middle = size[0] * float(rng.choice([rng.uniform(0.1, 0.25), rng.uniform(0.4, 0.6), rng.uniform(0.75, 0.9)]))
    angle = 0.0 if rng.random() < 0.75 else float(rng.uniform(-25, 25))
    strip = placed(np.ones((64, 4000), np.float32), size, (size[1] / 2, middle), thick, angle)
    strip = np.maximum(strip, placed(np.ones((64, 9000), np.float32), size, (size[1] / 2, middle), thick, angle))
    words = placed(shape, size, (size[1] / 2, middle), _fitted(shape, size, thick * 0.55), angle)
    dark = rng.random() < 0.6
    plate = BLACK if dark else WHITE if rng.random() < 0.5 else rng.random(3)
    return _over(
        _plain(strip, rng.uniform(0.35, 0.8), plate), _plain(words, rng.uniform(0.8, 1), WHITE if dark else BLACK)
    )


def plate(size: Size, rng: Rng) -> Mark:
    """Words on a plate of their own, opaque or nearly, in a corner or below the middle."""
    shape = ink(str(rng.choice([*_NAMES, *_CHINESE])), rng, weight=600)
    words_high = 120.0
    wide = int(shape.shape[1] * words_high / shape.shape[0])
    board = np.zeros((240, wide + 160), np.float32)
    cv2.rectangle(board, (6, 6), (board.shape[1] - 7, 233), 1.0, -1, cv2.LINE_AA)
    words = placed(shape, board.shape, (board.shape[1] / 2, 120), words_high, 0)  # type: ignore[arg-type]
    high = max(20, _unit(size) * rng.uniform(70, 120))
    seed = int(rng.integers(2**31))
    below, above = (_in_corner(part, size, high, np.random.default_rng(seed)) for part in (board, words))
    dark = rng.random() < 0.6
    face = np.full(3, rng.uniform(0, 0.15)) if dark else WHITE if rng.random() < 0.6 else rng.random(3)
    return _over(_plain(below, rng.uniform(0.5, 1), face), _plain(above, 1.0, WHITE if dark else BLACK))


def large_word(size: Size, rng: Rng) -> Mark:
    """One word over most of the picture, half transparent, as ``composite -watermark`` or an editor sets it."""
    shape = ink(str(rng.choice(["SAMPLE", "DRAFT", "COPY", "Ida Ravn", "样张"])), rng, weight=700)
    high = _fitted(shape, size, min(size) * rng.uniform(0.3, 0.55), 0.9)
    at = (size[1] * rng.uniform(0.47, 0.53), size[0] * rng.uniform(0.4, 0.6))
    plane = placed(shape, size, at, high, float(rng.choice([0, rng.uniform(-30, 30)])))
    return _plain(plane, rng.uniform(0.25, 0.55), WHITE if rng.random() < 0.7 else np.full(3, rng.uniform(0, 0.5)))


def dissolved_logo(size: Size, rng: Rng) -> Mark:
    """A logo of several colours in the middle, the same alpha all over it, as ``composite -dissolve`` sets it."""
    shape, sign = _emblem(rng)
    high = min(size) * rng.uniform(0.3, 0.5)
    at = (size[1] * rng.uniform(0.45, 0.55), size[0] * rng.uniform(0.42, 0.58))
    face, letter = rng.random(3), rng.random(3)
    below = _plain(placed(shape, size, at, high, 0), 1, face)
    whole = _over(below, _plain(placed(sign * shape, size, at, high, 0), 1, letter))
    alpha = np.float32(rng.uniform(0.3, 0.7))
    return Mark(whole.alpha * alpha, whole.colour * alpha)


FAMILIES: Mapping[str, Callable[[Size, Rng], Mark]] = {
    "stock_net": stock_net,
    "centred_logo": centred_logo,
    "signature": signature,
    "date_stamp": date_stamp,
    "shot_on": shot_on,
    "social": social,
    "chinese_corner": chinese_corner,
    "worn_stamp": worn_stamp,
    "dense_grey": dense_grey,
    "outline": outline,
    "gradient_logo": gradient_logo,
    "tiled_logo": tiled_logo,
    "band": band,
    "plate": plate,
    "large_word": large_word,
    "dissolved_logo": dissolved_logo,
}
ALL_OVER = ("stock_net", "dense_grey", "tiled_logo")
