"""Logos, stamps, seals and codes, drawn once as RGBA bitmaps of one size (colour times coverage, coverage)."""

import contextlib
import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageChops, ImageDraw, ImageFilter, ImageFont

from training.lettering import HAN_NAMES, Face, invented_name
from training.sizes import EMBLEM_SIDE

_BIG = EMBLEM_SIDE * 3  # drawn three times as large and shrunk: smooth edges

# Clip art, not cut-out photographs: to any eye those are objects of the scene, and logos are then not learned.
CLIP_ART = 0.15

Colour = tuple[int, int, int]


def _colour(rng: np.random.Generator) -> Colour:
    kind = rng.random()
    if kind < 0.3:
        level = int(rng.choice([255, 255, 250, 230, 20, 0, 128]))
        return (level, level, level)
    return tuple(int(v) for v in rng.integers(0, 256, 3))  # type: ignore[return-value]


def _palette(rng: np.random.Generator, count: int) -> list[Colour]:
    return [_colour(rng) for _ in range(count)]


def _font(faces: Sequence[Face], text: str, size: int, rng: np.random.Generator) -> ImageFont.FreeTypeFont | None:
    need = {ord(c) for c in text}
    for _ in range(60):
        face = faces[rng.integers(len(faces))]
        if need <= face.covers:
            with contextlib.suppress(OSError):  # a font of bitmaps has one size only
                return ImageFont.truetype(str(face.path), size, index=face.index)
    return None


def _text(pen: ImageDraw.ImageDraw, faces: Sequence[Face], rng: np.random.Generator, box: float, fill: Colour,
          at: tuple[float, float] = (_BIG / 2, _BIG / 2)) -> None:  # fmt: skip
    text = str(rng.choice(HAN_NAMES)) if rng.random() < 0.25 else invented_name(rng)
    text = text[: int(rng.integers(1, 4))] if rng.random() < 0.6 else text
    font = _font(faces, text, 100, rng)
    if font is None:
        return
    left, top, right, bottom = font.getbbox(text)
    if right - left < 1 or bottom - top < 1:
        return
    size = int(max(12, min(260, 100 * min(box / (right - left), box / (bottom - top)))))
    pen.text(at, text, font=font.font_variant(size=size), fill=(*fill, 255), anchor="mm")


def _polygon(sides: int, radius: float, turn: float, *, inner: float | None = None) -> list[tuple[float, float]]:
    count = sides * (1 if inner is None else 2)
    points = []
    for i in range(count):
        r = radius if inner is None or i % 2 == 0 else radius * inner
        a = turn + 2 * math.pi * i / count
        points.append((_BIG / 2 + r * math.cos(a), _BIG / 2 + r * math.sin(a)))
    return points


def _badge(faces: Sequence[Face], rng: np.random.Generator) -> Image.Image:
    """A shape in one colour, letters or a smaller shape in another."""
    image = Image.new("RGBA", (_BIG, _BIG))
    pen = ImageDraw.Draw(image)
    first, second, third = _palette(rng, 3)
    radius, kind = _BIG * rng.uniform(0.4, 0.49), rng.integers(6)
    box = (_BIG / 2 - radius, _BIG / 2 - radius, _BIG / 2 + radius, _BIG / 2 + radius)
    line = int(rng.choice([0, 0, 8, 16, 30]))
    fill = None if line and rng.random() < 0.5 else (*first, 255)
    if kind == 0:
        pen.ellipse(box, fill=fill, outline=(*third, 255), width=line)
    elif kind == 1:
        pen.rounded_rectangle(box, radius * rng.uniform(0.05, 0.6), fill=fill, outline=(*third, 255), width=line)
    elif kind == 2:
        points = _polygon(int(rng.integers(3, 9)), radius, rng.uniform(0, 6))
        pen.polygon(points, fill=fill, outline=(*third, 255), width=max(1, line))
    elif kind == 3:
        points = _polygon(int(rng.integers(4, 14)), radius, rng.uniform(0, 6), inner=rng.uniform(0.35, 0.85))
        pen.polygon(points, fill=fill, outline=(*third, 255), width=max(1, line))
    elif kind == 4:
        for k in range(int(rng.integers(2, 6))):
            r = radius * (1 - k * rng.uniform(0.15, 0.3))
            if r > 10:
                pen.ellipse((_BIG / 2 - r, _BIG / 2 - r, _BIG / 2 + r, _BIG / 2 + r), fill=(*_colour(rng), 255))
    else:
        for start in np.arange(0, 360, 360 / rng.integers(2, 8)):
            pen.pieslice(box, start, start + rng.uniform(20, 120), fill=(*_colour(rng), 255))
    if rng.random() < 0.75:
        _text(pen, faces, rng, radius * rng.uniform(0.9, 1.5), second)
    return image


