"""Who is taught what: the eye to see marks, the refiner to finish what the solver makes of them."""

from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional as fn

from training import losses, refiner
from training.drafting import drafted
from training.network import Network, Planes
from training.reopen import load_weights
from training.synthesis import Batch, Synthesis

# Where a mark begins, as a probability: the product's threshold and others near it.
_LOW = (0.2, 0.45)
# How much of what is seen must be a mark for the refiner to learn from it.
_RIGHT = 0.6
# How many of the drafts are made without what is bare, as the product's second ones.
_OPENED = 0.4


class DetectorPupil:
    names = (*losses.NAMES, *losses.HINT_NAMES)

    def __init__(self, synthesis: Synthesis, device: torch.device) -> None:
        self.network = Network().to(device)
        self._synthesis = synthesis

    def batch(self, count: int, side: int) -> tuple[Tensor, ...]:
        made = self._synthesis.batch(count, side)
        return made.marked, made.clean, made.alpha, made.colour

    def judge(self, *batch: Tensor) -> tuple[Tensor, Tensor]:
        made = Batch(*batch)
        seen, hints = self.network.with_hints(batch[0])
        total, parts = losses.loss(made, seen)
        extra, hinted = losses.hint_loss(made, hints)
        return total + extra, torch.cat([parts, hinted])


class RefinerPupil:
    names = refiner.NAMES

    def __init__(self, synthesis: Synthesis, device: torch.device, eye: Path) -> None:
        self.network = refiner.Finished(refiner.Refiner()).to(device)
        self._synthesis = synthesis
        seeing = Network()
        seeing.load_state_dict(load_weights(eye))
        self._eye = Planes(seeing).to(device, memory_format=torch.channels_last).eval()  # type: ignore[call-overload]

    @torch.no_grad()
    def batch(self, count: int, side: int) -> tuple[Tensor, ...]:
        made, dice = self._synthesis.batch(count, side), self._synthesis.dice
        # In 32 bits, as where it is used: alpha must be as exact, and 16 overflow in Compare.
        planes = self._eye(made.marked.contiguous(memory_format=torch.channels_last))
        # The product's second draft leaves out what the refiner said is bare; here the truth says it.
        opened = dice.column(dice.chance(_OPENED, count))
        draft = drafted(made.marked, planes, dice.rng.uniform(*_LOW), refiner.bared(made.alpha) * opened)
        marked = fn.max_pool2d((made.alpha > losses.FAINTEST).float(), 5, 1, 2)
        # Where the eye was mostly wrong the product stays away (an opened draft is nearly all right). Beside the mark
        # it must do well, under it better.
        right = (draft.loose * marked).sum((1, 2, 3), keepdim=True) > _RIGHT * draft.loose.sum((1, 2, 3), keepdim=True)
        return refiner.stacked(draft), made.clean, made.alpha, draft.loose * (0.5 + 0.5 * marked) * right

    def judge(self, *batch: Tensor) -> tuple[Tensor, Tensor]:
        draft, clean, alpha, counted = batch
        return refiner.loss(self.network.finished(draft), draft, clean, alpha, counted)
