"""The product's solver as tensor arithmetic: drafts for the refiner to learn from, as fast as the device makes crops.

The same steps with the same constants as ``headrace.removal.images.eye`` (solving, coverage, inks, filling), where each
is explained; a test holds the two together. Inks are read off a sample of the pixels, and depth is counted in octagons.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as fn

OPAQUE, RIM = 0.93, 10
AROUND, SMOOTH = ((31, 1.0), (95, 1e-2), (287, 1e-4)), 1.3
GRAIN, ALPHA_OFF = 2.5, 0.03
WIDTHS, MISSED, ALWAYS = (9, 33, 97), 0.83, 1.77
POINTS = 3072  # pixels of a crop that inks are read off
NEAR = 61  # what a pixel's certainty is weighed with


@dataclass(frozen=True)
class Draft:
    """What the solver makes of a crop; levels are 0 to 255. Beside the mark every picture is the marked one."""

    marked: Tensor  # N 3 H W
    smooth: Tensor  # filled in
    computed: Tensor  # inverted
    blend: Tensor  # both, weighed
    colour: Tensor  # the ink's
    opacity: Tensor  # N 1 H W
    invented: Tensor  # how much of the blend is filled in
    rough: Tensor
    doubt: Tensor
    likely: Tensor
    loose: Tensor  # 0 or 1


def drafted(marked: Tensor, planes: Tensor, low: float, bare: Tensor | None = None) -> Draft:
    """From crops (0 to 1) and what the eye says of them (N 6 H W), a mark beginning at the probability ``low``.

    What is ``bare`` (N 1 H W, 0 or 1) is no mark, whatever the eye says.
    """
    levels = marked * 255
    likely, alpha, tint, doubt = (torch.round(part * 255) for part in planes.split((1, 1, 3, 1), 1))
    above, strong = (likely >= 255 * low).float(), (likely >= 200).float()
    # What little certain belongs to is no mark.
    tight = above * (strong.sum((1, 2, 3), keepdim=True) >= 60) * (_mean(strong, NEAR) >= 0.4 * _mean(above, NEAR))
    if bare is not None:
        tight = tight * (1 - bare)
    loose = _most(tight, 5)
    alpha, tint = alpha / 255 * loose, tint * loose
    strays = _strays(levels, loose)
    rough = strays[0]
    smooth = filled(levels, torch.maximum(tight, loose * (rough < SMOOTH)))
    share, whole = _covered(levels, alpha, loose)
    change = _most(share, 5) + _most(-share, 5)
    deep = _depth(loose)
    missed = _missed(strays, deep)
    colour = (tint / alpha.clamp(min=0.02)).clamp(0, 255)
    usable = (share > 0.5) & (deep <= RIM) & (tight > 0)
    ink, hue, strong = _inked(levels, smooth, missed, share, whole, colour, usable & (loose > 0))
    opacity = ink * share
    through = (1 - opacity).clamp(min=1 - OPAQUE)
    computed = (levels - opacity * hue) / through
    impossible = torch.maximum(-computed, computed - 255).clamp(min=0).mean(1, keepdim=True)
    computed = computed.clamp(0, 255)
    lever = ((hue - computed) ** 2).mean(1, keepdim=True).sqrt()
    unsure = torch.hypot(torch.full_like(ink, ALPHA_OFF), ink * (0.01 + 0.1 * change))
    wrong = torch.hypot(torch.full_like(ink, GRAIN), unsure * lever) / through + 2 * impossible
    wrong = (wrong + strong * doubt) * (1 + 4 * strong)
    invented = wrong**2 / (wrong**2 + (2 * missed) ** 2)
    invented = torch.where(opacity > OPAQUE, torch.ones_like(invented), invented) * loose
    computed = torch.where(loose > 0, computed, levels)
    blend = computed * (1 - invented) + smooth * invented
    hue = torch.where(loose > 0, hue, levels)
    return Draft(
        levels, smooth, computed, blend, hue, opacity * loose, invented, rough, doubt * loose, likely * loose, loose
    )


def filled(picture: Tensor, hole: Tensor) -> Tensor:
    known = 1 - hole
    seen = picture * known
    if min(hole.shape[2:]) <= 2:
        mean = seen.sum((2, 3), keepdim=True) / known.sum((2, 3), keepdim=True).clamp(min=1)
        return seen + mean * hole
    share = fn.avg_pool2d(known, 2, ceil_mode=True)
    mean = fn.avg_pool2d(seen, 2, ceil_mode=True) / share.clamp(min=1e-6)
    coarse = filled(mean, (share == 0).float())
    guess = fn.interpolate(coarse, size=hole.shape[2:], mode="bilinear", align_corners=False)
    result = torch.where(hole > 0, guess, picture)
    kernel = picture.new_tensor([[0.05, 0.2, 0.05], [0.2, 0, 0.2], [0.05, 0.2, 0.05]]).expand(3, 1, 3, 3)
    for _ in range(8):
        relaxed = fn.conv2d(fn.pad(result, (1, 1, 1, 1), "replicate"), kernel, groups=3)
        result = torch.where(hole > 0, relaxed, picture)
    return result


def _mean(plane: Tensor, side: int) -> Tensor:
    reach = side // 2
    padded = fn.pad(plane, (reach,) * 4, "reflect")
    if side <= 31:
        return fn.avg_pool2d(fn.avg_pool2d(padded, (side, 1), 1), (1, side), 1)
    # Wide windows by running sums: their cost does not grow with the width.
    down = fn.pad(padded.double().cumsum(2), (0, 0, 1, 0))
    across = fn.pad((down[:, :, side:] - down[:, :, :-side]).cumsum(3), (1, 0))
    return ((across[..., side:] - across[..., :-side]) / side**2).float()


def _most(plane: Tensor, side: int) -> Tensor:
    reach = side // 2
    return fn.max_pool2d(fn.max_pool2d(plane, (side, 1), 1, (reach, 0)), (1, side), 1, (0, reach))


def _covered(picture: Tensor, alpha: Tensor, loose: Tensor) -> tuple[Tensor, Tensor]:
    whole = (0.93 * _mean(_most(alpha, 9), 9)).clamp(min=0.02)
    share = (alpha / whole).clamp(0, 1)
    change = _most(share, 5) + _most(-share, 5)
    share = torch.where((share > 0.6) & (change < 0.25), torch.ones_like(share), share)
    return _guided(picture / 255, share).clamp(0, 1) * loose, whole


def _guided(picture: Tensor, plane: Tensor) -> Tensor:
    around, level = _mean(picture, 5), _mean(plane, 5)
    both = _mean(picture * plane, 5) - around * level
    rr, rg, rb, gg, gb, bb = (
        _mean(picture[:, i : i + 1] * picture[:, j : j + 1], 5)
        - around[:, i : i + 1] * around[:, j : j + 1]
        + (i == j) * 1e-4
        for i, j in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))
    )
    one, two, three = gg * bb - gb * gb, rb * gb - rg * bb, rg * gb - rb * gg
    four, five, six = rr * bb - rb * rb, rg * rb - rr * gb, rr * gg - rg * rg
    r, g, b = both.split(1, 1)
    slope = torch.cat([one * r + two * g + three * b, two * r + four * g + five * b, three * r + five * g + six * b], 1)
    slope = slope / (rr * one + rg * two + rb * three)
    offset = level - (slope * around).sum(1, keepdim=True)
    return (_mean(slope, 5) * picture).sum(1, keepdim=True) + _mean(offset, 5)


def _depth(mask: Tensor) -> Tensor:
    """How far in each pixel lies: squares and crosses taken off in turn, a dozen finely, the rest at a quarter size."""
    fine, left = _taken_off(mask, 12)
    coarse, _ = _taken_off(-fn.max_pool2d(-left, 4), 20)
    return fine + 4 * fn.interpolate(coarse, scale_factor=4.0, mode="nearest")


def _taken_off(left: Tensor, times: int) -> tuple[Tensor, Tensor]:
    depth = left
    for i in range(times):
        if i % 2:
            left = -_most(-left, 3)
        else:
            left = -torch.maximum(fn.max_pool2d(-left, (3, 1), 1, (1, 0)), fn.max_pool2d(-left, (1, 3), 1, (0, 1)))
        depth = depth + left
    return depth, left


def _strays(picture: Tensor, loose: Tensor) -> list[Tensor]:
    grey, outside = picture.mean(1, keepdim=True), 1 - loose
    largest = min(grey.shape[2:]) // 2 * 2 - 1
    seen = sum((counts * _mean(outside, min(side, largest)) for side, counts in AROUND), torch.full_like(grey, 1e-7))
    each = []
    for width in WIDTHS:
        width = min(width, largest)
        strays = outside * (grey - _mean(grey * outside, width) / (_mean(outside, width) + 1e-3)) ** 2
        usual = 1e-7 * strays.sum((1, 2, 3), keepdim=True) / outside.sum((1, 2, 3), keepdim=True).clamp(min=1)
        total = sum((counts * _mean(strays, min(side, largest)) for side, counts in AROUND), usual)
        each.append((total / seen + 1).sqrt())
    return each


def _missed(strays: list[Tensor], depth: Tensor) -> Tensor:
    near, further, far = strays
    doublings = depth.clamp(min=1).log2() - 2
    found = near + (further - near) * doublings.clamp(0, 1) + (far - further) * (doublings - 1).clamp(0, 1)
    return MISSED * found + ALWAYS


# From here on: inks. Points are N P (C), what is said of an ink N K.

ALPHA_PRIOR, COLOUR_PRIOR, ALIKE, UNFLATTENED = 0.12, 35.0, 60.0, 0.7
APART, LEAST, MOST_INKS, FEWEST = 90, 0.05, 5, 30
KINDS = (
    (((1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1)), 0.0),
    (((1, 0), (1, 0), (1, 0), (0, 1)), 0.5),
    (((255,), (255,), (255,), (1,)), 2.0),
    (((0,), (0,), (0,), (1,)), 1.0),
)


def _inked(
    marked: Tensor, out: Tensor, noise: Tensor, share: Tensor, alpha: Tensor, colour: Tensor, usable: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Of each pixel alpha of a whole stroke, colour, and how near to opaque it is."""
    n, height, width = len(marked), *marked.shape[2:]
    chance = torch.rand(n, height * width, device=marked.device) + usable.flatten(1)
    at = chance.topk(min(POINTS, height * width), 1).indices
    good = usable.flatten(1).gather(1, at).float()

    def points(plane: Tensor) -> Tensor:
        flat = plane.flatten(2)
        return flat.gather(2, at[:, None].expand(-1, flat.shape[1], -1)).transpose(1, 2)

    some = points(torch.cat([marked, out, noise, share, alpha, colour], 1))
    weight = some[..., 7] * some[..., 8] * good + 1e-6
    centres, real = _centres(some[..., 9:], weight)
    belongs = _nearest(some[..., 9:], centres, real)
    its = fn.one_hot(belongs, MOST_INKS).transpose(1, 2) * good[:, None]  # N K P
    strength, hue, strongest = _fitted(some, its, centres)
    which = _nearest(colour.flatten(2).transpose(1, 2), centres, real)

    def spread(values: Tensor) -> Tensor:
        each = values.gather(1, which[..., None].expand(-1, -1, values.shape[2]))
        return each.transpose(1, 2).reshape(n, -1, height, width)

    strong = ((strongest - 0.55) / 0.2).clamp(0, 1)
    return spread(strength[..., None]), spread(hue), spread(strong[..., None])


