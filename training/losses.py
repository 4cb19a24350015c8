"""What the network is taught by."""

import torch
from torch import Tensor
from torch.nn import functional as fn

from training.network import LARGEST_ERROR, Hints, Seen
from training.synthesis import Batch

# A pixel with less of the mark than this is as good as clean.
FAINTEST = 0.02
# Above this the picture cannot be told through the mark.
OPAQUE = 0.9
# How much more an edge counts than a plain.
RIM = 1.5

NAMES = ("mask", "dice", "alpha", "colour", "restored", "ghosts", "error", "alarms", "iou")
_WEIGHTS = (3.0, 1.2, 2.5, 2.0, 6.0, 2.0, 4.0, 1.0)
HINT_NAMES = ("coarse_masks", "marked")
_HINT_WEIGHTS = (0.6, 0.08)
MIN_MARK_PIXELS = 20  # of a crop that counts as marked
# How much more a clean crop counts: on a clean photograph nothing may be seen.
CLEAN_WEIGHT = 2.0
# A false alarm begins at this probability, and half counts at this size; nearer to a mark than this there is none.
MIN_ALARM, HALF_ALARM_PIXELS = 0.15, 300
_COARSER, ALARM_MARGIN = 4, 3  # in pixels of a copy so many times smaller


def true_mask(alpha: Tensor) -> Tensor:
    """Where the mark is, grown by one pixel: files smear it that far."""
    return fn.max_pool2d((alpha > FAINTEST).float(), 3, 1, 1)


def restored(marked: Tensor, alpha: Tensor, colour: Tensor) -> Tensor:
    return ((marked - colour) / (1 - alpha).clamp(min=0.08)).clamp(-0.2, 1.2)


def loss(batch: Batch, seen: Seen) -> tuple[Tensor, Tensor]:
    """The sum to minimise, and its parts in the order of NAMES."""
    mask = true_mask(batch.alpha)
    # A mark ten times as large counts three times as much: else large ones are all that is learned. And edges count
    # more than what lies between them: solving mends a level that is wrong all over, but not a rim.
    area = mask.sum((1, 2, 3), keepdim=True)
    highest, lowest = fn.max_pool2d(batch.alpha, 5, 1, 2), -fn.max_pool2d(-batch.alpha, 5, 1, 2)
    rim = (highest - lowest > 0.3 * highest).float()
    counted = mask * (1 + RIM * rim) * (area + 400).rsqrt()
    has_mark = (area.flatten() > MIN_MARK_PIXELS).float()
    ground = (1 - mask) * (CLEAN_WEIGHT - (CLEAN_WEIGHT - 1) * has_mark).view(-1, 1, 1, 1)
    inside, outside = counted.sum() + 1e-3, ground.sum() + 1

    def within(value: Tensor) -> Tensor:
        # Outside counts double: a mark seen where there is none is changed for nothing.
        return (value * counted).sum() / inside + 2 * (value * ground).sum() / outside

    guess = torch.sigmoid(seen.mask)
    bce = fn.binary_cross_entropy_with_logits(seen.mask, mask, weight=mask + ground)
    overlap = (2 * (guess * mask).sum((1, 2, 3)) + 50) / ((guess + mask).sum((1, 2, 3)) + 50)
    dice = ((1 - overlap) * has_mark).sum() / (has_mark.sum() + 1)
    # Small alarms in clean places hardly show in a mean over all pixels, but each costs a clean photograph.
    coarse = fn.max_pool2d(fn.max_pool2d(mask, _COARSER), 2 * ALARM_MARGIN + 1, 1, ALARM_MARGIN)
    far = 1 - fn.interpolate(coarse, scale_factor=float(_COARSER), mode="nearest")
    alarmed = ((guess - MIN_ALARM).clamp(min=0) * far).sum((1, 2, 3))
    alarms = (alarmed / (alarmed + HALF_ALARM_PIXELS)).mean()
    alpha = within((seen.alpha - batch.alpha).abs())
    colour = within((seen.colour - batch.colour).abs().mean(1, keepdim=True))

    back = restored(batch.marked, seen.alpha, seen.colour)
    solvable = counted * (batch.alpha < OPAQUE).float()
    wrong, count = back - batch.clean, solvable.sum() + 1e-3
    pixels = (wrong.abs() * solvable).mean(1).sum() / count
    ghosts = (
        ((wrong[..., 1:] - wrong[..., :-1]).abs() * solvable[..., 1:]).mean(1).sum()
        + ((wrong[..., 1:, :] - wrong[..., :-1, :]).abs() * solvable[..., 1:, :]).mean(1).sum()
    ) / count
    truth = (back.detach() - batch.clean).abs().mean(1, keepdim=True).clamp(max=LARGEST_ERROR)
    error = (((seen.error - truth) ** 2) * counted).sum() / inside * 2.5
    error = error + 0.1 * (seen.error * ground).sum() / outside

    parts = torch.stack([bce, dice, alpha, colour, pixels, ghosts, error, alarms])
    total = sum((weight * part for weight, part in zip(_WEIGHTS, parts.unbind(), strict=True)), parts.new_zeros(()))
    found, there = guess > 0.5, mask > 0
    iou = (found & there).sum() / ((found | there).sum() + 1)
    return total, torch.cat([parts.detach(), iou[None]])


def hint_loss(batch: Batch, hints: Hints) -> tuple[Tensor, Tensor]:
    """The same for what only training asks for, in the order of HINT_NAMES."""
    mask = true_mask(batch.alpha)
    masks = mask.new_zeros(())
    for guess in hints.masks:
        truth = fn.avg_pool2d(mask, mask.shape[2] // guess.shape[2])
        masks = masks + fn.binary_cross_entropy_with_logits(guess.float(), truth)
    has_mark = (mask.sum((1, 2, 3)) > MIN_MARK_PIXELS).float()[:, None]
    marked = fn.binary_cross_entropy_with_logits(hints.marked.float(), has_mark)
    total = _HINT_WEIGHTS[0] * masks + _HINT_WEIGHTS[1] * marked
    return total, torch.stack([masks, marked]).detach()
