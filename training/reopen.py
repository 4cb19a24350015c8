"""``python -m training.reopen``: weights out of a shipped file, to go on training from.

An exported file has its normalisations folded into the convolutions. They come back as ones that change nothing; once
they have seen how the planes vary (``unfold``) they can learn again.
"""

import argparse
import copy
from collections.abc import Iterable
from pathlib import Path

import onnx
import torch
from onnx import numpy_helper
from torch import Tensor, nn

from training.network import Network
from training.refiner import Finished, Refiner


def load_weights(path: Path) -> dict[str, Tensor]:
    """The weights that training wrote, in 32 bits even where they were halved to be carried."""
    saved = torch.load(path, map_location="cpu", weights_only=True)
    return {name: value.float() if value.is_floating_point() else value for name, value in saved.items()}


def weights_of(model: Path, network: nn.Module) -> dict[str, Tensor]:
    """The state with which ``network`` tells the same as the file: of the eye or of the refiner, as it is trained."""
    graph = onnx.load(model).graph
    # Halved weights stand behind a cast, under their own name and an ending.
    held = {w.name.removesuffix("_16"): torch.tensor(numpy_helper.to_array(w)).float() for w in graph.initializer}
    state = {_bare(name): value for name, value in held.items() if name.startswith(("network.", "hand."))}
    for node in graph.node:
        if node.op_type == "Conv" and not node.input[1].startswith(("network.", "hand.")):
            name = _bare(_module(node.name))
            state[f"{name}.weight"] = held[node.input[1]]
            state[f"{name.removesuffix('.0')}.1.bias"] = held[node.input[2]]
    fresh = copy.deepcopy(network)
    unknown = fresh.load_state_dict(state, strict=False).unexpected_keys
    if unknown:
        raise ValueError(f"{model} is of another network: {', '.join(unknown[:3])}")
    for norm in fresh.modules():
        if isinstance(norm, nn.BatchNorm2d):
            # It divides by the root of one and a little: without this it would not change nothing.
            nn.init.constant_(norm.weight, (1 + norm.eps) ** 0.5)
    return fresh.state_dict()


# What parts were called when the shipped detector was exported.
_FORMER_NAMES = {"lite": "encoder", "full": "full_stem", "stem2": "half_stem", "cmp": "compare"}


def _bare(name: str) -> str:
    """The name in training: the eye is exported inside its planes (network.…), some parts under former names."""
    part, _, rest = name.removeprefix("network.").partition(".")
    return f"{_FORMER_NAMES.get(part, part)}.{rest}"


def _module(node: str) -> str:
    """``/hand/up.0/merge/merge.0/merge.0.0/Conv`` is hand.up.0.merge.0.0: a part may repeat the one before."""
    parts: list[str] = []
    for part in node.split("/")[1:-1]:
        if parts and part.startswith(parts[-1] + "."):
            parts[-1] = part
        else:
            parts.append(part)
    return ".".join(parts)


@torch.no_grad()
def unfold(network: nn.Module, pictures: Iterable[Tensor]) -> None:
    """Gives normalisations that change nothing the means and spreads they would have seen; what it tells stays."""
    norms = {m: [torch.zeros_like(m.running_mean), torch.zeros_like(m.running_mean), 0]
             for m in network.modules() if isinstance(m, nn.BatchNorm2d)}  # fmt: skip

    def watch(norm: nn.BatchNorm2d, given: tuple[Tensor, ...], _: Tensor) -> None:
        planes, sums = given[0].float(), norms[norm]
        sums[0] += planes.mean((0, 2, 3))
        sums[1] += (planes**2).mean((0, 2, 3))
        sums[2] += 1

    hooks = [norm.register_forward_hook(watch) for norm in norms]
    network.eval()
    for picture in pictures:
        network(picture)
    for hook in hooks:
        hook.remove()
    for norm, (first, second, count) in norms.items():
        mean = first / count
        spread = (second / count - mean**2).clamp(min=1e-6)
        # weight * (x - mean) / sqrt(spread) + bias is x + the old bias.
        norm.weight.copy_((spread + norm.eps).sqrt())
        norm.bias.add_(mean)
        norm.running_mean.copy_(mean)
        norm.running_var.copy_(spread)
    network.train()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("weights", type=Path)
    args = parser.parse_args()
    network = Finished(Refiner()) if args.model.stem == "refiner" else Network()
    torch.save(weights_of(args.model, network), args.weights)


if __name__ == "__main__":
    main()