def _symbol(faces: Sequence[Face], rng: np.random.Generator, size: float) -> Image.Image:
    """One glyph of a font of symbols, or a letter or two where there is none: coverage, as large as an emblem."""
    plane = Image.new("L", (_BIG, _BIG))
    symbols = [face for face in faces if len(face.symbols) > 200]
    if not symbols or rng.random() < 0.4:
        coloured = Image.new("RGBA", (_BIG, _BIG))
        _text(ImageDraw.Draw(coloured), faces, rng, size, (255, 255, 255))
        return coloured.getchannel("A")
    face = symbols[rng.integers(len(symbols))]
    glyph = chr(face.symbols[rng.integers(len(face.symbols))])
    with contextlib.suppress(OSError):
        font = ImageFont.truetype(str(face.path), int(size), index=face.index)
        ImageDraw.Draw(plane).text((_BIG / 2, _BIG / 2), glyph, font=font, fill=255, anchor="mm")
    return plane


def _shape(pen: ImageDraw.ImageDraw, rng: np.random.Generator, radius: float) -> None:
    """A disc, a plate, a polygon, a star or a coat of arms, filled or as a line."""
    middle, kind = _BIG / 2, rng.integers(5)
    box = (
        middle - radius,
        middle - radius * rng.uniform(0.6, 1),
        middle + radius,
        middle + radius * rng.uniform(0.6, 1),
    )
    line = int(rng.integers(8, 40))
    fill = 0 if rng.random() < 0.25 else 255
    if kind == 0:
        pen.ellipse((middle - radius, middle - radius, middle + radius, middle + radius), fill, 255, line)
    elif kind == 1:
        pen.rounded_rectangle(box, radius * rng.uniform(0, 0.5), fill, 255, line)
    elif kind == 2:
        pen.polygon(_polygon(int(rng.integers(3, 9)), radius, rng.uniform(0, 6)), fill, 255, line)
    elif kind == 3:
        points = _polygon(int(rng.integers(4, 20)), radius, rng.uniform(0, 6), inner=rng.uniform(0.4, 0.9))
        pen.polygon(points, fill, 255, line)
    else:
        bulge, shoulder = rng.uniform(1.2, 3.5), rng.uniform(-0.3, 0.4)
        sides = [(1.0, -0.9), *((max(0.0, 1 - t**bulge), shoulder + t * (1 - shoulder)) for t in np.linspace(0, 1, 20))]
        outline = [*sides, *((-x, y) for x, y in reversed(sides))]
        pen.polygon([(middle + radius * 0.85 * x, middle + radius * y) for x, y in outline], fill, 255, line)


