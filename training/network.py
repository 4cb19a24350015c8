"""The detector: a pretrained encoder, and a U-Net decoder up to full size; any size that is a multiple of 32.

In: RGB, 0 to 1. Out, as planes: the mark's probability, its alpha, its colour times alpha (three), and the error to be
expected of a pixel that is solved for with them.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as fn

from training.encoder import FEATURE_WIDTHS, Encoder

# Widths of the decoder, from full size down to 1/32.
WIDTHS = (12, 32, 72, 104, 152, 224)
HALF_WIDTH = 24  # of the stem of its own at half the size: ImageNet's features do not know thin strokes
NARROWED = (24, 64, 80, 112)  # coarse planes are narrowed to this before they join those at 1/2, 1/4, 1/8, 1/16
PLANES = 6
# The error is predicted up to here: beyond it nobody would invert.
LARGEST_ERROR = 0.5


def conv(inputs: int, outputs: int, stride: int = 1, *, far: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, stride, far, far, bias=False),
        nn.BatchNorm2d(outputs, momentum=0.02),
        nn.ReLU(inplace=True),
    )


class Glance(nn.Module):
    """Looks over the whole picture and tells every place: one mark has one colour and one alpha."""

    def __init__(self, width: int, hidden: int = 64) -> None:
        super().__init__()
        self.where = nn.Conv2d(width, 2, 1)
        self.shrink = nn.Linear(2 * width, hidden)
        self.grow = nn.Linear(hidden, width)
        nn.init.zeros_(self.grow.weight)
        nn.init.zeros_(self.grow.bias)

    def forward(self, x: Tensor) -> Tensor:
        weights = torch.softmax(self.where(x).flatten(2).float(), 2).to(x.dtype)
        seen = torch.matmul(weights, x.flatten(2).transpose(1, 2)).flatten(1)
        return x + self.grow(fn.relu(self.shrink(seen)))[:, :, None, None]


class Compare(nn.Module):
    """Lets every place look at every other at the coarsest scale: what repeats is a mark."""

    def __init__(self, width: int, inner: int = 64) -> None:
        super().__init__()
        self.ask, self.answer, self.tell = (nn.Conv2d(width, inner, 1, bias=False) for _ in range(3))
        self.back = nn.Conv2d(inner, width, 1)
        self.scale = inner**-0.5
        nn.init.zeros_(self.back.weight)
        nn.init.zeros_(self.back.bias)

    def forward(self, x: Tensor) -> Tensor:
        ask, answer, tell = (part(x).flatten(2) for part in (self.ask, self.answer, self.tell))
        match = torch.softmax((torch.matmul(ask.transpose(1, 2), answer) * self.scale).float(), 2).to(x.dtype)
        heard = torch.matmul(tell, match.transpose(1, 2))
        # Their own shape, not x's: an exported graph then holds for every size.
        return x + self.back(heard.view(heard.shape[0], heard.shape[1], x.shape[2], x.shape[3]))


class Join(nn.Module):
    """One step up: the coarse planes narrowed, enlarged and put beside the fine ones."""

    def __init__(self, coarse: int, fine: int, outputs: int, narrowed: int | None = None) -> None:
        super().__init__()
        narrowed = fine if narrowed is None else narrowed
        self.narrow = nn.Conv2d(coarse, narrowed, 1)
        self.merge = nn.Sequential(conv(narrowed + fine, outputs), conv(outputs, outputs))

    def forward(self, coarse: Tensor, fine: Tensor) -> Tensor:
        coarse = fn.interpolate(self.narrow(coarse), scale_factor=2.0, mode="nearest")
        merged: Tensor = self.merge(torch.cat([coarse, fine], 1))
        return merged


@dataclass(frozen=True)
class Seen:
    mask: Tensor  # logits
    alpha: Tensor
    colour: Tensor  # times alpha
    error: Tensor


@dataclass(frozen=True)
class Hints:
    """What only training asks for: coarse masks (logits, at 1/4, 1/8 and 1/16), and whether there is a mark at all."""

    masks: list[Tensor]
    marked: Tensor


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        full, half, quarter, eighth, sixteenth, coarsest = WIDTHS
        self.encoder = Encoder()
        self.full_stem = conv(3, full)
        self.half_stem = nn.Sequential(conv(12, HALF_WIDTH), conv(HALF_WIDTH, HALF_WIDTH))
        self.middle = nn.Sequential(
            nn.Conv2d(FEATURE_WIDTHS[4], coarsest, 1, bias=False),
            nn.BatchNorm2d(coarsest, momentum=0.02),
            nn.ReLU(inplace=True),
            conv(coarsest, coarsest),
            Compare(coarsest),
            Glance(coarsest),
        )
        self.up16 = Join(coarsest, FEATURE_WIDTHS[3], sixteenth, NARROWED[3])
        self.compare = Compare(sixteenth, 48)
        self.up8 = Join(sixteenth, FEATURE_WIDTHS[2], eighth, NARROWED[2])
        self.glance = Glance(eighth)
        self.up4 = Join(eighth, FEATURE_WIDTHS[1], quarter, NARROWED[1])
        self.up2 = Join(quarter, FEATURE_WIDTHS[0] + HALF_WIDTH, half, NARROWED[0])
        self.to_full = nn.Conv2d(half, 4 * full, 1)
        self.last = conv(2 * full, full)
        self.head = nn.Conv2d(full, PLANES, 1)
        self.coarse_masks = nn.ModuleList(nn.Conv2d(width, 1, 1) for width in (quarter, eighth, sixteenth))
        self.marked = nn.Linear(coarsest, 1)
        # Most pixels are unmarked: start from there.
        nn.init.constant_(self.head.bias[:2], -3.0)
        for mask in self.coarse_masks:
            nn.init.constant_(mask.bias, -2.5)

    def forward(self, picture: Tensor) -> Seen:
        return self.with_hints(picture)[0]

    def with_hints(self, picture: Tensor) -> tuple[Seen, Hints]:
        """The planes, and what helps to learn them."""
        levels = (picture - 0.45) * 4
        two, four, eight, sixteen, coarse = self.encoder((picture - 0.5) * 2)
        middle = self.middle(coarse)
        at16 = self.compare(self.up16(middle, sixteen))
        at8 = self.glance(self.up8(at16, eight))
        at4 = self.up4(at8, four)
        at2 = self.up2(at4, torch.cat([two, self.half_stem(fn.pixel_unshuffle(levels, 2))], 1))
        enlarged = fn.pixel_shuffle(self.to_full(at2), 2)
        planes = self.head(self.last(torch.cat([enlarged, self.full_stem(levels)], 1))).float()
        alpha = torch.sigmoid(planes[:, 1:2])
        seen = Seen(
            planes[:, :1], alpha, alpha * torch.sigmoid(planes[:, 2:5]), LARGEST_ERROR * torch.sigmoid(planes[:, 5:])
        )
        masks = [mask(at) for mask, at in zip(self.coarse_masks, (at4, at8, at16), strict=True)]
        return seen, Hints(masks, self.marked(middle.mean((2, 3))))


class Planes(nn.Module):
    """The network with one output, as it is exported."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network

    def forward(self, picture: Tensor) -> Tensor:
        seen = self.network(picture)
        return torch.cat([torch.sigmoid(seen.mask), seen.alpha, seen.colour, seen.error], 1)
