"""How far two pictures look from each other: ST-LPIPS, which forgives a shift of a pixel.

    python -m benchmarks.perceptual FILE    # writes the network as ONNX; needs torch, stlpips-pytorch and onnx

``benchmarks.eye_wild --perceptual FILE`` reads it with onnxruntime alone. (Ghildyal and Liu 2022; BSD, weights inside.)
"""

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

_MARGIN_PX, _MIN_SIDE_PX = 24, 80


class Distance:
    """0 for pictures that look alike."""

    def __init__(self, file: Path) -> None:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])

    def __call__(self, one: NDArray[np.uint8], other: NDArray[np.uint8]) -> float:
        told = self._session.run(None, {"a": _planes(one), "b": _planes(other)})[0]
        return float(np.ravel(told)[0])


def around(mask: NDArray[np.bool_]) -> tuple[slice, slice]:
    """The mask's box with a margin, no smaller than the network needs."""
    rows, columns = (np.flatnonzero(mask.any(axis)) for axis in (1, 0))
    return _stretch(rows, mask.shape[0]), _stretch(columns, mask.shape[1])


def _stretch(found: NDArray[np.intp], length: int) -> slice:
    margin = max(_MARGIN_PX, -(-(_MIN_SIDE_PX - len(found)) // 2))
    return slice(max(0, int(found[0]) - margin), min(length, int(found[-1]) + margin + 1))


def _planes(picture: NDArray[np.uint8]) -> NDArray[np.float32]:
    return np.ascontiguousarray((picture.astype(np.float32) / 127.5 - 1).transpose(2, 0, 1)[None])


def main() -> None:
    for name in ("torchsummary", "IPython"):  # imported there, and not used
        stub: Any = ModuleType(name)
        stub.summary = stub.embed = None
        sys.modules.setdefault(name, stub)
    import torch
    from stlpips_pytorch import stlpips

    network = stlpips.LPIPS(net="alex", variant="shift_tolerant", verbose=False).eval()
    pictures = (torch.rand(1, 3, 200, 240), torch.rand(1, 3, 200, 240))
    sides = {2: "height", 3: "width"}
    torch.onnx.export(
        network, pictures, sys.argv[1], input_names=["a", "b"], output_names=["d"],
        dynamic_axes={"a": sides, "b": sides}, opset_version=17, dynamo=False,
    )  # fmt: skip


if __name__ == "__main__":
    main()
