"""Crops of photographs, and signs that belong to the scene: what a picture is before it is marked."""

import io
import json
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as fn

from training.drawing import Dice, Lettering, at_each, frame, soften

# Down to a fifth: a crop must also hold whole scenes, with their repetitions, discs and lattices, or the network takes
# the first cups, windows or suns it sees for marks.
LEVELS = (1.0, 0.84, 0.7, 0.59, 0.5, 0.42, 0.35, 0.28, 0.22)
_SMALLEST = 160
WITH_TEXT = ("screen", "text")  # roles of pictures that carry text or graphics of their own


class Photographs:
    """Every photograph in several sizes, on the device, to take crops from.

    The eye sees marks better where it was taught, and a refiner that learned there would trust it too much: each has
    photographs of its own.
    """

    def __init__(
        self, folder: Path, device: torch.device, *, for_refiner: bool = False, limit: int | None = None
    ) -> None:
        self._device = device
        packed = (folder / "photographs.bin").read_bytes()
        pixels: list[Tensor] = []
        rows: list[tuple[float, int, int, int, bool]] = []  # weight, offset, height, width, text of its own
        offset = 0
        listed = json.loads((folder / "photographs.json").read_text())
        chosen = [entry for entry in listed if (entry["role"] == "refiner") == for_refiner][:limit]
        if not chosen:
            raise ValueError(
                f"{folder} holds no photographs for the {'refiner' if for_refiner else 'eye'}: pack it anew"
            )
        for entry in chosen:
            start = entry["offset"]
            whole = _decoded(packed[start : start + entry["length"]]).to(device)[None].float()
            for size in _sizes(whole.shape[2], whole.shape[3]):
                level = fn.interpolate(whole, size=size, mode="bilinear", antialias=True, align_corners=False)
                level = level.round().clamp(0, 255).byte()[0].permute(1, 2, 0).reshape(-1, 3)
                rows.append((entry["weight"] / len(LEVELS), offset, *size, entry["role"] in WITH_TEXT))
                offset += len(level)
                pixels.append(level)
        self._pixels = torch.cat(pixels)
        self._rows = np.array(rows)

    def crops(self, count: int, side: int, dice: Dice) -> tuple[Tensor, NDArray[np.bool_]]:
        """Crops, and which of them are of pictures with text of their own."""
        rows = self._rows
        # What is much smaller than the crop would be mirrored into a kaleidoscope.
        weight = rows[:, 0] * np.where(rows[:, 2:4].min(1) < 0.85 * side, 0.1, 1)
        chosen = rows[dice.rng.choice(len(rows), count, p=weight / weight.sum())]
        offset, height, width = (chosen[:, i].astype(np.int64) for i in (1, 2, 3))
        # What is smaller than the crop goes on mirrored.
        top, left = (
            (dice.rng.random(count) * np.where(length >= side, length - side + 1, 2 * length)).astype(np.int64)
            for length in (height, width)
        )

        def each(values: NDArray[np.int64] | NDArray[np.bool_]) -> Tensor:
            return torch.from_numpy(values).to(self._device).view(-1, 1)

        along = torch.arange(side, device=self._device).view(1, side)
        turned, upside, mirrored = (each(dice.chance(p, count)) for p in (0.3, 0.15, 0.5))
        y = _mirrored(each(top) + torch.where(upside, side - 1 - along, along), each(height)) * each(width)
        x = _mirrored(each(left) + torch.where(mirrored, side - 1 - along, along), each(width))
        down, across = torch.where(turned, x, y) + each(offset), torch.where(turned, y, x)
        index = down[:, :, None] + across[:, None, :]
        picture = self._developed(self._pixels[index].permute(0, 3, 1, 2).float() / 255, dice)
        return picture, chosen[:, 4] > 0

    def _developed(self, picture: Tensor, dice: Dice) -> Tensor:
        """Other exposures, colours and grains of the same photograph."""
        n = len(picture)
        some = dice.chance(0.6, n)
        gamma = np.where(some, dice.log_uniform(0.6, 1.6, n), 1)
        gain = np.where(some, dice.rng.uniform(0.55, 1.2, n), 1)
        picture = picture.clamp(1e-4, 1) ** dice.column(gamma) * dice.column(gain)
        tint = np.where(dice.chance(0.35, n)[:, None], dice.rng.uniform(0.75, 1.15, (n, 3)), 1)
        picture = picture * dice.tensor(tint).view(n, 3, 1, 1)
        grey = picture.mean(1, keepdim=True)
        colourful = np.where(dice.chance(0.35, n), dice.rng.uniform(0.3, 1.5, n), 1)
        colourful = np.where(dice.chance(0.07, n), 0, colourful)
        picture = grey + (picture - grey) * dice.column(colourful)
        swapped = np.nonzero(dice.chance(0.15, n))[0]
        if len(swapped):
            order = torch.from_numpy(np.stack([dice.rng.permutation(3) for _ in swapped])).to(self._device)
            where = torch.from_numpy(swapped).to(self._device)
            size = (-1, -1, *picture.shape[2:])
            picture[where] = torch.gather(picture[where], 1, order.view(-1, 3, 1, 1).expand(*size))
        grain = np.where(dice.chance(0.35, n), dice.rng.uniform(0, 0.025, n), 0)
        return (picture + torch.randn_like(picture) * dice.column(grain)).clamp(0, 1)


