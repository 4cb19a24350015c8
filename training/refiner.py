"""The refiner: a second, small network that finishes what the solver drafted.

It sees the marked picture, the solver's two estimates of what lies under the mark and their blend, and what the solver
knows of the mark. It says how much more or less of a pixel the mark covers than the solver thinks, computes once more
with that, weighs the estimates anew and corrects what is left. It learns what no formula says: how files smear edges,
what a ghost looks like, how a picture goes on under a mark.
"""

import itertools

import torch
from torch import Tensor, nn
from torch.nn import functional as fn

from training.drafting import Draft
from training.losses import true_mask
from training.network import Join, conv

WIDTHS = (48, 48, 72)  # at a half, a quarter and an eighth of the size
INPUTS = 21  # what it is given, as stacked() orders it
DERIVED = 2  # what it works out from that itself
FAR = (1, 2, 4)  # how far apart the coarsest scale looks, so that a wide hole sees its rim
MOST_OPAQUE = 0.95  # beyond this nothing of the picture is left to compute with
NAMES = ("levels", "log", "ghosts", "covers", "bare", "psnr", "drafted")
_WEIGHTS = (4.0, 0.3, 4.0, 1.0, 1.0)
# Openings are few beside ink: those that the eye takes for a mark, from this probability on, count so much more.
_OPENING, _SEEN = 3.0, 0.3


class Residual(nn.Module):
    def __init__(self, width: int, far: int) -> None:
        super().__init__()
        self.step = conv(width, width, far=far)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.step(x)


class Refiner(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        first = WIDTHS[0]
        # Four pixels at a time: what is fine enough to need them one by one is in the pictures that are weighed.
        self.first = nn.Sequential(
            nn.Conv2d(INPUTS + DERIVED, first, 4, 2, 1, bias=False),
            nn.BatchNorm2d(first, momentum=0.02),
            nn.ReLU(inplace=True),
            conv(first, first),
        )
        self.down = nn.ModuleList(
            nn.Sequential(conv(a, b, 2), conv(b, b) if b < WIDTHS[-1] else nn.Identity())
            for a, b in itertools.pairwise(WIDTHS)
        )
        self.middle = nn.Sequential(*(Residual(WIDTHS[-1], far) for far in FAR))
        self.up = nn.ModuleList(Join(WIDTHS[i + 1], WIDTHS[i], WIDTHS[i]) for i in range(2))
        self.head = nn.Sequential(nn.Conv2d(first, 36, 1), nn.PixelShuffle(2))
        # It begins with the solver's blend, and leaves it where it knows nothing better.
        nn.init.zeros_(self.head[0].weight)
        with torch.no_grad():
            self.head[0].bias.copy_(torch.tensor([0.0, 0, 0, 3, 0, 0, 0, 0, 0]).repeat_interleave(4))

    def forward(self, seen: Tensor) -> Tensor:
        """Nine planes: how much each of the four pictures counts, what is added, how much more the mark covers, and
        what speaks for its not covering anything (a logit)."""
        levels = [self.first(seen)]
        for step in self.down:
            levels.append(step(levels[-1]))
        x = self.middle(levels[-1])
        for i in reversed(range(2)):
            x = self.up[i](x, levels[i])
        said = self.head(x).float()
        return torch.cat([torch.softmax(said[:, :4], 1), said[:, 4:7], torch.tanh(0.5 * said[:, 7:8]), said[:, 8:]], 1)


class Finished(nn.Module):
    """The refiner as it is exported: from the stacked draft to the finished picture and what of it is bare."""

    def __init__(self, refiner: Refiner) -> None:
        super().__init__()
        self.hand = refiner  # the name that it has in the shipped file

    def forward(self, draft: Tensor) -> Tensor:
        finished, _, bare = self.finished(draft)
        return torch.cat([finished, bare.sigmoid()], 1)

    def finished(self, draft: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The finished picture, how much of each pixel the mark covers, and what speaks for its being bare."""
        _, filled, marked, blend, opacity, _, colour, _ = draft.split((3, 3, 3, 3, 1, 4, 3, 1), 1)
        # By what the surroundings let expect, so much of the pixel is covered; the more the ink differs, the surer.
        apart = colour - filled
        expected = ((marked - filled) * apart).sum(1, keepdim=True) / ((apart**2).sum(1, keepdim=True) + 0.01)
        differs = ((colour - blend) ** 2).mean(1, keepdim=True).sqrt()
        said = self.hand((torch.cat([draft, expected.clamp(-0.25, 1.25), differs], 1) - 0.45) * 4)
        covers = (opacity + said[:, 7:8]).clamp(0, MOST_OPAQUE)
        computed = ((marked - covers * colour) / (1 - covers)).clamp(0, 1)
        pictures = torch.cat([computed, draft[:, 3:12]], 1).unflatten(1, (4, 3))
        finished = (pictures * said[:, :4, None]).sum(1) + said[:, 4:7]
        return finished.clamp(0, 1), covers, said[:, 8:]


def stacked(draft: Draft) -> Tensor:
    """What the refiner sees, 0 to 1: computed, filled, marked, blend, what is known of a mark, its ink, roughness."""
    pictures = torch.cat([draft.computed, draft.smooth, draft.marked, draft.blend], 1) / 255
    known = torch.cat([draft.opacity, draft.invented, draft.doubt / 255, draft.likely / 255, draft.loose], 1)
    return torch.cat([pictures, known, draft.colour / 255, draft.rough.sqrt() / 8], 1)


def bared(alpha: Tensor) -> Tensor:
    """Where the picture shows, 0 or 1: no mark, nor its edge beside it, which files smear."""
    return 1 - true_mask(alpha)


def loss(
    told: tuple[Tensor, Tensor, Tensor], draft: Tensor, clean: Tensor, alpha: Tensor, counted: Tensor
) -> tuple[Tensor, Tensor]:
    """The sum to minimise, and its parts in the order of NAMES; ``counted`` tells how much each pixel counts."""
    finished, covers, bare = told
    blend, likely = draft[:, 9:12], draft[:, 15:16]
    area = counted.sum((1, 2, 3))
    counts = area / (area + 400)

    def within(value: Tensor) -> Tensor:
        return (value.mean(1, keepdim=True) * counted).sum((1, 2, 3)) / (area + 1)

    def over(each: Tensor) -> Tensor:
        return (each * counts).sum() / (counts.sum() + 1e-3)

    wrong = finished - clean
    square = within(wrong**2)
    across, down = (fn.pad(wrong.diff(dim=d), (0, d == 3, 0, d == 2)).abs() for d in (3, 2))
    off = within((covers - alpha.clamp(max=MOST_OPAQUE)).abs())
    shown = bared(alpha)
    asked = 1 + _OPENING * shown * (likely > _SEEN)
    guess = within(fn.binary_cross_entropy_with_logits(bare, shown, asked, reduction="none"))
    # Decibels of each crop, not of all together: an easy one is to be done well, too.
    ghosts, log = within(across + down), torch.log(square + 2e-5)
    parts = torch.stack([over(part) for part in (within(wrong.abs()), log, ghosts, off, guess)])
    total = sum((weight * part for weight, part in zip(_WEIGHTS, parts.unbind(), strict=True)), parts.new_zeros(()))
    before, after = (-10 * over(torch.log10(each + 1e-7)) for each in (within((blend - clean) ** 2), square))
    return total, torch.stack([*parts.detach(), after.detach(), before.detach()])
