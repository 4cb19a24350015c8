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
from torch import nn

from training.losses import NAMES, loss
from training.network import Network
from training.synthesis import Synthesis

SAVE_EVERY_S = 40.0
WARM_UP = 200


@dataclass(frozen=True)
class Plan:
    data: Path
    out: Path
    seconds: float
    steps: int
    rate: float
    batch: int
    side: int
    late_batch: int
    late_side: int
    late: float  # the share of the time after which crops are large
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
    optimiser = torch.optim.AdamW(_groups(network), lr=plan.rate, betas=(0.9, 0.99), fused=fast)
    began = time.monotonic()
    synthesis = Synthesis(plan.data, device, seed=plan.seed, limit=plan.limit)
    print(f"data in {time.monotonic() - began:.0f} s, {sum(p.numel() for p in network.parameters()):,} parameters")

    began = saved = time.monotonic()
    log: list[dict[str, Any]] = []
    smooth, step, crops = None, 0, 0
    while (done := max(step / plan.steps, (time.monotonic() - began) / plan.seconds)) < 1:
        count, side = (plan.batch, plan.side) if done < plan.late else (plan.late_batch, plan.late_side)
        rate = plan.rate * min(1, (step + 1) / WARM_UP) * max(0.005, 0.5 * (1 + math.cos(math.pi * done)))
        for group in optimiser.param_groups:
            group["lr"] = rate
        batch = synthesis.batch(count, side)
        with torch.autocast(device.type, torch.bfloat16, enabled=fast):
            seen = network(batch.marked.contiguous(memory_format=torch.channels_last))
        total, parts = loss(batch, seen)
        optimiser.zero_grad(set_to_none=True)
        total.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimiser.step()
        _follow(average, network, step)
        smooth = parts if smooth is None else smooth + (parts - smooth) * 0.02
        step, crops = step + 1, crops + count
        if step % 100 == 0 or not fast:
            spent = time.monotonic() - began
            figures = {name: round(value, 4) for name, value in zip(NAMES, smooth.tolist(), strict=True)}
            log.append({"step": step, "seconds": round(spent, 1), "crops": crops, "side": side, **figures})
            if step % 500 == 0 or step <= 200 or not fast:
                print(f"{crops / spent:.0f} crops/s", json.dumps(log[-1]), flush=True)
        if time.monotonic() - saved > SAVE_EVERY_S:
            saved = time.monotonic()
            _save(average, log, plan.out)
    _save(average, log, plan.out)
    print(f"done: {step} steps, {crops:,} crops, {time.monotonic() - began:.0f} s")
    return log


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
    keep = min(0.9985, (step + 1) / (step + 20))
    for mine, theirs in zip(average.state_dict().values(), network.state_dict().values(), strict=True):
        if mine.dtype.is_floating_point:
            mine.lerp_(theirs, 1 - keep)
        else:
            mine.copy_(theirs)


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
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--side", type=int, default=320)
    parser.add_argument("--late-batch", type=int, default=48)
    parser.add_argument("--late-side", type=int, default=512)
    parser.add_argument("--late", type=float, default=0.6)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--start", type=Path)
    parser.add_argument("--limit", type=int, help="use that many photographs only")
    train(Plan(**vars(parser.parse_args())))


if __name__ == "__main__":
    main()