def _silhouette(faces: Sequence[Face], rng: np.random.Generator) -> Image.Image:
    """A logo of one colour: a symbol alone, or knocked out of a shape so that the picture shows through it."""
    radius = _BIG * rng.uniform(0.4, 0.49)
    if rng.random() < 0.3:
        plane = _symbol(faces, rng, _BIG * rng.uniform(0.7, 0.95))
    else:
        plane = Image.new("L", (_BIG, _BIG))
        _shape(ImageDraw.Draw(plane), rng, radius)
        symbol = _symbol(faces, rng, radius * rng.uniform(0.6, 1.4))
        plane = ImageChops.difference(plane, symbol)  # dark on what is filled, light where it is not
    image = Image.new("RGBA", (_BIG, _BIG), (*_colour(rng), 255))
    image.putalpha(plane)
    return image


def _stamp(faces: Sequence[Face], rng: np.random.Generator) -> Image.Image:
    """A seal: one or two rings, letters around, a star or a word in the middle; sometimes a square one."""
    image = Image.new("RGBA", (_BIG, _BIG))
    pen = ImageDraw.Draw(image)
    ink: Colour = (int(rng.integers(150, 250)), int(rng.integers(0, 70)), int(rng.integers(0, 70)))
    if rng.random() < 0.3:
        ink = _colour(rng)
    radius, line = _BIG * 0.48, int(rng.integers(6, 26))
    if rng.random() < 0.3:
        box = (_BIG / 2 - radius, _BIG / 2 - radius * 0.6, _BIG / 2 + radius, _BIG / 2 + radius * 0.6)
        pen.rounded_rectangle(box, 30, outline=(*ink, 255), width=line)
        _text(pen, faces, rng, radius * 1.5, ink)
        return image
    for r in (radius, radius - line * 2.2)[: int(rng.integers(1, 3))]:
        pen.ellipse((_BIG / 2 - r, _BIG / 2 - r, _BIG / 2 + r, _BIG / 2 + r), outline=(*ink, 255), width=line)
    names = (str(rng.choice(HAN_NAMES)) if rng.random() < 0.4 else invented_name(rng) for _ in range(3))
    ring = "·".join(names).upper()
    font = _font(faces, ring, int(rng.integers(44, 70)), rng)
    if font is not None:
        span, bold, words = rng.uniform(200, 340), int(rng.integers(0, 4)), Image.new("L", (_BIG, _BIG))
        for i, letter in enumerate(ring):
            turn = -span / 2 + span * i / max(1, len(ring) - 1)
            tile, at = Image.new("L", (_BIG, _BIG)), (_BIG / 2, _BIG * 0.17)
            ImageDraw.Draw(tile).text(at, letter, font=font, fill=255, anchor="mm", stroke_width=bold)
            words = ImageChops.lighter(words, tile.rotate(-turn, Image.Resampling.BILINEAR))
        inked = Image.new("RGBA", (_BIG, _BIG), (*ink, 255))
        inked.putalpha(words)
        image.alpha_composite(inked)
    if rng.random() < 0.5:
        pen.polygon(_polygon(5, radius * 0.33, -math.pi / 2, inner=0.4), fill=(*ink, 255))
    else:
        _text(pen, faces, rng, radius * 0.8, ink)
    return image


def _code(_faces: Sequence[Face], rng: np.random.Generator) -> Image.Image:
    """A square of modules with three finders, as QR codes have; sometimes without its light ground."""
    count = int(rng.choice([21, 25, 29]))
    cells = rng.random((count, count)) < 0.5
    finder = np.ones((7, 7), bool)
    finder[1:6, 1:6] = False
    finder[2:5, 2:5] = True
    for y, x in ((0, 0), (0, count - 7), (count - 7, 0)):
        cells[max(0, y - 1) : y + 8, max(0, x - 1) : x + 8] = False
        cells[y : y + 7, x : x + 7] = finder
    dark = (0, 0, 0) if rng.random() < 0.6 else _colour(rng)
    image = Image.new("RGBA", (count + 2, count + 2), (255, 255, 255, 255 if rng.random() < 0.6 else 0))
    for y, x in zip(*np.nonzero(cells), strict=True):
        image.putpixel((int(x) + 1, int(y) + 1), (*dark, 255))
    return image.resize((_BIG, _BIG), Image.Resampling.NEAREST)