def _mirrored(position: Tensor, length: Tensor) -> Tensor:
    position = position % (2 * length)
    return torch.minimum(position, 2 * length - 1 - position)


def _decoded(jpeg: bytes) -> Tensor:
    """The picture as 3 H W; a machine for training may have Pillow or torchvision."""
    try:
        from PIL import Image
    except ImportError:
        from torchvision.io import decode_jpeg

        decoded: Tensor = decode_jpeg(torch.frombuffer(bytearray(jpeg), dtype=torch.uint8))
        return decoded
    with Image.open(io.BytesIO(jpeg)) as opened:
        return torch.from_numpy(np.array(opened.convert("RGB"))).permute(2, 0, 1)


def _sizes(height: int, width: int) -> list[tuple[int, int]]:
    short = min(height, width)
    factors = [f for f in LEVELS if short * f >= _SMALLEST]
    # What is small is also enlarged, so that large crops see it.
    factors += [f for f in (720 / short, 1100 / short) if 1.05 < f < 2.2]
    return [(round(height * f), round(width * f)) for f in factors or [_SMALLEST / short]]


def put_up_signs(scene: Tensor, letters: Lettering, dice: Dice, *, share: float = 0.12) -> Tensor:
    """Some of the scenes with a sign, a cover or a screen in them: text seen by the camera, so it must stay.

    What tells it from a mark: it is seen from the side, lit, softened by the lens and grainy, ground and all.
    """
    side = scene.shape[2]
    chosen = np.nonzero(dice.chance(share, len(scene)))[0]
    n = len(chosen)
    if n == 0:
        return scene
    rng = dice.rng
    index = letters.any(n, dice)
    height = dice.log_uniform(14, 150, n)
    scale = height / letters.height
    angle = np.where(dice.chance(0.5, n), rng.normal(0, 0.06, n), rng.uniform(-0.6, 0.6, n))
    u, v = frame(side, rng.uniform(0, side, n), rng.uniform(0, side, n), angle, dice)
    lean, rise = at_each(rng.normal(0, 0.28, n), dice), at_each(rng.normal(0, 0.22, n), dice)
    u, v = u * (1 + lean * v / side), v * (1 + rise * u / side)
    lines = dice.chance(0.45, n)  # several lines, as on a page or a screen
    pitch = (letters.widths[index] * scale + height, height * rng.uniform(1.1, 1.8, n), rng.uniform(0, 99, n))
    ink = letters.ink(index, u, v, scale, dice, tiling=(lines, *pitch))
    half_width = at_each(letters.widths[index] * scale * 0.5 * rng.uniform(1.02, 1.6, n), dice)
    half_height = at_each(height * np.where(lines, rng.uniform(1, 4, n), rng.uniform(0.5, 1.0, n)), dice)
    ground = (half_width - u.abs() + 0.5).clamp(0, 1) * (half_height - v.abs() + 0.5).clamp(0, 1)
    bare = at_each(dice.chance(0.25, n), dice) > 0  # letters painted on the scene itself
    ground = ground[:, None]
    cover = torch.where(bare[:, None], ink * ground, ground)
    face = dice.tensor(dice.colours(n, light=0.3)).view(n, 3, 1, 1)
    letter = dice.tensor(dice.colours(n, light=0.4)).view(n, 3, 1, 1)
    light = 1 + dice.column(rng.normal(0, 0.25, n)) * u[:, None] / side
    light = (light + dice.column(rng.normal(0, 0.25, n)) * v[:, None] / side) * dice.column(rng.uniform(0.4, 1, n))
    board = (face * (1 - ink) + letter * ink) * light
    board = torch.where(bare[:, None], letter * light, board)
    painted = soften(torch.cat([board * cover, cover], 1), dice.log_uniform(1.1, 2.6, n), dice)
    where = torch.from_numpy(chosen).to(scene.device)
    seen = scene[where] * (1 - painted[:, 3:]) + painted[:, :3]
    # Paint takes the light of what it lies on.
    texture = scene[where].mean(1, keepdim=True)
    seen = torch.where(bare[:, None], seen + (texture - 0.5) * 0.35 * painted[:, 3:], seen)
    seen = seen + torch.randn_like(seen) * dice.column(rng.uniform(0.004, 0.03, n)) * (painted[:, 3:] > 0.1)
    scene = scene.clone()
    scene[where] = seen.clamp(0, 1)
    return scene
