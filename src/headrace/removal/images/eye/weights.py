"""The model files, checked before they are trusted, and the sessions that run them."""

import functools
import hashlib
import threading
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from headrace.removal.errors import ModelDamaged

Tensor = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Model:
    file: Path
    sha256: str
    stride: int  # sides must be multiples of this


_HERE = Path(__file__).parent
# From a picture (3 H W, 0 to 1) to planes: probability, alpha, colour times alpha (3), expected error.
DETECTOR = Model(_HERE / "detector.onnx", "a4ea3d1387243ca36930e96726ceba33383f84df96e7e935c46abb23127688a1", 32)
PLANES_COUNT = 6
# From a draft, stacked as refining.py does it, to the finished picture and what of it is bare (4 H W, 0 to 1).
REFINER = Model(_HERE / "refiner.onnx", "8d88af75feec6ca4a13e38db9f6cb46f60c0ad82f57c44fd4a90f4e832816339", 8)

# From a picture and what is known of it (bytes, 1 3 H W and 1 1 H W) to the picture with the rest drawn: MI-GAN's
# pipeline as its authors publish it. Not in git: scripts/weights fetches it, and without it nothing is drawn.
INPAINTER = Model(
    _HERE.parent / "inpainter" / "migan.onnx", "6f1f3530a1a2324b19752018ce756088b07973cda8d7d890034ace5c8a48c40b", 1
)
# From a line of text (3 48 W, -1 to 1) to the probabilities of characters along it, and these characters. Not in git
# either; without them no mark has a text.
READER = Model(
    _HERE.parent / "reader" / "recognizer.onnx", "06b3e6af6c59a1ba5d53790ed8c2e4b2de389870b6cf5a97f349f3412cb269c0", 1
)
CHARACTERS = Model(
    _HERE.parent / "reader" / "characters.txt", "28b2362ad4ab2dc38769aa72feb535e3a9ddb3fd2a7585a05920e6393b1dc7f7", 1
)

_loading = threading.Lock()


def _session(model: Model, frugal: bool) -> onnxruntime.InferenceSession:
    with _loading:  # or threads that come together load it twice, and both stay
        return _load(model, frugal)


@functools.cache
def _load(model: Model, frugal: bool) -> onnxruntime.InferenceSession:
    content = read(model)
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


def read(model: Model) -> bytes:
    """The content of the file; ``ModelDamaged`` if it is not the one of this release."""
    try:
        content = model.file.read_bytes()
    except OSError as exc:
        raise ModelDamaged(_damaged(model, f"cannot be read ({exc.strerror})")) from exc
    if hashlib.sha256(content).hexdigest() != model.sha256:
        raise ModelDamaged(_damaged(model, "is not the one that this release was made with"))
    return content


def _damaged(model: Model, how: str) -> str:
    return (
        f"The installation is damaged, the picture may be fine: the model file {model.file} {how}. Install Headrace "
        "again: `pip install --force-reinstall --no-deps` with its wheel, or in a clone `git restore` that file."
    )


def run(model: Model, given: Tensor, *, frugal: bool = False) -> Tensor:
    """What the model tells of C H W numbers, sides multiples of its stride; any number of threads may ask."""
    session = _session(model, frugal)
    answer: Tensor = session.run(None, {session.get_inputs()[0].name: given[None]})[0][0]
    return answer


def draw(picture: NDArray[np.uint8], known: NDArray[np.bool_], *, frugal: bool = False) -> NDArray[np.uint8]:
    """The picture (H W 3) as the inpainter continues it into what is not known of it."""
    session = _session(INPAINTER, frugal)
    planes = {
        "image": np.ascontiguousarray(picture.transpose(2, 0, 1))[None],
        "mask": known[None, None] * np.uint8(255),
    }
    drawn: NDArray[np.uint8] = session.run(None, planes)[0][0].transpose(1, 2, 0)
    return drawn