def _centres(colour: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """The colours that make up the mark (N K 3), and which of them there are."""
    n = len(colour)
    cells = (colour.clamp(0, 255).long() >> 6) * colour.new_tensor([16, 4, 1]).long()
    cell = cells.sum(2)
    full = colour.new_zeros(n, 64).scatter_add_(1, cell, weight)
    total = colour.new_zeros(n, 64, 3).scatter_add_(1, cell[..., None].expand(-1, -1, 3), colour * weight[..., None])
    mean = total / full.clamp(min=1e-9)[..., None]
    order = full.argsort(dim=1, descending=True, stable=True)[:, :8]
    centres = colour.new_full((n, MOST_INKS, 3), 1e4)
    count = torch.zeros(n, dtype=torch.long, device=colour.device)
    every = torch.arange(MOST_INKS, device=colour.device)
    for k in order.unbind(1):
        candidate = mean.gather(1, k.view(n, 1, 1).expand(-1, 1, 3))
        enough = full.gather(1, k[:, None])[:, 0] >= LEAST * full.sum(1)
        apart = ((candidate - centres).abs().amax(2) > APART).all(1)
        put = (enough & apart & (count < MOST_INKS))[:, None] & (every == count[:, None])
        centres = torch.where(put[..., None], candidate, centres)
        count = count + put.any(1)
    real = every < count.clamp(min=1)[:, None]
    its = fn.one_hot(_nearest(colour, centres, real), MOST_INKS) * weight[..., None]  # N P K
    settled = torch.einsum("npk,npc->nkc", its, colour) / its.sum(1).clamp(min=1e-9)[..., None]
    return torch.where(real[..., None] & (its.sum(1) > 1e-5)[..., None], settled, centres), real


def _nearest(colour: Tensor, centres: Tensor, real: Tensor) -> Tensor:
    far = torch.stack([((colour - centres[:, k, None]) ** 2).sum(2) for k in range(MOST_INKS)], 2)
    return torch.where(real[:, None], far, torch.full_like(far, 1e12)).argmin(2)


def _median(values: Tensor, its: Tensor) -> Tensor:
    """Of the points that are its own: N K P gives N K."""
    return torch.where(its > 0, values, torch.full_like(values, torch.nan)).nanmedian(2).values.nan_to_num(0)


def _fitted(some: Tensor, its: Tensor, centres: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Alpha, colour and the strongest alpha of each ink (N K)."""
    marked, out, noise, share, alpha, colour = (
        part.double()[:, None] for part in some.split((3, 3, 1, 1, 1, 3), 2)
    )  # N 1 P C
    its = its.double()
    noise, share = noise[..., 0], share[..., 0]
    alpha0 = _median(alpha[..., 0].expand_as(its), its)
    colour0 = torch.stack([_median(colour[..., c].expand_as(its), its) for c in range(3)], 2)
    shift = marked - out
    likely, wanted = _prior(alpha0, colour0)
    least = torch.full_like(alpha0, torch.inf)
    best, hue, free = alpha0, colour0, torch.zeros_like(alpha0)
    for number, (rows, bonus) in enumerate(KINDS):
        kind = shift.new_tensor(rows)
        trust = its
        for _ in range(4):
            matrix, vector = _moments(out, noise, share, shift, trust / (ALIKE * noise**2))
            inner = kind.T @ (matrix + likely) @ kind + 1e-9 * torch.eye(kind.shape[1], device=kind.device)
            found = torch.linalg.solve_ex(inner, (vector + wanted) @ kind).result @ kind.T
            one = torch.minimum(torch.maximum(found[..., 3], 0.5 * alpha0), torch.ones_like(alpha0))
            its_hue = (found[..., :3] / found[..., 3:].clamp(min=1e-3)).clamp(0, 255)
            left = shift - (one[..., None] * share)[..., None] * (its_hue[:, :, None] - out)
            misfit = (left**2).mean(3) / (4 * noise**2)
            trust = its / (1 + misfit)
        far = ((one - alpha0) / ALPHA_PRIOR) ** 2 + 1.5 * ((its_hue - colour0) ** 2).mean(2) / COLOUR_PRIOR**2
        loss = 6 * (torch.log1p(misfit) * its).sum(2) / ALIKE + far / 2 - bonus
        better = loss < least
        least, best = torch.where(better, loss, least), torch.where(better, one, best)
        hue, free = torch.where(better[..., None], its_hue, hue), torch.where(better, float(number == 0), free)
    few = its.sum(2) < FEWEST
    strongest = torch.where(few, torch.ones_like(best), torch.maximum(best, alpha0 + 0.1 * free))
    hue = torch.where(few[..., None], centres.double(), hue)
    return torch.where(few, alpha0, best).float(), hue.clamp(0, 255).float(), strongest.float()


def _prior(alpha: Tensor, colour: Tensor) -> tuple[Tensor, Tensor]:
    sure = 1 / (COLOUR_PRIOR * alpha.clamp(min=0.1)) ** 2
    matrix = torch.diag_embed(torch.stack([sure, sure, sure, torch.zeros_like(sure)], 2))
    matrix[..., :3, 3] = matrix[..., 3, :3] = -sure[..., None] * colour
    matrix[..., 3, 3] = sure * (colour**2).sum(2) + ALPHA_PRIOR**-2
    vector = torch.zeros_like(matrix[..., 0])
    vector[..., 3] = alpha * ALPHA_PRIOR**-2
    return matrix, vector


def _moments(out: Tensor, noise: Tensor, share: Tensor, shift: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    once, twice, flat = weight * share, weight * share**2, UNFLATTENED * noise**2
    total, across = twice.sum(2), -(twice[..., None] * out).sum(2)
    matrix = torch.diag_embed(torch.stack([total, total, total, torch.zeros_like(total)], 2))
    matrix[..., :3, 3] = matrix[..., 3, :3] = across
    matrix[..., 3, 3] = (twice * (out**2).sum(3)).sum(2) - 3 * (twice * flat).sum(2)
    vector = torch.zeros_like(matrix[..., 0])
    vector[..., :3] = (once[..., None] * shift).sum(2)
    vector[..., 3] = -(once * (out * shift).sum(3)).sum(2) - 3 * (once * flat).sum(2)
    return matrix, vector
