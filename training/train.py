"""``python -m training.train``: train for a number of steps or seconds, whichever ends first; keep what was learned.

Writes ``weights.pt`` (the averaged weights, for export and for the next round's ``--start``) every so often, and
``log.json`` with one row for each hundred steps. The same seed gives the same crops in the same order.
"""

import argparse
import copy
import json
import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from training.ahead import Ahead
from training.losses import NAMES, loss
from training.network import Network
from training.synthesis import Batch, Synthesis

SAVE_EVERY_S = 40.0
WARM_UP = 200


@dataclass(frozen=True)
class Plan:
    data: Path
    out: Path
    seconds: float
    steps: int
    rate: float
    last: float  # what the rate falls to, as a share of itself
    batch: int
    side: int
    seed: int
    start: Path | None
    limit: int | None


def train(plan: Plan) -> list[dict[str, Any]]:
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    fast = device.type == "cuda"
    if fast:
        torch.backends.cudnn.allow_tf32 = True
        torch.backends.cudnn.benchmark = True
    torch.manual_seed(plan.seed)
    plan.out.mkdir(parents=True, exist_ok=True)
    network = Network().to(device)
    if plan.start is not None:
        _begin_from(network, torch.load(plan.start, map_location=device, weights_only=True))
    network = network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    average = copy.deepcopy(network).eval()
    began = time.monotonic()
    synthesis = Synthesis(plan.data, device, seed=plan.seed, limit=plan.limit)
    print(f"data in {time.monotonic() - began:.0f} s, {sum(p.numel() for p in network.parameters()):,} parameters")

    began = saved = time.monotonic()
    log: list[dict[str, Any]] = []
    smooth, step = None, 0
    lesson, ahead = Lesson(network, device), Ahead(synthesis, device, plan.batch, plan.side)
    while (done := max(step / plan.steps, (time.monotonic() - began) / plan.seconds)) < 1:
        fall = plan.last + (1 - plan.last) * 0.5 * (1 + math.cos(math.pi * done))
        parts = lesson.learn(ahead.next(), plan.rate * min(1, (step + 1) / WARM_UP) * fall)
        if step == lesson.tries:
            ahead.start()
        _follow(average, network, step)
        smooth = parts.clone() if smooth is None else smooth + (parts - smooth) * 0.02
        step += 1
        if step % 100 == 0 or not fast:
            spent, crops = time.monotonic() - began, step * plan.batch
            figures = {name: round(value, 4) for name, value in zip(NAMES, smooth.tolist(), strict=True)}
            log.append({"step": step, "seconds": round(spent, 1), "crops": crops, "side": plan.side, **figures})
            if step % 500 == 0 or step <= 200 or not fast:
                print(f"{crops / spent:.0f} crops/s", json.dumps(log[-1]), flush=True)
        if time.monotonic() - saved > SAVE_EVERY_S:
            saved = time.monotonic()
            _save(average, log, plan.out)
    ahead.end()
    _save(average, log, plan.out)
    print(f"done: {step} steps, {step * plan.batch:,} crops, {time.monotonic() - began:.0f} s")
    return log


class Lesson:
    """One step of learning. On a GPU it is compiled, recorded after a few tries, and then played back.

    Convolutions this narrow are bound by what is read and written between them, which fused kernels save; and playing
    back leaves the host free to prepare the next batch.
    """

    tries = 3

    def __init__(self, network: Network, device: torch.device) -> None:
        self._network, self._fast, self._tried = network, device.type == "cuda", 0
        self._rate = torch.zeros((), device=device)
        self._optimiser = torch.optim.AdamW(
            _groups(network), lr=self._rate, betas=(0.9, 0.99), fused=self._fast, capturable=self._fast
        )
        self._judge = torch.compile(self._judged, dynamic=False) if self._fast else self._judged
        self._recorded: torch.cuda.CUDAGraph | None = None
        if self._fast:
            self._stream = torch.cuda.Stream(device)
        self._parts = torch.zeros(0)

    def learn(self, batch: Batch, rate: float) -> Tensor:
        """Learn from a batch, which must be the same tensors every time; the parts of the loss."""
        self._rate.fill_(rate)
        if self._recorded is None and self._tried == self.tries:
            self._record(batch)
        if self._recorded is not None:
            self._recorded.replay()
            return self._parts
        if not self._fast:
            return self._once(batch)
        self._tried += 1
        # On the stream that it will be recorded on, as recording demands.
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            parts = self._once(batch)
        torch.cuda.current_stream().wait_stream(self._stream)
        return parts

    def _once(self, batch: Batch) -> Tensor:
        self._optimiser.zero_grad(set_to_none=True)
        total, parts = self._judge(batch.marked, batch.clean, batch.alpha, batch.colour)
        total.backward()
        nn.utils.clip_grad_norm_(self._network.parameters(), 1.0)
        self._optimiser.step()
        return parts

    def _judged(self, marked: Tensor, clean: Tensor, alpha: Tensor, colour: Tensor) -> tuple[Tensor, Tensor]:
        with torch.autocast(marked.device.type, torch.bfloat16, enabled=self._fast):
            seen = self._network(marked.contiguous(memory_format=torch.channels_last))
        return loss(Batch(marked, clean, alpha, colour), seen)

    def _record(self, batch: Batch) -> None:
        recorded = torch.cuda.CUDAGraph()
        with torch.cuda.graph(recorded, stream=self._stream):
            self._parts = self._once(batch)
        self._recorded = recorded


def _begin_from(network: nn.Module, weights: dict[str, torch.Tensor]) -> None:
    """Take over every weight that still fits: a round may change a layer's width."""
    mine = network.state_dict()
    fitting = {name: value for name, value in weights.items() if mine[name].shape == value.shape}
    network.load_state_dict(fitting, strict=False)
    print(f"{len(fitting)} of {len(mine)} tensors taken over")


def _groups(network: nn.Module) -> list[dict[str, Any]]:
    kernels = [p for p in network.parameters() if p.ndim > 1]
    others = [p for p in network.parameters() if p.ndim <= 1]
    return [{"params": kernels, "weight_decay": 1e-3}, {"params": others, "weight_decay": 0.0}]


@torch.no_grad()
def _follow(average: nn.Module, network: nn.Module, step: int) -> None:
    keep = min(0.999, (step + 1) / (step + 20))
    pairs = [
        pair
        for kind in ("parameters", "buffers")
        for pair in zip(getattr(average, kind)(), getattr(network, kind)(), strict=True)
        if pair[0].dtype.is_floating_point
    ]
    torch._foreach_lerp_([mine for mine, _ in pairs], [theirs for _, theirs in pairs], 1 - keep)


def _save(average: nn.Module, log: list[dict[str, Any]], out: Path) -> None:
    fresh = out / "weights.part"
    torch.save({name: value.contiguous() for name, value in average.state_dict().items()}, fresh)
    fresh.replace(out / "weights.pt")
    (out / "log.json").write_text("[\n" + ",\n".join(json.dumps(row) for row in log) + "\n]\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("training-data"))
    parser.add_argument("--out", type=Path, default=Path("runs/latest"))
    parser.add_argument("--seconds", type=float, default=540)
    parser.add_argument("--steps", type=int, default=10**9)
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--batch", type=int, default=25)
    parser.add_argument("--side", type=int, default=512)
    parser.add_argument("--last", type=float, default=0.005)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--start", type=Path)
    parser.add_argument("--limit", type=int, help="use that many photographs only")
    train(Plan(**vars(parser.parse_args())))


if __name__ == "__main__":
    main()
