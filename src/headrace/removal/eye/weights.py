"""The model file, checked before it is trusted, and the session that runs it."""

import functools
import hashlib
from pathlib import Path

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from headrace.removal.errors import ModelDamaged

FILE = Path(__file__).with_name("eye.onnx")
SHA256 = "ea8ab5973b8b218f9175947cd87d2b9adb63c1fb1ec73b222bedc6c62372118f"
STRIDE = 32  # sides must be multiples of this
PLANES = 6  # probability, alpha, colour times alpha (3), expected error

Planes = NDArray[np.float32]  # PLANES H W


@functools.cache
def _session(path: Path, frugal: bool) -> onnxruntime.InferenceSession:
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != SHA256:
        raise ModelDamaged
    options = onnxruntime.SessionOptions()
    # Sums have another order on another number of threads: it is always two, so that the answer is the same everywhere.
    options.intra_op_num_threads = 2
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.inter_op_num_threads = 1
    options.use_deterministic_compute = True
    # An arena is faster and keeps what its largest run took; beside a very large picture that is too much.
    options.enable_cpu_mem_arena = not frugal
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def run(picture: NDArray[np.uint8], *, frugal: bool = False) -> Planes:
    """What the network says about a picture (H W 3, sides multiples of STRIDE); any number of threads may ask."""
    tensor = np.multiply(picture.transpose(2, 0, 1)[None], np.float32(1 / 255), dtype=np.float32)
    planes: Planes = _session(FILE, frugal).run(None, {"picture": tensor})[0][0]
    return planes
