"""Batches of marked crops with their truth, made on the device as fast as the network eats them."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as fn

from training.compound import CompoundMarker
from training.compression import Jpeg
from training.drawing import Dice, Emblems, Lettering, soften
from training.marking import REFINER_SHARES, SHARES
from training.scenes import Photographs, put_up_signs, string_wires

# How many crops of pictures with text of their own stay clean: a mark on a page is a mark, too.
SPARED = 0.75


@dataclass(frozen=True)
class Batch:
    """``marked`` is (1 - alpha) clean + colour, and then what files go through."""

    marked: Tensor  # N 3 H W
    clean: Tensor  # N 3 H W
    alpha: Tensor  # N 1 H W
    colour: Tensor  # N 3 H W, times alpha


class Synthesis:
    def __init__(
        self, folder: Path, device: torch.device, *, seed: int, for_refiner: bool = False, limit: int | None = None
    ) -> None:
        self.dice = Dice(seed, device)
        self._photographs = Photographs(folder, device, for_refiner=for_refiner, limit=limit)
        self._letters = Lettering(folder, device)
        self._marker = CompoundMarker(
            self._letters, Emblems(folder, device), self.dice, REFINER_SHARES if for_refiner else SHARES
        )
        self._jpeg = Jpeg(device)

    @torch.no_grad()
    def batch(self, count: int, side: int) -> Batch:
        """``side`` must be a multiple of 16."""
        dice, rng = self.dice, self.dice.rng
        before = side
        if rng.random() < 0.35:  # the picture was rescaled after it was marked
            before = int(side / rng.choice([0.6, 0.75, 0.87, 1.15, 1.35]))
        photographs, written = self._photographs.crops(count, before, dice)
        clean = put_up_signs(string_wires(photographs, dice), self._letters, dice)
        layers = self._marker.marks(count, before, spared=written & dice.chance(SPARED, count))
        alpha, colour = layers.alpha, layers.colour
        marked = (1 - alpha) * clean + colour
        if before != side:
            clean, alpha, colour, marked = (_resized(plane, side) for plane in (clean, alpha, colour, marked))
        clean, marked = self._sharpened(clean, marked)
        marked = (marked.clamp(0, 1) * 255).round() / 255
        return Batch(self._filed(marked), clean, alpha, colour)

    def _sharpened(self, clean: Tensor, marked: Tensor) -> tuple[Tensor, Tensor]:
        dice, rng = self.dice, self.dice.rng
        some = np.nonzero(dice.chance(0.1, len(clean)))[0]
        if len(some):
            at = torch.from_numpy(some).to(dice.device)
            sigma, amount = rng.uniform(0.6, 1.6, len(some)), dice.column(rng.uniform(0.2, 1.0, len(some)))
            for picture in (clean, marked):
                part = picture[at]
                picture[at] = (part + amount * (part - soften(part, sigma, dice))).clamp(0, 1)
        return clean, marked

    def _filed(self, marked: Tensor) -> Tensor:
        """What is left after the picture was saved, once or twice."""
        twice = self.dice.rng.random() < 0.15
        saved = self._saved(self._saved(marked)) if twice else self._saved(marked)
        lossless = self.dice.column(self.dice.chance(0.1, len(marked))) > 0
        return torch.where(lossless, marked, saved)

    def _saved(self, picture: Tensor) -> Tensor:
        """As a JPEG file; blocks need not begin at the crop's corner."""
        dice, rng, n = self.dice, self.dice.rng, len(picture)
        halve_chroma = bool(rng.random() < 0.65)
        shift = (0, 0) if rng.random() < 0.5 else tuple(int(s) for s in rng.integers(0, 8, 2))
        quality = dice.tensor(np.where(dice.chance(0.2, n), rng.uniform(95, 98, n), rng.uniform(58, 96, n)))
        saved = self._jpeg(torch.roll(picture, shift, (2, 3)), quality, halve_chroma=halve_chroma)
        return torch.roll(saved, (-shift[0], -shift[1]), (2, 3))


def _resized(plane: Tensor, side: int) -> Tensor:
    return fn.interpolate(plane, size=(side, side), mode="bilinear", antialias=True, align_corners=False)
