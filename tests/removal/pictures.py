"""Pictures of a certain kind, made here: the tests need no files."""

import cv2
import numpy as np


def poor_ground() -> tuple[bytes, list[int]]:
    """A PNG with dark words whose ground nobody can know, pixels of any colour; and the box around them."""
    rng = np.random.default_rng(5)
    scene = rng.uniform(0, 255, (240, 320, 3)).astype(np.float32)
    ink = np.zeros(scene.shape[:2], np.uint8)
    cv2.putText(ink, "SAMPLE", (20, 140), cv2.FONT_HERSHEY_DUPLEX, 2.0, 255, 7, cv2.LINE_AA)
    alpha = ink[..., None].astype(np.float32) / 255 * 0.5
    left, top, width, height = cv2.boundingRect(ink)
    done, packed = cv2.imencode(".png", np.rint(scene * (1 - alpha)).astype(np.uint8))
    assert done
    return packed.tobytes(), [left - 3, top - 3, width + 6, height + 6]
