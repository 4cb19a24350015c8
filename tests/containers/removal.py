"""Has the mark taken off a picture that is drawn here, over the API of a deployment: upload, order, result.

python -m tests.containers.removal URL < API_KEY
"""

import sys
import tempfile
from pathlib import Path

import cv2
import numpy as np

from headrace.client import NewRemoval, SyncClient


def marked() -> bytes:
    """Soft hills of light with some grain, under a word."""
    rng = np.random.default_rng(3)
    soft = cv2.resize(rng.uniform(40, 170, (4, 5, 3)).astype(np.float32), (640, 480), interpolation=cv2.INTER_CUBIC)
    grainy = np.clip(soft + rng.normal(0, 3, soft.shape), 0, 255)
    scene = (grainy + grainy.mean(2, keepdims=True)) / 2  # as pale as a photograph
    ink = np.zeros(scene.shape[:2], np.uint8)
    cv2.putText(ink, "SAMPLE", (90, 270), cv2.FONT_HERSHEY_DUPLEX, 4.0, 255, 14, cv2.LINE_AA)
    alpha = ink[..., None].astype(np.float32) / 255 * 0.45
    written, packed = cv2.imencode(".png", np.rint(scene * (1 - alpha) + 255 * alpha).astype(np.uint8))
    assert written
    return packed.tobytes()


def main(url: str, key: str) -> None:
    with SyncClient(url, key) as client, tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "marked.png")
        source.write_bytes(marked())
        asset = client.files.upload(source)
        (ordered,) = client.removals.order([asset.id], NewRemoval(rights="OWNER"))
        client.wait(ordered.id)
        removal = client.removals.get(ordered.id)
        if not removal.succeeded:
            sys.exit(f"the removal ended with {removal.error_code}")
        result = Path(folder, "clean.png")
        made = client.files.download_result(removal.id, result)
        before, after = (np.asarray(cv2.imread(str(path)), int) for path in (source, result))
        changed = int((np.abs(before - after).max(axis=2) > 8).sum())
        if not 2_000 < changed < 100_000:
            sys.exit(f"{changed} pixels of the result differ, which is not those of the mark")
        sys.stdout.write(f"{ordered.id}: {made.size_bytes} bytes, {changed} pixels changed\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.stdin.read().strip())
