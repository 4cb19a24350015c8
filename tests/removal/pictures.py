"""Pictures of a certain kind, made here: the tests need no files."""

import cv2
import numpy as np


def poor_ground() -> tuple[bytes, list[int]]:
    """A PNG with words whose ground nobody can know, in cells of any colour; and the box around them."""
    rng = np.random.default_rng(5)
    cells = rng.uniform(0, 255, (15, 20, 3)).astype(np.float32)
    scene = cv2.resize(cells, (320, 240), interpolation=cv2.INTER_NEAREST)
    ink = np.zeros(scene.shape[:2], np.uint8)
    cv2.putText(ink, "SAMPLE", (20, 140), cv2.FONT_HERSHEY_DUPLEX, 2.0, 255, 7, cv2.LINE_AA)
    alpha = ink[..., None].astype(np.float32) / 255 * 0.9
    left, top, width, height = cv2.boundingRect(ink)
    done, packed = cv2.imencode(".png", np.rint(scene * (1 - alpha) + 255 * alpha).astype(np.uint8))
    assert done
    return packed.tobytes(), [left - 3, top - 3, width + 6, height + 6]
