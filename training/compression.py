"""What JPEG does to a picture, as tensor arithmetic: chroma subsampling and quantised 8 x 8 cosines."""

import math

import torch
from torch import Tensor
from torch.nn import functional as fn

# Annex K of the JPEG standard: luminance, then chrominance.
_LUMA = """
16 11 10 16 24 40 51 61 12 12 14 19 26 58 60 55 14 13 16 24 40 57 69 56 14 17 22 29 51 87 80 62
18 22 37 56 68 109 103 77 24 35 55 64 81 104 113 92 49 64 78 87 103 121 120 101 72 92 95 98 112 100 103 99
"""
_CHROMA = "17 18 24 47 99 99 99 99 18 21 26 66 99 99 99 99 24 26 56 99 99 99 99 99 47 66" + " 99" * 38


class Jpeg:
    def __init__(self, device: torch.device) -> None:
        cosines = [
            [math.sqrt((1 if u == 0 else 2) / 8) * math.cos((2 * x + 1) * u * math.pi / 16) for x in range(8)]
            for u in range(8)
        ]
        # Rows, then columns, as one product with 64 numbers a block: the device multiplies few large matrices quickly,
        # and many small ones slowly.
        one_way = torch.tensor(cosines, device=device)
        self._cosines = torch.kron(one_way, one_way).T.contiguous()
        tables = [[float(v) for v in table.split()] for table in (_LUMA, _CHROMA)]
        self._tables = torch.tensor(tables, device=device).view(2, 8, 8)

    def __call__(self, picture: Tensor, quality: Tensor, *, halve_chroma: bool) -> Tensor:
        """The picture (N 3 H W, 0 to 1, sides multiples of 16) as it comes back from JPEG files of these qualities."""
        red, green, blue = (picture * 255).unbind(1)
        luma = 0.299 * red + 0.587 * green + 0.114 * blue
        chroma = torch.stack(
            [-0.168736 * red - 0.331264 * green + 0.5 * blue, 0.5 * red - 0.418688 * green - 0.081312 * blue], 1
        )
        scale = torch.where(quality < 50, 5000 / quality, 200 - 2 * quality).view(-1, 1, 1, 1)
        tables = ((self._tables[None] * scale + 50) / 100).floor().clamp(1, 255)
        luma = self._quantised(luma[:, None] - 128, tables[:, 0]) + 128
        if halve_chroma:
            chroma = self._quantised(fn.avg_pool2d(chroma, 2), tables[:, 1])
            chroma = fn.interpolate(chroma, scale_factor=2, mode="bilinear", align_corners=False)
        else:
            chroma = self._quantised(chroma, tables[:, 1])
        cb, cr = chroma[:, :1], chroma[:, 1:]
        back = torch.cat([luma + 1.402 * cr, luma - 0.344136 * cb - 0.714136 * cr, luma + 1.772 * cb], 1)
        return back.round().clamp(0, 255) / 255

    def _quantised(self, plane: Tensor, table: Tensor) -> Tensor:
        n, c, h, w = plane.shape
        blocks = plane.view(n, c, h // 8, 8, w // 8, 8).permute(0, 1, 2, 4, 3, 5).reshape(n, -1, 64)
        steps = table.view(n, 1, 64)
        levels = torch.round(blocks @ self._cosines / steps) * steps
        blocks = (levels @ self._cosines.T).view(n, c, h // 8, w // 8, 8, 8)
        return blocks.permute(0, 1, 2, 4, 3, 5).reshape(n, c, h, w)