def _line_art(_faces: Sequence[Face], rng: np.random.Generator) -> Image.Image:
    """Strokes and arcs of one pen, as signatures and simple drawings are."""
    image = Image.new("RGBA", (_BIG, _BIG))
    pen = ImageDraw.Draw(image)
    ink, width = _colour(rng), int(rng.integers(6, 30))
    for _ in range(int(rng.integers(2, 9))):
        a, b = rng.uniform(0.05, 0.95, 2) * _BIG, rng.uniform(0.05, 0.95, 2) * _BIG
        if rng.random() < 0.5:
            pen.line([*a, *b], fill=(*ink, 255), width=width)
        else:
            low, high = np.minimum(a, b), np.maximum(a, b) + 4
            pen.arc([*low, *high], rng.uniform(0, 360), rng.uniform(0, 720), fill=(*ink, 255), width=width)
    return image


def _scribble(_faces: Sequence[Face], rng: np.random.Generator) -> Image.Image:
    """One long line without an end in sight, as a hand signs."""
    image = Image.new("RGBA", (_BIG, _BIG))
    points = rng.uniform(-1, 1, (int(rng.integers(8, 22)), 2)) * (0.12, rng.uniform(0.08, 0.3))
    points[:, 0] += np.linspace(0.1, 0.9, len(points))
    points[:, 1] += 0.5
    at = np.linspace(0, len(points) - 1, 400)
    smooth = np.stack([np.interp(at, np.arange(len(points)), points[:, k]) for k in (0, 1)], 1)
    kernel = np.hanning(41) / np.hanning(41).sum()
    curve = np.stack([np.convolve(smooth[:, k], kernel, "valid") for k in (0, 1)], 1) * _BIG
    pen, ink, width = ImageDraw.Draw(image), (*_colour(rng), 255), int(rng.integers(5, 14))
    pen.line([(float(x), float(y)) for x, y in curve], fill=ink, width=width, joint="curve")
    return image


def _clip_art(path: Path) -> Image.Image:
    with Image.open(path) as opened:
        image = opened.convert("RGBA")
    image = image.crop(image.getbbox())
    scale = _BIG / max(image.size)
    image = image.resize((max(1, round(image.width * scale)), max(1, round(image.height * scale))))
    square = Image.new("RGBA", (_BIG, _BIG))
    square.paste(image, ((_BIG - image.width) // 2, (_BIG - image.height) // 2))
    return square


KINDS: Sequence[tuple[float, Callable[[Sequence[Face], np.random.Generator], Image.Image]]] = (
    (0.28, _badge),
    (0.3, _silhouette),
    (0.28, _stamp),
    (0.07, _code),
    (0.07, _line_art),
    (0.07, _scribble),
)


def draw_many(
    faces: Sequence[Face], pictures: Sequence[Path], count: int, rng: np.random.Generator
) -> NDArray[np.uint8]:
    """``count`` emblems, some of them clip art where there is any."""
    weights = np.array([w for w, _ in KINDS])
    result = np.zeros((count, 4, EMBLEM_SIDE, EMBLEM_SIDE), np.uint8)
    for i in range(count):
        if pictures and rng.random() < CLIP_ART:
            image = _clip_art(pictures[rng.integers(len(pictures))])
        else:
            image = KINDS[int(rng.choice(len(KINDS), p=weights / weights.sum()))][1](faces, rng)
        if rng.random() < 0.1:
            image = image.filter(ImageFilter.GaussianBlur(rng.uniform(1, 6)))
        small = np.asarray(image.convert("RGBa").resize((EMBLEM_SIDE, EMBLEM_SIDE), Image.Resampling.BOX))
        result[i] = small.transpose(2, 0, 1) & 0xF8  # five bits are enough, and pack to half the size
    return result
