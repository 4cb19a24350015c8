"""What the network is taught by."""

import torch
from torch import Tensor
from torch.nn import functional as fn

from training.network import LARGEST_ERROR, Seen
from training.synthesis import Batch

# A pixel with less of the mark than this is as good as clean.
FAINTEST = 0.02
# Above this the picture cannot be told through the mark.
OPAQUE = 0.9

NAMES = ("mask", "dice", "alpha", "colour", "restored", "ghosts", "error", "iou")
_WEIGHTS = (2.0, 0.8, 2.0, 2.0, 5.0, 2.0, 4.0)


def true_mask(alpha: Tensor) -> Tensor:
    """Where the mark is, grown by one pixel: files smear it that far."""
    return fn.max_pool2d((alpha > FAINTEST).float(), 3, 1, 1)


def restored(marked: Tensor, alpha: Tensor, colour: Tensor) -> Tensor:
    return ((marked - colour) / (1 - alpha).clamp(min=0.08)).clamp(-0.2, 1.2)


def loss(batch: Batch, seen: Seen) -> tuple[Tensor, Tensor]:
    """The sum to minimise, and its parts in the order of NAMES."""
    mask = true_mask(batch.alpha)
    inside, outside = mask.sum() + 1, (1 - mask).sum() + 1

    def within(value: Tensor) -> Tensor:
        # Outside counts double: a mark seen where there is none is changed for nothing.
        return (value * mask).sum() / inside + 2 * (value * (1 - mask)).sum() / outside

    guess = torch.sigmoid(seen.mask)
    bce = fn.binary_cross_entropy_with_logits(seen.mask, mask)
    has_mark = (mask.sum((1, 2, 3)) > 20).float()
    overlap = (2 * (guess * mask).sum((1, 2, 3)) + 50) / ((guess + mask).sum((1, 2, 3)) + 50)
    dice = ((1 - overlap) * has_mark).sum() / (has_mark.sum() + 1)
    alpha = within((seen.alpha - batch.alpha).abs())
    colour = within((seen.colour - batch.colour).abs().mean(1, keepdim=True))

    back = restored(batch.marked, seen.alpha, seen.colour)
    solvable = mask * (batch.alpha < OPAQUE).float()
    wrong, count = (back - batch.clean) * solvable, solvable.sum() + 1
    pixels = wrong.abs().mean(1).sum() / count
    ghosts = (
        (wrong[..., 1:] - wrong[..., :-1]).abs().mean(1).sum()
        + (wrong[..., 1:, :] - wrong[..., :-1, :]).abs().mean(1).sum()
    ) / count
    truth = (back.detach() - batch.clean).abs().mean(1, keepdim=True).clamp(max=LARGEST_ERROR)
    error = (((seen.error - truth) ** 2) * mask).sum() / inside * 2.5 + 0.1 * (seen.error * (1 - mask)).sum() / outside

    parts = torch.stack([bce, dice, alpha, colour, pixels, ghosts, error])
    total = (parts * torch.tensor(_WEIGHTS, device=parts.device)).sum()
    found, there = guess > 0.5, mask > 0
    iou = (found & there).sum() / ((found | there).sum() + 1)
    return total, torch.cat([parts.detach(), iou[None]])
