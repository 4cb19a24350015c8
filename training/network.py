"""The network: a U-Net over six scales, under four million parameters, any size that is a multiple of 32.

In: RGB, 0 to 1. Out, as planes: the mark's probability, its alpha, its colour times alpha (three), and the error to be
expected of a pixel that is solved for with them.
"""

import itertools
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as fn

WIDTHS = (16, 32, 64, 112, 176, 224)
HEAD = 16
PLANES = 6
# The error is told up to here: beyond it nobody would invert.
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

    def __init__(self, coarse: int, fine: int, outputs: int) -> None:
        super().__init__()
        self.narrow = nn.Conv2d(coarse, fine, 1)
        self.merge = nn.Sequential(conv(2 * fine, outputs), conv(outputs, outputs))

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


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = conv(3, WIDTHS[0])
        pairs = list(itertools.pairwise(WIDTHS))
        self.down = nn.ModuleList(nn.Sequential(conv(a, b, 2), conv(b, b)) for a, b in pairs)
        self.middle = nn.Sequential(conv(WIDTHS[-1], WIDTHS[-1]), Compare(WIDTHS[-1]), Glance(WIDTHS[-1]))
        outputs = (HEAD, *WIDTHS[1:])
        self.up = nn.ModuleList(Join(outputs[i + 1], WIDTHS[i], outputs[i]) for i in range(5))
        self.again = Glance(outputs[3])
        self.head = nn.Conv2d(HEAD, PLANES, 1)
        # Most pixels are unmarked: start from there.
        nn.init.constant_(self.head.bias[:2], -3.0)

    def forward(self, picture: Tensor) -> Seen:
        levels = [self.first((picture - 0.45) * 4)]
        for step in self.down:
            levels.append(step(levels[-1]))
        x = self.middle(levels[-1])
        for i in reversed(range(5)):
            x = self.up[i](x, levels[i])
            if i == 3:
                x = self.again(x)
        planes = self.head(x).float()
        alpha = torch.sigmoid(planes[:, 1:2])
        return Seen(
            planes[:, :1], alpha, alpha * torch.sigmoid(planes[:, 2:5]), LARGEST_ERROR * torch.sigmoid(planes[:, 5:])
        )


class Planes(nn.Module):
    """The network with one output, as it is exported."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network

    def forward(self, picture: Tensor) -> Tensor:
        seen = self.network(picture)
        return torch.cat([torch.sigmoid(seen.mask), seen.alpha, seen.colour, seen.error], 1)
