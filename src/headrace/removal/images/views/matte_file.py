"""A matte as a file, so that many pictures are learnt from once. Plain arrays, and nothing that is executed."""

import numpy as np

from headrace.removal.images.views.solving import Matte


def save(matte: Matte, score: float, target: str) -> None:
    """Write the part of it that is not empty, with how sure it is that it is a mark."""
    rows, columns = np.flatnonzero(matte.loose.any(1)), np.flatnonzero(matte.loose.any(0))
    top, left = int(rows[0]), int(columns[0])
    here = np.s_[top : int(rows[-1]) + 1, left : int(columns[-1]) + 1]
    with open(target, "wb") as file:  # noqa: PTH123 - by a name, NumPy would add an ending
        np.savez_compressed(
            file,
            alpha=matte.alpha[here],
            tint=matte.tint[here],
            loose=matte.loose[here],
            at=np.array((top, left, *matte.loose.shape), np.int64),
            sure=np.array((matte.trust, score), np.float64),
        )


def load(source: str) -> tuple[Matte, float]:
    """What ``save`` wrote; ``ValueError`` for anything else."""
    with np.load(source, allow_pickle=False) as arrays:
        top, left, height, width = (int(number) for number in arrays["at"])
        part = arrays["loose"].astype(np.bool_)
        rows, columns = part.shape
        if min(top, left) < 0 or top + rows > height or left + columns > width:
            raise ValueError("it does not fit itself")
        here = np.s_[top : top + rows, left : left + columns]
        alpha, tint = np.zeros((height, width), np.float32), np.zeros((height, width, 3), np.float32)
        loose = np.zeros((height, width), np.bool_)
        alpha[here], tint[here], loose[here] = arrays["alpha"], arrays["tint"], part
        trust, score = (float(number) for number in arrays["sure"])
    return Matte(alpha, tint, loose, trust), score
